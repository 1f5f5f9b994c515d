// How a model is sharded and stepped, as a struct: the fields that most runs set, each an option of `shardscope train`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <shardscope/export.h>

namespace shardscope {

/// Words of a command line, as the shell would hand them over: {"--stage", "3", "--unit", "chunk"}.
using Options = std::vector<std::string>;

/// What is left open has the default of `shardscope train`; words are those of its help. A field that is missing here
/// is said in `more`.
struct Strategy {
  std::optional<int> ranks{};                  ///< --ranks: threads of this process, a rank each
  std::optional<int> stage{};                  ///< --stage: ZeRO, 0 to 3
  std::optional<std::string> unit{};           ///< --unit: tensor, bucket, module, chunk
  std::optional<std::string> chunk_size{};     ///< --chunk-size: elements ("32Mi"), search, none
  std::optional<std::string> placement{};      ///< --placement: device, host, static, auto
  std::optional<std::string> precision{};      ///< --precision: fp32, bf16, fp16
  std::optional<std::string> recompute{};      ///< --recompute: none, block, selective
  std::optional<std::string> optimizer{};      ///< --optimizer: sgd, adam, adamw
  std::optional<double> learning_rate{};       ///< --lr
  std::optional<std::int64_t> micro_batch{};   ///< --micro-batch: sequences per rank and micro-step
  std::optional<std::int64_t> global_batch{};  ///< --global-batch: sequences per step
  std::optional<std::int64_t> sequence{};      ///< --sequence: tokens
  std::optional<int> threads{};                ///< --threads: of each rank
  std::optional<std::uint64_t> seed{};         ///< --seed: of parameters and data
  std::optional<std::string> data{};           ///< --data: random (as it is without), text:FILE, FILE.bin
  Options more{};                              ///< further options, behind these
};

/// The same as words.
[[nodiscard]] SHARDSCOPE_API Options to_options(const Strategy& strategy);

}  // namespace shardscope
