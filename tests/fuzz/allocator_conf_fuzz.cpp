// Fuzzes the reader of allocator settings and the model under them: a line of settings, then requests; the books agree.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "sim/like/pytorch/allocator_conf.h"
#include "tests/fuzz/limits.h"

namespace {

using shard::Bytes;

void check(const shard::CachingAllocator& allocator) {
  Bytes reserved{0};
  Bytes allocated{0};
  for (const shard::SegmentView& segment : allocator.snapshot()) {
    reserved += segment.bytes;
    for (const shard::BlockView& block : segment.blocks)
      if (block.state == shard::BlockState::allocated) allocated += block.bytes;
  }
  if (reserved != allocator.statistics().reserved.current || allocated != allocator.statistics().allocated.current)
    std::abort();
}

/// A byte is a request: its lowest bits say which, the others how much, or what is freed.
void play(shard::CachingAllocator& allocator, std::string_view requests) {
  constexpr std::size_t kMost = 400;
  std::vector<shard::BlockId> live;
  for (const char c : requests.substr(0, kMost)) {
    const auto byte = static_cast<unsigned char>(c);
    const unsigned amount = byte >> 3;
    if ((byte & 7U) == 0) {
      allocator.empty_cache();
    } else if ((byte & 1U) != 0 || live.empty()) {
      const auto size = std::int64_t{amount + 1} << (5 + 3 * (byte >> 1 & 3U) + amount / 2);
      if (const auto block = allocator.allocate(Bytes{size}, byte >> 2 & 1U); block) live.push_back(*block);
    } else {
      const std::size_t which = amount % live.size();
      if (!allocator.free(live[which])) std::abort();
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(which));
    }
  }
  check(allocator);
  for (const shard::BlockId block : live)
    if (!allocator.free(block)) std::abort();
  allocator.empty_cache();
  check(allocator);
  if (allocator.statistics().reserved.current != Bytes{0}) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t line = text.find('\n');
  const shard::fuzz::Limits limits(size);
  shard::Result<shard::AllocatorConf> conf = shard::read_allocator_conf(text.substr(0, line));
  if (!conf || line == std::string_view::npos) return 0;
  constexpr Bytes kDevice{std::int64_t{1} << 33};
  conf->options.allowed = Bytes{kDevice.count() / 2};
  conf->options.expandable_space = kDevice;
  shard::SimulatedDevice device(kDevice);
  shard::CachingAllocator allocator(device, conf->options);
  play(allocator, text.substr(line + 1));
  return 0;
}
