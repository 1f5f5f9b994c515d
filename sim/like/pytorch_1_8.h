// PyTorch 1.8: DistributedDataParallel with a local optimizer, or with ZeroRedundancyOptimizer, as a plan.
#pragma once

#include <memory>
#include <vector>

#include "sim/ir/plan.h"
#include "sim/like/passes.h"
#include "sim/like/rules.h"
#include "sim/model/graph.h"
#include "sim/strategy/strategy.h"
#include "traces/base/result.h"

namespace shard::like {

/// Rank 0's plan with its lifetimes (phases creation and first_step), and where the script prints.
struct LikePlan {
  plan::Plan plan;
  std::vector<Mark> marks;
};

/// What the strategy must be: stage 0 (every rank steps all parameters), or stage 1 with the partition by parameter
/// (ZeroRedundancyOptimizer, parameters_as_bucket_view = False). Errc::contradiction for other stages, the flat
/// partition in stage 1, unit chunk, and what plan::check() refuses.
[[nodiscard]] Result<void> check_pytorch_1_8(const model::Model& model, const plan::Strategy& strategy);

/// The compiler's passes build, differentiate and recompute, then those of passes.h. The strategy has passed
/// check_pytorch_1_8(). Gradients accumulate in place; micro-steps but the last run under no_sync().
///
/// Limits. The first step is what is modelled: buckets that DDP makes again before the second, in the order in which
/// gradients came, are not. What Python's own names keep alive is left out: the loss and the gradient it starts from
/// (512 bytes each while backward runs), and the last denominator of Adam's loop (as large as the parameter before).
/// So are module buffers, and memory that does not come from the caching allocator (contexts, cuBLAS, NCCL). For
/// transformers, what an operator of ours saves stands for what autograd saves: gelu keeps its input only, where a
/// tanh formula written in Python keeps every intermediate result; dropout and masks keep nothing.
[[nodiscard]] LikePlan pytorch_1_8_plan(std::shared_ptr<const model::Model> model, const plan::Strategy& strategy,
                                        const Rules& rules = {});

}  // namespace shard::like
