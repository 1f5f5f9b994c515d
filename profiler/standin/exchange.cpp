// A box is a file: the rank that writes it, then messages, each a head and its values.
#include "profiler/standin/exchange.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <map>
#include <mutex>
#include <vector>

namespace shard::standin {
namespace {

struct Head {
  std::int32_t kind = 0, known = 0;
  std::uint64_t bytes = 0;
};

const std::string& folder() {
  static const auto* const folder = [] {
    const char* const named = std::getenv("SHARDSCOPE_STANDIN_RANKS");
    return new std::string(named == nullptr ? "" : named);
  }();
  return *folder;
}

bool write_all(int file, const void* from, std::size_t bytes) {
  const auto* at = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t more = ::write(file, at, bytes);
    if (more < 0 && errno == EINTR) continue;
    if (more <= 0) return false;
    at += more;
    bytes -= static_cast<std::size_t>(more);
  }
  return true;
}

/// False where the file does not have so much yet.
bool read_at(int file, void* to, std::size_t bytes, std::uint64_t offset) {
  auto* at = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t more = ::pread(file, at, bytes, static_cast<off_t>(offset));
    if (more < 0 && errno == EINTR) continue;
    if (more <= 0) return false;
    at += more;
    offset += static_cast<std::uint64_t>(more);
    bytes -= static_cast<std::size_t>(more);
  }
  return true;
}

/// A box that this process reads: where its messages begin, as far as they were looked at.
struct Opened {
  int file = -1;
  std::vector<std::uint64_t> at{sizeof(std::int32_t)};
};

struct Boxes {
  std::mutex mutex;
  std::map<std::string, int> written;
  std::map<std::string, Opened> read;
};
Boxes& boxes() {
  static auto* const boxes = new Boxes;
  return *boxes;
}

/// What there is of it now.
std::optional<Message> look(const std::string& box, std::uint64_t number) {
  const std::lock_guard lock(boxes().mutex);
  Opened& opened = boxes().read[box];
  if (opened.file < 0) opened.file = ::open((folder() + "/" + box).c_str(), O_RDONLY | O_CLOEXEC);
  if (opened.file < 0) return std::nullopt;
  Head head;
  while (opened.at.size() <= number) {
    if (!read_at(opened.file, &head, sizeof(head), opened.at.back())) return std::nullopt;
    opened.at.push_back(opened.at.back() + sizeof(head) + head.bytes);
  }
  const std::uint64_t at = opened.at[number];
  if (!read_at(opened.file, &head, sizeof(head), at)) return std::nullopt;
  Message message{.kind = head.kind, .known = head.known, .values = Bytes(head.bytes)};
  if (!read_at(opened.file, message.values.data(), head.bytes, at + sizeof(head))) return std::nullopt;
  return message;
}

bool has_ended(std::int32_t rank) {
  struct stat found {};
  return ::stat((folder() + "/" + kEndedPrefix + std::to_string(rank)).c_str(), &found) == 0;
}

/// The writer of a box; none before it has written anything.
std::optional<std::int32_t> writer_of(const std::string& box) {
  const std::lock_guard lock(boxes().mutex);
  std::int32_t rank = -1;
  const Opened& opened = boxes().read[box];
  if (opened.file < 0 || !read_at(opened.file, &rank, sizeof(rank), 0)) return std::nullopt;
  return rank;
}

/// Of a box that nobody has begun: whether nobody is left who could.
bool all_others_have_ended() {
  const char* const said_size = std::getenv("WORLD_SIZE");
  const char* const said_rank = std::getenv("RANK");
  const int size = said_size == nullptr ? 1 : std::atoi(said_size),
            own = said_rank == nullptr ? 0 : std::atoi(said_rank);
  for (int rank = 0; rank < size; ++rank)
    if (rank != own && !has_ended(rank)) return false;
  return true;
}

}  // namespace

bool others_run() {
  return !folder().empty();
}

void post(const std::string& box, const Message& message) {
  const std::lock_guard lock(boxes().mutex);
  auto found = boxes().written.find(box);
  if (found == boxes().written.end()) {
    const int file = ::open((folder() + "/" + box).c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    const char* const said = std::getenv("RANK");
    const std::int32_t rank = said == nullptr ? 0 : std::atoi(said);
    if (file >= 0) write_all(file, &rank, sizeof(rank));
    found = boxes().written.emplace(box, file).first;
  }
  if (found->second < 0) return;
  // One piece: who reads it sees all of it or waits.
  Bytes whole(sizeof(Head) + message.values.size());
  const Head head{.kind = message.kind, .known = message.known, .bytes = message.values.size()};
  __builtin_memcpy(whole.data(), &head, sizeof(head));
  if (!message.values.empty())
    __builtin_memcpy(whole.data() + sizeof(head), message.values.data(), message.values.size());
  write_all(found->second, whole.data(), whole.size());
}

std::optional<Message> fetch(const std::string& box, std::uint64_t number) {
  long nanoseconds = 50'000;
  while (true) {
    if (std::optional<Message> message = look(box, number)) return message;
    const std::optional<std::int32_t> writer = writer_of(box);
    // Looked at once more: it may have written just before it ended.
    if (writer ? has_ended(*writer) : all_others_have_ended()) return look(box, number);
    const timespec pause{.tv_sec = 0, .tv_nsec = nanoseconds};
    ::nanosleep(&pause, nullptr);
    nanoseconds = nanoseconds < 5'000'000 ? nanoseconds * 2 : 10'000'000;
  }
}

}  // namespace shard::standin
