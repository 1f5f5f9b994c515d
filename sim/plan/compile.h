// The compiler: model and strategy in, one plan per class of equal ranks out, through passes that can each be printed.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/plan/plan.h"
#include "traces/base/result.h"

namespace shard::plan {

/// Pass names in order: build, differentiate, recompute, accumulate, tensor_parallel, shard, optimize, place, schedule,
/// allocate.
[[nodiscard]] std::vector<std::string_view> pass_names();

/// Plans of all ranks of a run. Ranks whose plans are equal share one.
struct PlanSet {
  std::vector<Plan> classes;
  std::vector<std::int32_t> class_of_rank;  ///< index into classes, one per rank
  std::string hash;                         ///< over the text of all classes and who is in which; 32 hex digits
  std::string parent_hash{};                ///< of the plan whose measurement this one was made from; empty for none
  [[nodiscard]] const Plan& of_rank(std::int32_t rank) const {
    return classes[static_cast<std::size_t>(class_of_rank[static_cast<std::size_t>(rank)])];
  }
};

/// Compiles every class. Fails with contradiction (78) when the strategy contradicts itself or the model.
[[nodiscard]] Result<PlanSet> compile(std::shared_ptr<const model::Model> model, const Strategy& strategy);

/// The plan of rank 0 after the named pass, for reading; unknown names fail with usage (2).
[[nodiscard]] Result<Plan> compile_until(std::shared_ptr<const model::Model> model, const Strategy& strategy,
                                         std::string_view pass);

/// Checks a strategy against itself and a model; what compile() refuses.
[[nodiscard]] Result<void> check(const model::Model& model, const Strategy& strategy);
/// Of these checks, whether the ranks can share the model: what is needed to know the part that a rank has.
[[nodiscard]] Result<void> check_tensor_parallel(const model::Model& model, const Strategy& strategy);

}  // namespace shard::plan
