// Fuzz target: no words (one a line) make the reader of torchrun's line crash, and what it reads are some of them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "profiler/commands/launch_line.h"
#include "tests/fuzz/limits.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const shard::fuzz::Limits limits(size);
  std::istringstream lines(std::string(reinterpret_cast<const char*>(data), size));
  std::vector<std::string> words;
  for (std::string word; std::getline(lines, word);) words.push_back(word);
  const auto line = shard::dryrun::read_torchrun(words, 8);
  if (!line) return 0;
  if (shard::dryrun::launcher_of(words).empty() || line->hosts < 1 || line->ranks_per_host < 1) std::abort();
  if (line->first_rank >= line->hosts * line->ranks_per_host || line->program.back() != words.back()) std::abort();
  return 0;
}
