// Fuzzes the reader of programs and the replay behind it: what is read is written again as it was, and the books agree.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <string>
#include <string_view>

#include "sim/like/program/program_file.h"
#include "sim/like/replay.h"
#include "tests/fuzz/limits.h"

namespace {

using shard::Bytes;

void replay(const shard::like::Program& program, bool expandable) {
  constexpr Bytes kDevice{std::int64_t{1} << 33};
  shard::like::ReplayOptions options;
  options.device_capacity = kDevice;
  options.allocator.expandable = expandable;
  options.allocator.expandable_space = kDevice;
  const auto answer = shard::like::replay(program, options);
  if (!answer) return;
  Bytes together{0};
  for (const shard::like::Block& block : answer->moments.back().blocks) together += block.taken;
  if (together != answer->moments.back().max_allocated || answer->peak_allocated() > answer->peak_active() ||
      answer->peak_active() > answer->peak_reserved() || answer->largest_gap > answer->inactive ||
      (answer->fits && answer->peak_reserved() > kDevice))
    std::abort();
}

/// The same with an end that counts its lines: what was changed is to be read, not its number missed.
std::string with_end(std::string_view text) {
  constexpr std::string_view kOthers[] = {"shardscope", "framework", "model",     "steps",   "allocator",  "world_size",
                                          "rank",       "name",      "addresses", "kernels", "uncertainty"};
  std::string whole;
  std::size_t steps = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at), word = line.substr(0, line.find(' '));
    at = end + 1;
    if (word == "end") continue;
    whole.append(line) += '\n';
    steps += std::find(std::begin(kOthers), std::end(kOthers), word) == std::end(kOthers) ? 1U : 0U;
  }
  return whole + "end " + std::to_string(steps) + "\n";
}

void fuzz(std::string_view text) {
  const shard::Result<shard::like::Program> program = shard::like::read_program(text, "fuzz");
  if (!program) return;
  const std::string written = to_text(*program);
  const shard::Result<shard::like::Program> again = shard::like::read_program(written, "again");
  if (!again || to_text(*again) != written) std::abort();
  constexpr std::size_t kMostSteps = 10'000;
  if (program->steps.size() > kMostSteps) return;
  replay(*program, false);
  replay(*program, true);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const shard::fuzz::Limits limits(size);
  fuzz(text);
  fuzz(with_end(text));
  return 0;
}
