// One more simulation each.
#include "sim/commands/beside.h"

#include <nlohmann/json.hpp>

#include "sim/compile/compile.h"
#include "traces/base/numbers.h"

namespace shard::commands {

std::optional<engine::Simulation> own_beside(const Simulated& simulated) {
  if (!simulated.planned || std::holds_alternative<engine::Simulation>(simulated.figures)) return std::nullopt;
  plan::Strategy strategy = simulated.planned->strategy;
  if (simulated.cluster.device == cluster::DeviceKind::cuda) strategy.device = plan::Device::cuda;
  const Result<plan::PlanSet> plans = plan::compile(simulated.planned->model, strategy, plan::MicroSteps::folded);
  if (!plans) return std::nullopt;
  Result<engine::Simulation> own = engine::simulate(*plans, simulated.cluster, {});
  if (!own) return std::nullopt;
  return std::move(*own);
}

Beside beside(const Simulated& simulated) {
  if (!simulated.planned) return {};
  plan::Strategy strategy = simulated.planned->strategy;
  if (const auto* own = std::get_if<engine::Simulation>(&simulated.figures)) {
    if (!strategy.reproducible) return {};
    strategy.reproducible = false;
    const Result<Bytes> without =
        engine::peak_device_bytes(simulated.planned->model, strategy, simulated.cluster, simulated.options);
    if (!without) return {};
    return {.reproducible = own->largest().peak[static_cast<std::size_t>(Memory::device)] - *without};
  }
  const std::optional<engine::Simulation> own = own_beside(simulated);
  if (!own) return {};
  return {.own = Beside::Own{.peak = own->largest().peak[static_cast<std::size_t>(Memory::device)],
                             .step = own->step_seconds,
                             .tokens_per_second = own->tokens_per_second}};
}

std::string to_text(const Beside& beside, ShowBytes show) {
  if (beside.own)
    return "Shardscope's own executor with this strategy: " + show(beside.own->peak) + " of device memory, " +
           duration(beside.own->step) + " a step (--like shardscope)\n";
  if (beside.reproducible && beside.reproducible->count() > 0)
    return show(*beside.reproducible) +
           " of the peak go with --no-reproducible: they keep sums in an order that no sharding changes\n";
  return {};
}

void add_json(nlohmann::ordered_json& json, const Beside& beside) {
  json["own_executor"] = nullptr;
  if (beside.own)
    json["own_executor"] = {{"peak_device_bytes", beside.own->peak.count()},
                            {"step_seconds", beside.own->step.count()},
                            {"tokens_per_second", beside.own->tokens_per_second}};
  json["reproducible_bytes"] = nullptr;
  if (beside.reproducible) json["reproducible_bytes"] = beside.reproducible->count();
}

}  // namespace shard::commands
