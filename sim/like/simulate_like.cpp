// Rules to plan, plan through the allocator.
#include "sim/like/simulate_like.h"

#include <algorithm>
#include <utility>

#include "sim/ir/effects.h"
#include "sim/like/frameworks/framework.h"
#include "sim/like/pytorch_1_8.h"

namespace shard::like {
namespace {

constexpr std::string_view kPytorch18 = "pytorch@1.8";

std::vector<CollectiveSum> count_collectives(const plan::Plan& plan) {
  std::vector<CollectiveSum> sums;
  for (const plan::PhaseOps& phase : plan.phases) {
    for (const plan::Op& op : phase.ops) {
      const std::optional<plan::Sends> sends = plan::effects(plan, op).sends;
      if (!sends) continue;
      auto it = std::find_if(sums.begin(), sums.end(),
                             [&](const CollectiveSum& s) { return s.phase == phase.phase && s.kind == sends->kind; });
      if (it == sums.end()) it = sums.insert(sums.end(), {.phase = phase.phase, .kind = sends->kind});
      ++it->count;
      it->bytes += sends->bytes;
    }
  }
  return sums;
}

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
  Result<Replay> replayed = replay(like.plan, like.marks, *allocator, options.device_capacity);
  const bool fits = replayed.has_value() || replayed.error().code != Errc::does_not_fit;
  if (!fits) replayed = replay(like.plan, like.marks, *allocator, std::nullopt);
  if (!replayed) return replayed.error();

  LikeResult result{.framework = std::string(kPytorch18),
                    .model = model.name,
                    .strategy = like.plan.strategy,
                    .rank = like.plan.rank,
                    .moments = std::move(replayed->moments),
                    .statistics = replayed->statistics,
                    .optimizer_state = Bytes{0},
                    .collectives = count_collectives(like.plan),
                    .device_capacity = options.device_capacity,
                    .fits = fits};
  for (const plan::Buffer& buffer : like.plan.buffers)
    if (buffer.category == Category::optimizer_state) result.optimizer_state += buffer.bytes;
  return result;
}

}  // namespace shard::like
