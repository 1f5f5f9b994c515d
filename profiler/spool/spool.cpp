// Blocks of a mapped file, handed out by counters.
#include "profiler/spool/spool.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <new>
#include <utility>

namespace shard::profiler {
namespace {

/// Looked at with every event, so asked of the kernel only behind a fork.
std::atomic<std::int32_t> this_process{0};

std::int32_t ask_for_process() {
  static const int kHandler = ::pthread_atfork(nullptr, nullptr, [] { this_process.store(::getpid()); });
  (void)kHandler;
  this_process.store(::getpid());
  return this_process.load();
}

/// In a program that ran out of blocks: how many events are dropped before the next look for one.
constexpr std::uint64_t kEventsBetweenLooks = 1024;
constexpr std::uint32_t kFewestBlocks = 8;

template <class T>
std::int64_t nanoseconds(T time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

Error refused(const std::filesystem::path& path, const char* what) {
  return {.code = Errc::cannot_create,
          .what = std::string(what) + ": " + std::strerror(errno),
          .where = path.string(),
          .help = "a folder with room that can be written to"};
}

}  // namespace

std::int32_t Spool::current_process() {
  return this_process.load(std::memory_order_relaxed);
}

Result<std::unique_ptr<Spool>> Spool::create(const std::filesystem::path& path, const SpoolOptions& options) {
  const auto wanted = static_cast<std::uint64_t>(std::max<std::int64_t>(options.most.count(), 0)) / kBlockBytes;
  const auto blocks = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(wanted, kFewestBlocks, kMostBlocks));
  constexpr int kHow = O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC;
  const int file = ::open(path.c_str(), kHow, 0600);
  if (file < 0) return refused(path, "the file for events cannot be made");
  const int names = ::open((path.string() + ".names").c_str(), kHow | O_APPEND, 0600);
  if (names < 0) {
    Error error = refused(path.string() + ".names", "the file for names cannot be made");
    ::close(file);
    return error;
  }
  std::unique_ptr<Spool> spool(new Spool(file, names, blocks));
  if (const Result<void> mapped = spool->map(path, blocks, options); !mapped) return mapped.error();
  return spool;
}

Spool::Spool(int file, int names, std::uint32_t blocks)
    : file_(file),
      names_(names),
      process_(ask_for_process()),
      mapped_bytes_(kSpoolHeaderBytes + std::size_t{blocks} * kBlockBytes) {}

Result<void> Spool::map(const std::filesystem::path& path, std::uint32_t blocks, const SpoolOptions& options) {
  // The file is as long as it may become, and has holes: room is asked for block by block, so that a full disk is an
  // answer and not a signal.
  if (::ftruncate(file_, static_cast<off_t>(mapped_bytes_)) != 0 ||
      ::posix_fallocate(file_, 0, static_cast<off_t>(kSpoolHeaderBytes)) != 0)
    return refused(path, "there is no room for events");
  void* const at = ::mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (at == MAP_FAILED) return refused(path, "the file for events cannot be mapped");
  mapping_ = static_cast<std::byte*>(at);
  header_ = new (mapping_) SpoolHeader{.process = process_,
                                       .clock_ns = nanoseconds(std::chrono::steady_clock::now()),
                                       .wall_ns = nanoseconds(std::chrono::system_clock::now()),
                                       .rank = options.rank,
                                       .paused = options.paused ? 1u : 0u,
                                       .limit = blocks};
  return {};
}

bool Spool::is_paused() const {
  return std::atomic_ref(header_->paused).load() != 0;
}

void pause_spool(const std::filesystem::path& path, bool paused) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  const std::uint32_t word = paused ? 1 : 0;
  (void)!::pwrite(file, &word, sizeof(word), offsetof(SpoolHeader, paused));
  ::close(file);
}

Spool::~Spool() {
  if (mapping_ != nullptr) {
    const bool own = is_own();
    const std::uint32_t used = header_->fresh;
    ::munmap(mapping_, mapped_bytes_);
    if (own) (void)!::ftruncate(file_, static_cast<off_t>(kSpoolHeaderBytes + std::size_t{used} * kBlockBytes));
  }
  ::close(file_);
  ::close(names_);
}

NameNumber Spool::name(std::string_view text) {
  const std::lock_guard lock(mutex_);
  if (const auto at = numbers_.find(text); at != numbers_.end()) return at->second;
  const auto number = static_cast<NameNumber>(numbers_.size() + 1);
  numbers_.emplace(text, number);
  if (!is_own()) return number;
  const std::uint32_t head[2] = {number, static_cast<std::uint32_t>(text.size())};
  std::string entry(reinterpret_cast<const char*>(head), sizeof(head));
  entry += text;
  if (::write(names_, entry.data(), entry.size()) != static_cast<ssize_t>(entry.size()))
    std::atomic_ref(header_->names_lost).fetch_add(1);
  return number;
}

