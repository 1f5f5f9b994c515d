// Runs one fuzz target, linked in, on mutations of its corpus: the same inputs every time, with any compiler.
// Macros: FUZZ_CORPUS, the folder of its first inputs (those in folders inside it too); FUZZ_RUNS, how many mutated
// inputs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

std::vector<std::string> corpus() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(FUZZ_CORPUS)) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> inputs;
  for (const auto& path : paths) {
    std::ifstream in(path, std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return inputs;
}

/// One to eight random changes: a bit, a byte, an interesting integer, a cut, a repeated or moved piece.
std::string mutated(std::string text, std::mt19937& random) {
  const auto below = [&](std::size_t n) { return n == 0 ? 0 : random() % n; };
  for (std::size_t changes = 1 + below(8); changes > 0 && !text.empty(); --changes) {
    const std::size_t at = below(text.size());
    switch (below(6)) {
      case 0: text[at] = static_cast<char>(text[at] ^ (1 << below(8))); break;
      case 1: text[at] = static_cast<char>(random()); break;
      case 2: {
        constexpr std::uint32_t values[] = {0, 1, 0x7f, 0x80, 0xff, 0x7fff'ffff, 0x8000'0000, 0xffff'ffff};
        const std::uint32_t value = values[below(std::size(values))];
        for (std::size_t i = 0; i < 4 && at + i < text.size(); ++i) text[at + i] = static_cast<char>(value >> (8 * i));
        break;
      }
      case 3: text.resize(at); break;
      case 4: text.insert(at, text.substr(below(text.size()), below(64))); break;
      case 5: text.erase(at, below(64)); break;
    }
  }
  return text;
}

void run(const std::string& text) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
}

TEST(Mutation, NoInputCrashes) {
  const std::vector<std::string> inputs = corpus();
  ASSERT_FALSE(inputs.empty()) << FUZZ_CORPUS;
  run("");
  for (const std::string& input : inputs) run(input);
  std::mt19937 random(1);
  for (int i = 0; i < FUZZ_RUNS; ++i) run(mutated(inputs[random() % inputs.size()], random));
}

}  // namespace
