// One number a thread; pieces that are only read, by address.
#include "profiler/standin/expected.h"

#include <cstring>
#include <map>
#include <mutex>

#include "profiler/standin/handles.h"

namespace shard::standin {
namespace {

thread_local std::int64_t expected = -1;
thread_local bool finding = false;

struct OnlyRead {
  std::mutex mutex;
  std::map<std::uintptr_t, std::size_t> pieces;
};
OnlyRead& only_read_pieces() {
  static auto* const pieces = new OnlyRead;
  return *pieces;
}

}  // namespace

void expect(std::int64_t count) {
  expected = count;
  finding = count >= 0;
}

bool take_expected(void* to, std::size_t bytes) {
  if (finding && bytes == sizeof(bool)) {
    *static_cast<bool*>(to) = true;
    return true;
  }
  if (expected < 0 || (bytes != sizeof(std::int32_t) && bytes != sizeof(std::int64_t))) return false;
  std::memcpy(to, &expected, bytes);  // little endian, as GPUs' hosts are
  expected = -1;
  return true;
}

bool only_read(const void* address) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const std::lock_guard lock(only_read_pieces().mutex);
  const auto& pieces = only_read_pieces().pieces;
  const auto next = pieces.upper_bound(at);
  return next != pieces.begin() && at < std::prev(next)->first + std::prev(next)->second;
}

}  // namespace shard::standin

using namespace shard::standin;

/// What the next number is that this thread reads of a device and nobody knows, and that what it is made of is as it
/// should be; below zero: nothing.
STANDIN void shardscope_standin_expect(long long count) {
  expect(count);
}
/// No kernel writes to a piece from now on, whatever a launch looks like; 0 bytes: they may again.
STANDIN void shardscope_standin_only_read(const void* address, std::size_t bytes) {
  const std::lock_guard lock(only_read_pieces().mutex);
  if (bytes == 0)
    only_read_pieces().pieces.erase(reinterpret_cast<std::uintptr_t>(address));
  else
    only_read_pieces().pieces[reinterpret_cast<std::uintptr_t>(address)] = bytes;
}
