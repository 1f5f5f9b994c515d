// Reads a DeepSpeed configuration: the sizes that steer stage 3.
#include <algorithm>
#include <optional>
#include <string>

#include "sim/foreign/deepspeed.h"

namespace shard::foreign {
namespace {

/// A number of elements, under its two names.
struct Size {
  const char* keys[2];
  std::string_view option;
  /// What transformers makes of "auto" (integrations/deepspeed.py), by the hidden size; null: it has none.
  double (*automatic)(double hidden) = nullptr;
  /// Why our own executor, which gathers and releases whole units, does without.
  std::string_view not_here;
};

constexpr std::string_view kUnits =
    "how DeepSpeed orders its gathers: Shardscope gathers unit by unit (--unit, --prefetch)";

constexpr Size kSizes[] = {
    {.keys = {"/zero_optimization/stage3_prefetch_bucket_size", "/zero_optimization/prefetch_bucket_size"},
     .option = "stage3-prefetch-bucket-size",
     .automatic = [](double hidden) { return 0.9 * hidden * hidden; },
     .not_here = "Shardscope runs whole units ahead (--prefetch N), not so many elements"},
    {.keys = {"/zero_optimization/stage3_param_persistence_threshold",
              "/zero_optimization/param_persistence_threshold"},
     .option = "stage3-param-persistence-threshold",
     .automatic = [](double hidden) { return 10 * hidden; },
     .not_here = "small parameters stay gathered in DeepSpeed; here every unit is released"},
    {.keys = {"/zero_optimization/stage3_max_live_parameters", "/zero_optimization/max_live_parameters"},
     .option = "stage3-max-live-parameters",
     .not_here = kUnits},
    {.keys = {"/zero_optimization/stage3_max_reuse_distance", "/zero_optimization/max_reuse_distance"},
     .option = "stage3-max-reuse-distance",
     .not_here = "DeepSpeed keeps what it soon uses again; here --keep-gathered keeps all of it"},
    {.keys = {"/zero_optimization/sub_group_size", nullptr},
     .option = "sub-group-size",
     .not_here = "the optimizer's step takes unit by unit here, whatever the size of DeepSpeed's tiles"},
};

Result<void> settle_size(Reading& reading, const Size& size, const Leaf& leaf) {
  const std::string& key = leaf.pointer;
  if (leaf.value->kind == Kind::null) return reading.leave(key, "not set"), Result<void>();
  const bool chosen = is_auto(*leaf.value);
  std::optional<double> elements = number_in(*leaf.value);
  if (!elements && !chosen) return reading.wrong_kind(leaf, "a number of elements");
  if (elements && *elements < 0) return reading.refused(leaf, "it is not below 0", "1e9");
  if (stage_in_force(reading) != 3) return reading.leave(key, "of stage 3 alone"), Result<void>();
  const bool none_ahead = size.option == "stage3-prefetch-bucket-size" && elements && *elements == 0;
  if (none_ahead) reading.set(leaf, "prefetch", "0");
  if (!reading.given().framework_answers()) {
    if (!none_ahead) reading.leave(key, std::string(size.not_here));
    return {};
  }
  if (chosen) {
    const std::optional<std::int64_t> hidden = reading.given().hidden_size();
    if (size.automatic == nullptr || !hidden) return reading.leave(key, "auto: DeepSpeed's default"), Result<void>();
    elements = size.automatic(static_cast<double>(*hidden));
  }
  constexpr double kMost = 1e15;
  reading.set(leaf, size.option, std::to_string(static_cast<std::int64_t>(std::min(*elements, kMost))),
              chosen ? Certainty::assumed : Certainty::stated);
  return {};
}

}  // namespace

Result<void> settle_stage3(Reading& reading) {
  for (const Size& size : kSizes)
    for (const char* const key : size.keys) {
      const Value* const value = key == nullptr ? nullptr : reading.root().at(key);
      if (value == nullptr) continue;
      if (Result<void> ok = settle_size(reading, size, Leaf{key, value}); !ok) return ok;
    }
  return {};
}

}  // namespace shard::foreign
