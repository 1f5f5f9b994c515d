// Fuzzes the recording parser and the replay behind it: any bytes end in a result or an error, and the books agree.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>

#include "sim/like/pytorch/replay.h"
#include "tests/fuzz/limits.h"

namespace {

int fuzz_one(const std::uint8_t* data, std::size_t size) {
  std::istringstream input(std::string(reinterpret_cast<const char*>(data), size));
  const shard::fuzz::Limits limits(size);
  const shard::Result<shard::AllocatorReplay> replay = shard::replay_allocator(input, "fuzz");
  if (!replay) return 0;
  if (replay->same_address_count > replay->allocation_count || replay->same_segment_count > replay->segment_count ||
      replay->same_segment_free_count > replay->segment_free_count || shard::to_text(*replay).empty()) {
    std::abort();
  }
  return 0;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz_one(data, size);
}
