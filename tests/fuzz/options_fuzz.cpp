// Fuzz target: no file given by --config makes a command line crash, or fail without a word, or leave a value out of
// its bounds, whether its options take lists or not.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "sim/cli/command_line.h"
#include "tests/fuzz/limits.h"

namespace {

enum class Unit { tensor, chunk };

/// One option of every kind.
void parse(const std::string& path, bool lists) {
  using namespace shard;
  std::string model;
  std::vector<std::string> traces;
  int ranks = 1;
  std::int64_t steps = 0;
  std::uint64_t seed = 0;
  double rate = 0;
  Elems chunk{1};
  std::optional<Bytes> capacity;
  Unit unit = Unit::tensor;
  bool json = false, overlap = true;
  cli::Command command("shardscope", "search", "finds", "Details.");
  cli::Group group = command.group("All");
  group.add("model", &model, "NAME", "a model").required();
  group.add("trace", &traces, "FILE", "traces");
  group.add("world-size", &ranks, "N", "ranks").alias("ranks").least(1);
  group.add("steps", &steps, "N", "steps");
  group.add("seed", &seed, "N", "seed");
  group.add("rate", &rate, "R", "rate").most(1);
  group.add("chunk-size", &chunk, "ELEMS", "elements");
  group.add("capacity", &capacity, "BYTES", "bytes");
  group.add_choice("unit", &unit, {{"tensor", Unit::tensor}, {"chunk", Unit::chunk}}, "what is gathered");
  group.add_flag("json", &json, "as JSON");
  group.add_switch("overlap", &overlap, "overlap");
  if (lists)
    command.take_lists([](const std::string&, const std::vector<std::string>& values) {
      if (values.size() < 2) std::abort();
      return values.size() - 1;
    });
  const std::vector<std::string> arguments{"--config", path};
  const Result<cli::Outcome> outcome = command.parse(arguments);
  if (!outcome && outcome.error().what.empty()) std::abort();
  if (outcome && (model.empty() && command.help().empty())) std::abort();
  if (outcome && (ranks < 1 || rate > 1)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const int file = memfd_create("options", MFD_CLOEXEC);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  if (file < 0 || ftruncate(file, 0) != 0) std::abort();
  if (pwrite(file, data, size, 0) != static_cast<ssize_t>(size)) std::abort();
  const shard::fuzz::Limits limits(size);
  parse(path, false);
  parse(path, true);
  return 0;
}
