// The state of a training run as a checkpoint of PyTorch's libraries has it, put under the names of parameters.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executor/state/torch/sources.h"
#include "traces/base/result.h"

namespace shard::torch {

enum class Role : std::uint8_t { weight, first_moment, second_moment };
[[nodiscard]] const char* to_string(Role role);

/// A box of a tensor, whose elements lie one behind the other in a source.
struct Block {
  std::vector<std::int64_t> at, sizes;  ///< in StateTensor::placed
  std::int32_t source = 0;
  std::int64_t first = 0;  ///< element of the source
};

struct StateTensor {
  std::string name;  ///< of the parameter
  Role role = Role::weight;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> placed;  ///< the shape that blocks are boxes of: the same, or one dimension of all elements
  std::vector<Block> blocks;
};

/// How many steps have changed a parameter.
struct StepCount {
  std::string name;
  std::int64_t steps = 0;
};

struct TrainingState {
  std::string form;  ///< for people: "PyTorch Distributed Checkpoint"
  std::string path;
  std::optional<std::int64_t> step;
  std::vector<StateTensor> tensors;  ///< in the order of the files
  std::vector<StepCount> counts;
  std::vector<std::string> notes;  ///< for people: what was taken for what, what is there and not read
  Sources sources;
};

/// Names without what wrappers add: "module." in front of all, "_orig_mod.", "_fsdp_wrapped_module.",
/// "_checkpoint_wrapped_module." anywhere.
[[nodiscard]] std::string without_wrappers(std::string_view name);

/// Are all names given once, and do the blocks of each tensor make it up, no element missing or twice? Takes "module."
/// away where all names begin with it. Errors: malformed, contradiction, with the tensor's name.
[[nodiscard]] Result<void> settle(TrainingState& state);

/// All elements of a tensor as stretches of it, each once, in the order of the blocks: number of the first, and values,
/// which are gone afterwards; 256 Ki elements at most. Errors: those of Sources and of `take`.
using TakeValues = std::function<Result<void>(std::int64_t first, std::span<const float> values)>;
[[nodiscard]] Result<void> for_each_value(TrainingState& state, const StateTensor& tensor, const TakeValues& take);

/// Product; 1 of a scalar.
[[nodiscard]] std::int64_t elements_of(std::span<const std::int64_t> shape);

}  // namespace shard::torch
