// A run of a training program under eager PyTorch, as a plan.
#pragma once

#include <memory>
#include <vector>

#include "sim/ir/plan.h"
#include "sim/like/eager/megatron.h"
#include "sim/like/eager/programs.h"
#include "sim/like/eager/sharding.h"
#include "sim/like/passes.h"

namespace shard::like::eager {

/// Whose code the model and its loop are.
enum class Code : std::uint8_t { hugging_face, course, megatron, torchtitan };

struct RunOptions {
  Version version = 211;
  Machine machine{};
  Code code = Code::hugging_face;
  ProgramOptions program{};
  Rule rule = Rule::adamw;
  Update update = Update::foreach;
  ShardingOptions sharding{};
  MegatronOptions megatron{};
  bool set_to_none = true;
  /// Steps after the first: enough for what one leaves behind to meet the next.
  std::int32_t steady_steps = 2;
};

/// What it takes and gives back, in phases creation, first_step and steady_step (all steps behind the first), and
/// marks in them: the end of each phase, and of each part of a step.
struct Run {
  plan::Plan plan;
  std::vector<Mark> marks;
  std::vector<std::uint8_t> streams{};  ///< by buffer: the stream whose block it is
};

[[nodiscard]] Run run(std::shared_ptr<const model::Model> model, const RunOptions& options);

}  // namespace shard::like::eager
