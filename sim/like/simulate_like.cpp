// Name to rules, rules to plan, plan through the allocator.
#include "sim/like/simulate_like.h"

#include <algorithm>
#include <utility>

#include "sim/like/gemini_options.h"
#include "sim/like/plan_program.h"
#include "sim/like/pytorch_1_8.h"
#include "sim/like/simulate_eager.h"
#include "sim/model/closest_name.h"

namespace shard::like {
namespace {

constexpr std::string_view kPytorch18 = "pytorch@1.8";

/// The version itself, or a patch of it.
bool is_version(std::string_view name, std::string_view version) {
  if (name == version) return true;
  if (!name.starts_with(version) || name[version.size()] != '.') return false;
  const std::string_view patch = name.substr(version.size() + 1);
  return !patch.empty() && patch.find_first_not_of("0123456789") == std::string_view::npos;
}

bool is_pytorch_1_8(std::string_view name) {
  return name == "pytorch" || is_version(name, kPytorch18);
}

/// Every name under which eager PyTorch 2 is known, and what puts it over ranks.
struct EagerName {
  std::string_view name;
  eager::Framework framework;
};
constexpr EagerName kEagerNames[] = {{kPytorch2, eager::Framework::none},
                                     {"fsdp1@2.11", eager::Framework::fsdp1},
                                     {"fsdp2@2.11", eager::Framework::fsdp2},
                                     {"deepspeed@0.19", eager::Framework::deepspeed},
                                     {"megatron@0.16", eager::Framework::megatron}};

}  // namespace

std::vector<std::string_view> known_frameworks() {
  std::vector<std::string_view> names{kPytorch18};
  for (const EagerName& known : kEagerNames) names.push_back(known.name);
  names.insert(names.end(), {name_of(GeminiRules::split), name_of(GeminiRules::whole)});
  return names;
}

bool is_known_framework(std::string_view name) {
  return is_pytorch_1_8(name) || eager_framework(name) || gemini_rules(name);
}

bool is_eager(std::string_view name, const model::Model& model) {
  return name == "pytorch" ? model.family != model::Family::mlp : is_eager_name(name);
}

bool is_eager_name(std::string_view name) {
  return eager_framework(name).has_value();
}

std::optional<eager::Framework> eager_framework(std::string_view name) {
  for (const EagerName& known : kEagerNames)
    if (name == known.name.substr(0, known.name.find('@')) || is_version(name, known.name)) return known.framework;
  return std::nullopt;
}

std::int32_t usual_stage(std::string_view name) {
  const std::optional<eager::Framework> framework = eager_framework(name);
  if (framework == eager::Framework::deepspeed) return 2;
  return framework == eager::Framework::fsdp1 || framework == eager::Framework::fsdp2 ? 3 : 0;
}

std::string_view name_of(eager::Framework framework) {
  for (const EagerName& known : kEagerNames)
    if (known.framework == framework) return known.name;
  return kPytorch2;
}

Error unknown_framework(std::string_view name) {
  const std::vector<std::string_view> known = known_frameworks();
  std::string help = model::did_you_mean(name, known);
  if (!help.empty()) help += " ";
  help += "known: ";
  for (std::size_t i = 0; i < known.size(); ++i) help += (i > 0 ? ", " : "") + std::string(known[i]);
  return {.code = Errc::usage,
          .what = "no rules are known for '" + std::string(name) + "'",
          .where = "--like",
          .help = std::move(help)};
}

Result<LikeResult> simulate_like(std::string_view name_at_version, const model::Model& model,
                                 const plan::Strategy& strategy, const LikeOptions& options) {
  if (!is_pytorch_1_8(name_at_version)) return unknown_framework(name_at_version);
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
                    .addresses_upwards = true};
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
