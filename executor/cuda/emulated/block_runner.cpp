// Threads of a block on fibers. A fiber runs threads to their ends; where one waits, another fiber goes on. The thread
// sanitizer does not look in here, and what is in here allocates nothing while a block runs.
#include "executor/cuda/emulated/block_runner.h"

#include <sys/mman.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "executor/cuda/emulated/fiber.h"
#include "executor/cuda/emulated/random.h"

namespace shard::cuda {

constinit thread_local emulated::Index threadIdx;
constinit thread_local emulated::Index blockIdx;
constinit thread_local emulated::Index blockDim;
constinit thread_local emulated::Index gridDim;

namespace emulated {
namespace {

constexpr std::uint32_t kMost = BlockRunner::kMostThreads;
constexpr std::uint32_t kLanes = 32;
constexpr std::uint64_t kPoison = ~std::uint64_t{0};  // NaN in every type
constexpr std::uint32_t kGuardBytes = 256;            // behind shared memory
constexpr unsigned char kGuard = 0xA7;

/// Without a call that sanitizers would take for an access of the running thread.
void set_bytes(std::byte* to, unsigned char value, std::size_t count) {
#if defined(__x86_64__)
  asm volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(value) : "memory");
#else
  for (std::size_t i = 0; i < count; ++i) static_cast<volatile std::byte*>(to)[i] = std::byte{value};
#endif
}

bool same_line(const Where& a, const Where& b) {
  return a.line == b.line && (a.file == b.file || std::strcmp(a.file, b.file) == 0);
}

/// What a lane has asked of its warp.
struct Lane {
  Exchange how = Exchange::nothing;
  std::uint32_t mask = 0;
  std::uint32_t width = 0;
  std::uint32_t number = 0;
  std::uint64_t value = 0;
  Where where;
  [[nodiscard]] bool matches(const Lane& other) const {
    return how == other.how && mask == other.mask && width == other.width && same_line(where, other.where);
  }
};

}  // namespace

class BlockRunner::Impl {
 public:
  explicit Impl(std::uint64_t seed) : random_(seed) { map_shared(); }
  ~Impl() { munmap(shared_, kSharedBytes); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  bool run(const Sizes& sizes, const std::function<void()>& thread, std::string_view what);
  void at_barrier(const Where& where);
  std::uint64_t at_exchange(const Lane& lane);
  [[nodiscard]] std::byte* shared() const { return shared_; }

  static thread_local Impl* current;  // of the kernel that runs

 private:
  static void fiber_entry(void* data) { static_cast<Impl*>(data)->run_threads(); }
  void run_block();
  void draw_order();
  [[noreturn]] void run_threads();
  [[gnu::noinline]] void run_one(std::uint32_t thread);
  void thread_ended(std::uint32_t thread);
  [[gnu::noinline]] void go_on();
  void leave_for(Fiber& fiber);
  Fiber& fiber_to_begin();
  void shuffle(std::uint32_t* begin, std::uint32_t count);
  void exchange_if_all_came(std::uint32_t thread);
  void exchange_all(std::uint32_t warp, std::uint32_t mask);
  [[noreturn]] void misuse(const char* why) const;
  [[noreturn]] void stuck() const;
  [[nodiscard]] std::uint32_t lanes_of(std::uint32_t warp) const {
    const std::uint32_t lanes = threads_ - warp * kLanes;
    return lanes >= kLanes ? ~0U : (1U << lanes) - 1U;
  }

  Random random_;
  static constexpr std::size_t kSharedBytes = kMostSharedBytes + kGuardBytes;
  void map_shared() {
    void* const mapping = mmap(nullptr, kSharedBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED) throw std::bad_alloc();
    shared_ = static_cast<std::byte*>(mapping);
  }
  /// Every block has shared memory of its own, which the thread sanitizer must not take for that of the block before:
  /// it forgets what is unmapped.
  void renew_shared() {
    if (!kThreadSanitizer) return;
    munmap(shared_, kSharedBytes);
    map_shared();
  }

  std::byte* shared_ = nullptr;
  std::uint32_t threads_ = 0;
  const std::function<void()>* thread_ = nullptr;
  std::string_view what_;

  Fiber home_;
  Fiber* running_ = nullptr;  // the fiber, home_ included
  std::array<std::unique_ptr<Fiber>, kMost> fibers_{};
  std::uint32_t fibers_made_ = 0;
  std::array<Fiber*, kMost> idle_{};  // fibers whose thread ended and that took no other
  std::uint32_t idle_count_ = 0;

  std::array<std::uint32_t, kMost> order_{};  // in which threads begin
  std::uint32_t begun_ = 0;
  std::uint32_t ended_ = 0;
  std::array<std::uint32_t, kMost> ready_{};  // threads that may go on, the next one last
  std::uint32_t ready_count_ = 0;
  std::array<Fiber*, kMost> fiber_of_{};
  std::array<Lane, kMost> lane_{};
  std::array<std::uint32_t, kMost / kLanes> waiting_{};  // lanes of each warp that are at an exchange
  std::array<std::uint32_t, kMost / kLanes> live_{};     // lanes of each warp that have not ended
  std::uint32_t at_barrier_ = 0;
  Where barrier_;
  // Two of each, in turn: who leaves a barrier must not be ordered behind who comes to the next one.
  char begin_token_ = 0;
  std::array<char, 2> barrier_token_{};
  std::array<std::array<char, 2>, kMost / kLanes> warp_token_{};
  std::array<std::uint8_t, kMost / kLanes> warp_turn_{};
  std::uint32_t barrier_turn_ = 0;
  char end_token_ = 0;
};

thread_local BlockRunner::Impl* BlockRunner::Impl::current = nullptr;

bool BlockRunner::Impl::run(const Sizes& sizes, const std::function<void()>& thread, std::string_view what) {
  thread_ = &thread;
  what_ = what;
  threads_ = sizes.threads;
  gridDim = sizes.grid;
  blockDim = {threads_, 1, 1};
  for (; kThreadSanitizer && fibers_made_ < threads_; ++fibers_made_)
    fibers_[fibers_made_] = std::make_unique<Fiber>(fiber_entry, this);
  Impl* const outer = std::exchange(current, this);
  home_.adopt_thread();
  running_ = &home_;
  const std::uint32_t blocks = sizes.grid.x * sizes.grid.y * sizes.grid.z;
  const std::uint32_t first = random_.below(blocks);
  const bool backwards = (random_.next() & 1U) != 0;
  bool kept = true;
  for (std::uint32_t i = 0; i < blocks; ++i) {
    const std::uint32_t at = (first + (backwards ? blocks - 1 - i : i)) % blocks;
    blockIdx = {at % sizes.grid.x, at / sizes.grid.x % sizes.grid.y, at / sizes.grid.x / sizes.grid.y};
    renew_shared();
    happens_before(&begin_token_);
    set_bytes(shared_, static_cast<unsigned char>(kPoison), sizes.shared_bytes);
    set_bytes(shared_ + sizes.shared_bytes, kGuard, kGuardBytes);
    run_block();
    for (std::uint32_t byte = 0; byte < kGuardBytes; ++byte)
      kept = kept && shared_[sizes.shared_bytes + byte] == std::byte{kGuard};
  }
  happens_after(&end_token_);
  current = outer;
  return kept;
}

void BlockRunner::Impl::draw_order() {
  const bool whole_warps = threads_ % kLanes == 0;
  if (random_.below(8) == 0 || !whole_warps) {
    for (std::uint32_t i = 0; i < threads_; ++i) order_[i] = i;
    shuffle(order_.data(), threads_);
    return;
  }
  // One warp after the other: few fibers are begun before others end.
  const std::uint32_t warps = threads_ / kLanes;
  const auto word = random_.next();
  const auto first_warp = static_cast<std::uint32_t>(word) % warps;
  const auto first_lane = static_cast<std::uint32_t>(word >> 32) % kLanes;
  const auto lane_step = static_cast<std::uint32_t>(word >> 40) | 1U;
  for (std::uint32_t i = 0; i < threads_; ++i) {
    const std::uint32_t warp = (first_warp + i / kLanes) % warps;
    order_[i] = warp * kLanes + (first_lane + i * lane_step) % kLanes;
  }
}

void BlockRunner::Impl::run_block() {
  draw_order();
  begun_ = ended_ = ready_count_ = at_barrier_ = 0;
  for (std::uint32_t warp = 0; warp * kLanes < threads_; ++warp) {
    live_[warp] = lanes_of(warp);
    waiting_[warp] = 0;
  }
  go_on();
}

void BlockRunner::Impl::run_threads() {
  for (;;) {
    do {
      run_one(order_[begun_++]);
    } while (!kThreadSanitizer && begun_ < threads_ && (ready_count_ == 0 || (random_.next() & 3U) == 0));
    if (!kThreadSanitizer) idle_[idle_count_++] = running_;
    go_on();
  }
}

void BlockRunner::Impl::run_one(std::uint32_t thread) {
  threadIdx.x = thread;
  happens_after(&begin_token_);
  (*thread_)();
  happens_before(&end_token_);
  thread_ended(threadIdx.x);
}

void BlockRunner::Impl::thread_ended(std::uint32_t thread) {
  const std::uint32_t warp = thread / kLanes;
  ++ended_;
  live_[warp] &= ~(1U << (thread % kLanes));
  if (at_barrier_ > 0) misuse("a thread ended while others wait at __syncthreads()");
  if (waiting_[warp] != 0)
    exchange_if_all_came(warp * kLanes + static_cast<std::uint32_t>(__builtin_ctz(waiting_[warp])));
}

/// Runs what comes next; returns when the fiber that calls is what comes next.
void BlockRunner::Impl::go_on() {
  const bool begins = begun_ < threads_;
  if (ready_count_ > 0 && (!begins || (random_.next() & 3U) != 0)) {
    const std::uint32_t thread = ready_[--ready_count_];
    threadIdx.x = thread;
    leave_for(*fiber_of_[thread]);
  } else if (begins) {
    leave_for(fiber_to_begin());
  } else if (ended_ == threads_) {
    leave_for(home_);
  } else {
    stuck();
  }
}

void BlockRunner::Impl::leave_for(Fiber& fiber) {
  if (&fiber == running_) return;
  std::exchange(running_, &fiber)->switch_to(fiber);
}

Fiber& BlockRunner::Impl::fiber_to_begin() {
  if (kThreadSanitizer) return *fibers_[order_[begun_]];  // a thread for the sanitizer too
  if (idle_count_ > 0) return *idle_[--idle_count_];
  fibers_[fibers_made_] = std::make_unique<Fiber>(fiber_entry, this);
  return *fibers_[fibers_made_++];
}

void BlockRunner::Impl::shuffle(std::uint32_t* begin, std::uint32_t count) {
  for (std::uint32_t i = count; i > 1; --i) std::swap(begin[i - 1], begin[random_.below(i)]);
}

void BlockRunner::Impl::at_barrier(const Where& where) {
  const std::uint32_t thread = threadIdx.x;
  if (ended_ > 0) misuse("a thread waits at __syncthreads() that others of its block never come to: they ended");
  if (at_barrier_ > 0 && !same_line(barrier_, where)) misuse("threads of a block wait at different __syncthreads()");
  barrier_ = where;
  char* const token = &barrier_token_[barrier_turn_ & 1U];
  happens_before(token);
  fiber_of_[thread] = running_;
  if (++at_barrier_ == threads_) {
    at_barrier_ = 0;
    ++barrier_turn_;
    for (std::uint32_t i = 0; i < threads_; ++i) ready_[i] = i;
    shuffle(ready_.data(), threads_);
    ready_count_ = threads_;
  }
  go_on();
  happens_after(token);
}

std::uint64_t BlockRunner::Impl::at_exchange(const Lane& lane) {
  const std::uint32_t thread = threadIdx.x;
  const std::uint32_t warp = thread / kLanes;
  const std::uint32_t bit = 1U << (thread % kLanes);
  if ((lane.mask & bit) == 0) misuse("a lane takes part in an exchange whose mask leaves it out");
  lane_[thread] = lane;
  waiting_[warp] |= bit;
  fiber_of_[thread] = running_;
  // Exchanges of some lanes order too much rather than too little.
  const bool all = (lane.mask & lanes_of(warp)) == lanes_of(warp);
  char* const token = &warp_token_[warp][warp_turn_[warp] & 1U];
  happens_before(token);
  if (!all) happens_before(&warp_token_[warp][(warp_turn_[warp] & 1U) ^ 1U]);
  exchange_if_all_came(thread);
  go_on();
  happens_after(token);
  if (!all) happens_after(&warp_token_[warp][0]), happens_after(&warp_token_[warp][1]);
  return lane_[thread].value;
}

void BlockRunner::Impl::exchange_if_all_came(std::uint32_t thread) {
  const std::uint32_t warp = thread / kLanes;
  const Lane& lane = lane_[thread];
  const std::uint32_t needed = lane.mask & live_[warp];
  if ((waiting_[warp] & needed) != needed) return;
  for (std::uint32_t i = 0; i < kLanes; ++i) {
    if ((needed >> i & 1U) != 0 && !lane.matches(lane_[warp * kLanes + i]))
      misuse("lanes of a warp take part in different exchanges");
  }
  if ((lane.mask & lanes_of(warp)) == lanes_of(warp)) ++warp_turn_[warp];
  exchange_all(warp, needed);
}

void BlockRunner::Impl::exchange_all(std::uint32_t warp, std::uint32_t mask) {
  std::array<std::uint64_t, kLanes> got;
  Lane* const lanes = &lane_[warp * kLanes];
  const std::uint32_t first_ready = ready_count_;
  for (std::uint32_t i = 0; i < kLanes; ++i) {
    if ((mask >> i & 1U) == 0) continue;
    const Lane& lane = lanes[i];
    const std::uint32_t group = i & ~(lane.width - 1);
    std::uint32_t source = i;
    switch (lane.how) {
      case Exchange::nothing: break;
      case Exchange::across: source = i ^ lane.number; break;
      case Exchange::down: source = i + lane.number; break;
      case Exchange::from: source = group + lane.number % lane.width; break;
    }
    if (source >= group + lane.width) source = i;
    // A lane that is not there, or not taking part, gives what nobody promised.
    got[i] = (mask >> source & 1U) != 0 ? lanes[source].value : kPoison;
    ready_[ready_count_++] = warp * kLanes + i;
  }
  for (std::uint32_t i = 0; i < kLanes; ++i) {
    if ((mask >> i & 1U) != 0) lanes[i].value = got[i];
  }
  waiting_[warp] &= ~mask;
  shuffle(&ready_[first_ready], ready_count_ - first_ready);
}

void BlockRunner::Impl::misuse(const char* why) const {
  std::fprintf(stderr, "%.*s: %s (block %u,%u,%u, thread %u", static_cast<int>(what_.size()), what_.data(), why,
               blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x);
  if (at_barrier_ > 0) std::fprintf(stderr, "; __syncthreads() at %s:%d", barrier_.file, barrier_.line);
  for (std::uint32_t warp = 0; warp * kLanes < threads_; ++warp) {
    if (waiting_[warp] == 0) continue;
    const Where& where = lane_[warp * kLanes + static_cast<std::uint32_t>(__builtin_ctz(waiting_[warp]))].where;
    std::fprintf(stderr, "; an exchange of warp %u at %s:%d", warp, where.file, where.line);
    break;
  }
  std::fprintf(stderr, ")\n");
  std::abort();
}

void BlockRunner::Impl::stuck() const {
  misuse(at_barrier_ > 0 ? "some threads wait at __syncthreads() and others for their warp"
                         : "lanes wait for others of their warp that never come");
}

BlockRunner::BlockRunner(std::uint64_t seed) : impl_(std::make_unique<Impl>(seed)) {}
BlockRunner::~BlockRunner() = default;

bool BlockRunner::takes(const Sizes& sizes) {
  const Index& grid = sizes.grid;
  return grid.x > 0 && grid.y > 0 && grid.z > 0 && grid.x < (1U << 31) && grid.y < (1U << 16) && grid.z < (1U << 16) &&
         sizes.threads > 0 && sizes.threads <= kMostThreads && sizes.shared_bytes <= kMostSharedBytes;
}

bool BlockRunner::run(const Sizes& sizes, const std::function<void()>& thread, std::string_view what) {
  return impl_->run(sizes, thread, what);
}

void wait_for_block(const Where& where) {
  BlockRunner::Impl::current->at_barrier(where);
}

std::uint64_t exchange(Exchange how, std::uint32_t mask, std::uint64_t value, std::uint32_t number, std::uint32_t width,
                       const Where& where) {
  return BlockRunner::Impl::current->at_exchange({how, mask, width, number, value, where});
}

std::byte* shared_memory() {
  return BlockRunner::Impl::current->shared();
}

}  // namespace emulated
}  // namespace shard::cuda
