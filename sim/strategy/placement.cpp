// Shares as text.
#include "sim/strategy/placement.h"

#include <charconv>

namespace shard::plan {

std::string to_string(const Share& share) {
  if (share.on_device >= 1) return "device";
  if (share.on_device <= 0) return shard::to_string(share.rest);
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, share.on_device).ptr};
}

std::string to_string(const Placement& p) {
  std::string text = to_string(p.policy);
  const auto add = [&](const char* kind, const std::optional<Share>& share) {
    if (share) text += std::string(" ") + kind + ' ' + to_string(*share);
  };
  add("parameters", p.parameters);
  add("gradients", p.gradients);
  add("optimizer", p.optimizer);
  if (p.policy == PlacementPolicy::automatic) {
    text += " device_capacity " + std::to_string(p.device_capacity.count());
    if (p.margin_ratio < 1) {
      char digits[32];
      text += " margin " + std::string(digits, std::to_chars(digits, digits + sizeof digits, p.margin_ratio).ptr);
    }
    if (p.non_model_peak) text += " non_model_peak " + std::to_string(p.non_model_peak->count());
  }
  return text;
}

}  // namespace shard::plan
