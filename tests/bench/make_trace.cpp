// Writes a trace of any size, for measuring readers and the viewer.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "tests/bench/synthetic_trace.h"

namespace {

using namespace shard;

constexpr const char* kUsage =
    "Usage: make_trace --spans N --memory-events M [--ranks R] [--chunks C] [--chunk-states S] [--shape SHAPE] OUT\n"
    "Writes exactly N spans (100000) and M memory events (20000): R ranks (8) training, nested spans on six streams\n"
    "each, C chunks of parameters (96) with S changes of state (4 a chunk) on rank 0, counters, and one peak that "
    "lasts\n"
    "1 ns. SHAPE: training (default); or what is hard for a viewer: unsorted, nested (1,000 deep), one-lane, lanes\n"
    "(10,000), crossing (10,000 at a time), names (one for every span).\n";

constexpr std::array<std::pair<std::string_view, Shape>, 7> kShapes{{{"training", Shape::training},
                                                                     {"unsorted", Shape::unsorted},
                                                                     {"nested", Shape::nested},
                                                                     {"one-lane", Shape::one_lane},
                                                                     {"lanes", Shape::lanes},
                                                                     {"crossing", Shape::crossing},
                                                                     {"names", Shape::names}}};

struct Options : SyntheticTrace {
  std::string out;
};

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--shape" && i + 1 < argc) {
      const auto shape = std::ranges::find(kShapes, std::string_view(argv[++i]), [](const auto& s) { return s.first; });
      if (shape == kShapes.end()) return false;
      options.shape = shape->second;
      continue;
    }
    std::int64_t* value = word == "--spans"           ? &options.spans
                          : word == "--memory-events" ? &options.memory_events
                          : word == "--ranks"         ? &options.ranks
                          : word == "--chunks"        ? &options.chunks
                          : word == "--chunk-states"  ? &options.chunk_states
                                                      : nullptr;
    if (value == nullptr) {
      if (word.starts_with("-") || !options.out.empty()) return false;
      options.out = word;
      continue;
    }
    if (++i == argc) return false;
    const std::string_view text = argv[i];
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
    if (error != std::errc() || end != text.data() + text.size() || *value < 0) return false;
  }
  return !options.out.empty() && options.ranks > 0 && options.chunks > 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, options)) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  const Result<void> written = write_synthetic_trace(options.out, options);
  if (written) return 0;
  std::fprintf(stderr, "make_trace: %s\n", to_string(written.error()).c_str());
  return exit_code(written.error().code);
}
