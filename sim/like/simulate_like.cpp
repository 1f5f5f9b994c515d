// Rules to plan, plan through the allocator.
#include "sim/like/simulate_like.h"

#include <algorithm>
#include <utility>

#include "sim/like/frameworks/framework.h"
#include "sim/like/plan_program.h"
#include "sim/like/pytorch_1_8.h"

namespace shard::like {
namespace {

constexpr std::string_view kPytorch18 = "pytorch@1.8";

}  // namespace

Result<LikeResult> simulate_like(std::string_view name_at_version, const model::Model& model,
                                 const plan::Strategy& strategy, const LikeOptions& options) {
  if (std::ranges::none_of(named_frameworks(name_at_version),
                           [](const Framework* each) { return each->teller == Teller::pytorch_1_8; }))
    return unknown_framework(name_at_version);
  if (Result<void> ok = check_pytorch_1_8(model, strategy); !ok) return ok.error();
  const Result<CachingAllocatorOptions> allocator =
      options.allocator ? *options.allocator : caching_allocator_options(kPytorch18);
  if (!allocator) return allocator.error();

  const LikePlan like = pytorch_1_8_plan(std::make_shared<const model::Model>(model), strategy, options.rules);
  Program program = program_of(like.plan, like.marks);
  program.origin = {.framework = std::string(kPytorch18),
                    .model = model.name,
                    .steps = "first step",
                    .world_size = like.plan.strategy.world_size,
                    .rank = like.plan.rank,
                    .addresses_upwards = true,
                    .all_kernels = true};
  Result<MemoryAnswer> answer = replay(program, {.allocator = *allocator, .device_capacity = options.device_capacity});
  if (!answer) return answer.error();
  LikeResult result{std::move(*answer)};
  result.framework = kPytorch18;
  result.model = model.name;
  result.strategy = like.plan.strategy;
  result.program = std::make_shared<const Program>(std::move(program));
  return result;
}

}  // namespace shard::like
