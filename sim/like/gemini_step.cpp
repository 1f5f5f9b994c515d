// Steps from a list of parameters, and from a model's graph.
#include "sim/like/gemini_step.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "sim/compile/lifetimes.h"
#include "sim/compile/passes/operands.h"
#include "sim/compile/passes/passes.h"
#include "sim/like/passes.h"

namespace shard::like {
namespace {

using plan::Part;

constexpr std::int64_t kFloatBytes = 4;

plan::Op use(const plan::Plan& plan, std::string_view name, Part part, const std::vector<std::size_t>& parameters) {
  std::vector<plan::Operand> operands;
  for (std::size_t p : parameters) operands.push_back(plan::reads(plan, BufferId{static_cast<std::int32_t>(p)}));
  return {.name = name, .part = part, .action = plan::Copy{}, .operands = plan.list(operands)};
}

/// Statistics of norms, which PyTorch keeps in fp32 beside 16-bit results, and indices.
std::vector<bool> not_halved(const plan::Draft& plan) {
  std::vector<bool> keep(plan.buffers.size(), false);
  for (const plan::Op& op : plan.find(Phase::steady_step)->ops) {
    const auto& compute = std::get<plan::Compute>(op.action);
    if (compute.direction != plan::Direction::forward) continue;
    if (compute.kind != model::OperatorKind::layer_norm && compute.kind != model::OperatorKind::rms_norm) continue;
    const model::Signature slots = plan::signature(compute);
    for (std::size_t i = 0; i < slots.size(); ++i)
      if (slots[i].role == model::Role::statistic) keep[static_cast<std::size_t>(op.operands[i].buffer.value)] = true;
  }
  for (const model::ValueId v : {plan.graph->input, plan.graph->target})
    if (plan.graph->values[static_cast<std::size_t>(v.value)].dtype != Dtype::f32)
      keep[static_cast<std::size_t>(plan.value_buffer(v).value)] = true;
  return keep;
}

void halve(plan::Draft& plan) {
  const std::vector<bool> keep = not_halved(plan);
  for (std::size_t b = 0; b < plan.buffers.size(); ++b)
    if (!keep[b]) {
      plan.buffers[b].dtype = Dtype::f16;
      plan.buffers[b].bytes = Bytes{plan.buffers[b].bytes.count() / kFloatBytes * kHalfBytes};
    }
  for (plan::PhaseOps& phase : plan.phases)
    for (plan::Op& op : phase.ops)
      for (plan::Operand& o : plan.own_operands(op)) o.bytes = plan.buffer(o.buffer).bytes.count();
}

/// Consecutive ops of one operator and part: what lies between a pre_op and its post_op.
std::vector<HookedOp> hook(const plan::Plan& plan) {
  std::vector<HookedOp> hooked;
  const std::vector<plan::Op>& ops = plan.find(Phase::steady_step)->ops;
  for (std::size_t i = 0; i < ops.size();) {
    const auto source = [&](std::size_t at) { return std::get<plan::Compute>(ops[at].action).source; };
    HookedOp op{.first = i, .last = i + 1, .part = ops[i].part, .parameters = {}};
    while (op.last < ops.size() && ops[op.last].part == op.part && source(op.last) == source(i)) ++op.last;
    for (model::ParamId p : plan.graph->operators[static_cast<std::size_t>(source(i))].params)
      op.parameters.push_back(static_cast<std::size_t>(p.value));
    i = op.last;
    if (!op.parameters.empty()) hooked.push_back(std::move(op));
  }
  return hooked;
}

}  // namespace

GeminiStep step_of_modules(const ParameterList& parameters) {
  GeminiStep step;
  std::vector<std::pair<std::string_view, std::vector<std::size_t>>> modules;
  std::unordered_map<std::string_view, std::size_t> known;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    step.plan.add_buffer({.name = step.plan.text(parameters[p].name),
                          .category = Category::parameter,
                          .dtype = Dtype::f16,
                          .bytes = Bytes{parameters[p].elems.count() * kHalfBytes}});
    const std::string_view name = module_name(parameters[p].name);
    const auto [it, is_new] = known.try_emplace(name, modules.size());
    if (is_new) modules.push_back({name, {}});
    modules[it->second].second.push_back(p);
  }
  plan::PhaseOps phase{.phase = Phase::steady_step, .ops = {}};
  const auto add = [&](const auto& module, Part part, const char* suffix) {
    step.hooked.push_back(
        {.first = phase.ops.size(), .last = phase.ops.size() + 1, .part = part, .parameters = module.second});
    phase.ops.push_back(use(step.plan, step.plan.text(module.first, suffix), part, module.second));
  };
  for (const auto& module : modules) add(module, Part::forward, "");
  for (auto it = modules.rbegin(); it != modules.rend(); ++it) add(*it, Part::backward, " backward");
  step.plan.phases.push_back(std::move(phase));
  return step;
}

GeminiStep step_of_operators(std::shared_ptr<const model::Model> model, const plan::Strategy& strategy) {
  plan::Strategy like = strategy;
  like.reproducible = false;
  like.precision = plan::Precision::fp32;  // autograd's tensors first, then their half
  plan::Draft draft = autograd(plan::recompute(plan::differentiate(plan::build(std::move(model), like, 0))));
  halve(draft);
  GeminiStep step{.plan = std::move(draft), .hooked = {}};
  plan::find_lifetimes(step.plan);
  const auto parameters = static_cast<std::int32_t>(step.plan.model->parameters.size());
  for (plan::Op& op : step.plan.find(Phase::steady_step)->ops) {
    std::vector<BufferId> acquired(op.acquire.begin(), op.acquire.end());
    if (std::erase_if(acquired, [&](BufferId id) { return id.value < parameters; }) > 0)
      op.acquire = step.plan.list(acquired);
  }
  step.hooked = hook(step.plan);
  return step;
}

}  // namespace shard::like
