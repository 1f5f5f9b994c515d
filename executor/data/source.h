// Where batches come from: any micro-batch of any step on demand, the same on every rank that asks for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executor/cpu/kernels/threads.h"
#include "sim/model/graph.h"
#include "traces/base/result.h"
#include "traces/base/word.h"

namespace shard {

/// Which sequences of files a run sees after which.
enum class DataOrder : std::uint8_t {
  random,      ///< each begins anywhere, drawn by (seed, its number in the run)
  sequential,  ///< windows side by side, from the first to the last of all files, and again
  shuffled,    ///< each window once an epoch, in an order drawn by (seed, epoch)
};
[[nodiscard]] constexpr Word word(DataOrder v) {
  switch (v) {
    case DataOrder::random: return {"random", "any place, again and again, as nanoGPT does"};
    case DataOrder::sequential: return {"sequential", "one window behind the other, as llm.c does"};
    case DataOrder::shuffled: return {"shuffled", "each window once an epoch, in another order each time"};
  }
  return {};
}
[[nodiscard]] constexpr const char* to_string(DataOrder v) {
  return word(v).text;
}

/// Shapes of one micro-batch, and what the samples depend on besides its number.
struct BatchShape {
  std::int64_t batch = 1;     ///< sequences, or mlp samples
  std::int64_t sequence = 1;  ///< tokens per sequence
  std::uint64_t seed = 0;
  DataOrder order = DataOrder::random;
  double begin = 0;  ///< of a file's tokens, which share of them comes before what samples are of
  double end = 1;    ///< and where that ends
};

/// Fills micro-batches. A micro-batch is a function of (seed, its number in the run) alone: strategies that deal the
/// same global batch to other ranks see the same data.
class DataSource {
 public:
  virtual ~DataSource() = default;
  /// input and target as the model's graph lays them out. number counts from 0 over the run. Fails with malformed or io
  /// when a file is not what it was when it was opened.
  [[nodiscard]] virtual Result<void> fill(cpu::ThreadPool& pool, std::int64_t number, std::span<std::byte> input,
                                          std::span<std::byte> target) = 0;
  /// For people: "text:FILE, 35,149 tokens".
  [[nodiscard]] virtual std::string describe() const = 0;
};

/// `argument`: "random", "text:FILE" (bytes as tokens), or the path of a token file of nanoGPT (bare uint16), llm.c or
/// Megatron-LM, recognised by its head or the index beside it, whose name ends in .bin; or several (data_files.h).
/// Windows are of one file. Fails with no_input (absent, unreadable, no regular file: a pipe is not waited for),
/// malformed (empty, odd size, too short for one sequence), contradiction (tokens beyond the model's vocabulary, text
/// for an mlp, an order of random data), usage (unknown form).
[[nodiscard]] Result<std::unique_ptr<DataSource>> open_data(std::string_view argument, const model::Model& model,
                                                            const BatchShape& shape);

/// The files that `argument` names, their indices among them; none for "random", nor where it names none.
[[nodiscard]] std::vector<std::filesystem::path> files_of_data(const std::string& argument);

}  // namespace shard