void Spool::count_dropped(std::uint64_t events) {
  if (is_own()) std::atomic_ref(header_->dropped).fetch_add(events);
}

Spool::Block* Spool::block(std::uint32_t number) {
  return reinterpret_cast<Block*>(mapping_ + kSpoolHeaderBytes + std::size_t{number} * kBlockBytes);
}

bool Spool::has_room(std::uint32_t number) {
  const std::size_t offset = kSpoolHeaderBytes + std::size_t{number} * kBlockBytes;
  if (::posix_fallocate(file_, static_cast<off_t>(offset), static_cast<off_t>(kBlockBytes)) != 0) return false;
#ifdef MADV_POPULATE_WRITE
  // One call instead of a fault for every page; where the kernel does not know it, pages fault.
  static const auto kPage = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  if (offset % kPage == 0) ::madvise(mapping_ + offset, kBlockBytes, MADV_POPULATE_WRITE);
#endif
  return true;
}

Spool::Block* Spool::take_fresh() {
  std::atomic_ref fresh(header_->fresh);
  std::atomic_ref limit(header_->limit);
  std::uint32_t next = fresh.load();
  while (next < limit.load()) {
    if (!fresh.compare_exchange_weak(next, next + 1)) continue;
    if (has_room(next)) return block(next);
    std::uint32_t now = limit.load();
    while (now > next && !limit.compare_exchange_weak(now, next)) {
    }
    return nullptr;
  }
  return nullptr;
}

Spool::Block* Spool::take_prepared() {
  for (std::atomic<Block*>& place : prepared_)
    if (place.load(std::memory_order_relaxed) != nullptr)
      if (Block* const found = place.exchange(nullptr)) return found;
  return nullptr;
}

int Spool::prepare() {
  int count = 0;
  if (!is_own()) return count;
  for (std::atomic<Block*>& place : prepared_) {
    if (place.load() != nullptr) continue;
    Block* const made = take_fresh();
    if (made == nullptr) return count;
    ++count;
    Block* none = nullptr;
    // Another thread prepared one for this place meanwhile: this one is free to be taken again.
    if (!place.compare_exchange_strong(none, made))
      std::atomic_ref(made->header.state).store(static_cast<std::uint32_t>(BlockState::free));
  }
  return count;
}

Spool::Block* Spool::take_again() {
  const std::uint32_t blocks = std::min(std::atomic_ref(header_->limit).load(), std::atomic_ref(header_->fresh).load());
  for (std::uint32_t look = 0; look < blocks; ++look) {
    const std::uint64_t turn = std::atomic_ref(header_->turn).fetch_add(1);
    Block* const found = block(static_cast<std::uint32_t>(turn % blocks));
    std::atomic_ref state(found->header.state);
    auto expected = static_cast<std::uint32_t>(BlockState::free);
    // Looked at first: the exchange writes, and a block that another thread is still asking room for has none.
    if (state.load() != expected ||
        !state.compare_exchange_strong(expected, static_cast<std::uint32_t>(BlockState::filling)))
      continue;
    std::atomic_ref(header_->overwritten).fetch_add(std::atomic_ref(found->header.count).exchange(0));
    return found;
  }
  return nullptr;
}

Spool::Block* Spool::take(std::uint32_t thread) {
  Block* taken = take_prepared();
  if (taken == nullptr) taken = take_fresh();
  if (taken == nullptr) taken = take_again();
  if (taken == nullptr) return nullptr;
  taken->header.thread = thread;
  taken->header.order = std::atomic_ref(header_->order).fetch_add(1) + 1;
  std::atomic_ref(taken->header.count).store(0);
  std::atomic_ref(taken->header.state).store(static_cast<std::uint32_t>(BlockState::filling));
  return taken;
}

Lane::Lane(Spool& spool) : spool_(spool), thread_(static_cast<std::uint32_t>(::syscall(SYS_gettid))) {}

Lane::~Lane() {
  if (spool_.is_own()) give_back();
}

void Lane::give_back() {
  if (block_ == nullptr) return;
  std::atomic_ref(block_->header.state).store(static_cast<std::uint32_t>(BlockState::free), std::memory_order_release);
  block_ = nullptr;
}

bool Lane::next_block() {
  if (!spool_.is_own()) return false;
  give_back();
  if (refused_ % kEventsBetweenLooks == 0) {
    block_ = spool_.take(thread_);
    count_ = 0;
  }
  if (block_ != nullptr) {
    refused_ = 0;
    return true;
  }
  ++refused_;
  spool_.count_dropped(1);
  return false;
}

}  // namespace shard::profiler
