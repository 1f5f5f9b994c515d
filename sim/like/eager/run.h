// A run of a training program under eager PyTorch, as a program of allocations.
#pragma once

#include <memory>

#include "sim/like/eager/megatron.h"
#include "sim/like/eager/programs.h"
#include "sim/like/eager/sharding.h"
#include "sim/like/program/program.h"

namespace shard::like::eager {

/// Whose code the model and its loop are.
/// In the order of --model-code's words, behind which come those that a framework has by itself.
enum class Code : std::uint8_t { hugging_face, course, torchtitan, megatron };

struct RunOptions {
  Version version = kNewest;
  Machine machine{};
  Code code = Code::hugging_face;
  ProgramOptions program{};
  Rule rule = Rule::adamw;
  Update update = Update::foreach;
  ShardingOptions sharding{};
  MegatronOptions megatron{};
  bool set_to_none = true;
  bool clip = false;             ///< gradients are clipped by their norm before the optimizer's step
  std::int64_t micro_steps = 1;  ///< forwards and backwards before it
  /// Steps after the first: enough for what one leaves behind to meet the next.
  std::int32_t steady_steps = 2;
};

/// What it takes and gives back, in phases creation, first_step and steady_step (all steps behind the first), and
/// marks in them: the end of each phase, and of each part of a step.
struct Run {
  like::Program program;
};

[[nodiscard]] Run run(std::shared_ptr<const model::Model> model, const RunOptions& options);

}  // namespace shard::like::eager
