// One more simulation each.
#include "sim/commands/beside.h"

#include <nlohmann/json.hpp>

#include "traces/base/numbers.h"

namespace shard::commands {

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
  if (simulated.cluster.device == cluster::DeviceKind::cuda) strategy.device = plan::Device::cuda;
  const Result<Bytes> own = engine::peak_device_bytes(simulated.planned->model, strategy, simulated.cluster);
  return own ? Beside{.own_peak = *own} : Beside{};
}

std::string to_text(const Beside& beside) {
  if (beside.own_peak)
    return "Shardscope's own executor with this strategy: " + show_mib(*beside.own_peak) + " of device memory\n";
  if (beside.reproducible && beside.reproducible->count() > 0)
    return show_bytes(*beside.reproducible) +
           " of the peak go with --no-reproducible: they keep sums in an order that no sharding changes\n";
  return {};
}

void add_json(nlohmann::ordered_json& json, const Beside& beside) {
  json["own_executor"] = nullptr;
  if (beside.own_peak) json["own_executor"] = {{"peak_device_bytes", beside.own_peak->count()}};
  json["reproducible_bytes"] = nullptr;
  if (beside.reproducible) json["reproducible_bytes"] = beside.reproducible->count();
}

}  // namespace shard::commands
