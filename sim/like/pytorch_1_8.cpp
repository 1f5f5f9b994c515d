// The passes of PyTorch 1.8, in order.
#include "sim/like/pytorch_1_8.h"

#include <string>
#include <utility>

#include "sim/compile/compile.h"
#include "sim/compile/lifetimes.h"
#include "sim/compile/passes/passes.h"
#include "sim/strategy/checks.h"

namespace shard::like {
namespace {

Error contradiction(std::string what, std::string help) {
  return {.code = Errc::contradiction, .what = std::move(what), .where = "--like pytorch@1.8", .help = std::move(help)};
}

}  // namespace

Result<void> check_pytorch_1_8(const model::Model& model, const plan::Strategy& s) {
  if (s.stage == 2 || s.stage == 3)
    return contradiction("PyTorch 1.8 has no sharded gradients" +
                             std::string(s.stage == 3 ? " and no sharded parameters" : "") + ", but --stage is " +
                             std::to_string(s.stage),
                         "--stage 1 --partition parameter");
  if (s.stage == 1 && s.partition == plan::Partition::flat)
    return contradiction(
        "--stage 1 with --partition flat: PyTorch 1.8's ZeroRedundancyOptimizer gives whole parameters to ranks and "
        "cuts none",
        "--partition parameter");
  if (s.unit == plan::UnitKind::chunk)
    return contradiction("--unit chunk: PyTorch 1.8 has no chunks, DistributedDataParallel makes its own buckets",
                         "leave --unit out");
  if (s.tensor_parallel > 1)
    return contradiction("--tensor-parallel: PyTorch 1.8 has replicas and no parts of a model",
                         "leave --tensor-parallel out");
  if (!s.freeze.empty())
    return contradiction("--freeze: PyTorch 1.8's buckets are emulated for models that are trained whole",
                         "leave --freeze out");
  if (s.recompute == plan::Recompute::selective)
    return contradiction("--recompute selective: an mlp has no operator that is made again by itself",
                         "--recompute block");
  return plan::check(model, s);
}

LikePlan pytorch_1_8_plan(std::shared_ptr<const model::Model> model, const plan::Strategy& strategy,
                          const Rules& rules) {
  plan::Strategy like = strategy;
  like.reproducible = false;
  LikePlan result;
  plan::Draft draft = plan::recompute(plan::differentiate(plan::build(std::move(model), like, 0)));
  draft = distribute(script(autograd(std::move(draft))), rules, result.marks);
  result.plan = optimize(std::move(draft), rules, result.marks);
  plan::find_lifetimes(result.plan);
  std::int32_t id = 0;
  for (plan::PhaseOps& phase : result.plan.phases)
    for (plan::Op& op : phase.ops) op.id = OpId{id++};
  return result;
}

}  // namespace shard::like
