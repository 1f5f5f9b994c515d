// The user's choice of where model data rests: in device memory, in host memory or on disk, and what decides it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "traces/base/ids.h"
#include "traces/base/units.h"
#include "traces/base/word.h"

namespace shard::plan {

enum class PlacementPolicy : std::uint8_t {
  device,     ///< everything rests in device memory
  host,       ///< everything rests in host memory
  fixed,      ///< what the shares of the kinds say ("static"); device memory where none is given
  automatic,  ///< as much in device memory as its capacity allows ("auto")
};

[[nodiscard]] constexpr Word word(PlacementPolicy v) {
  switch (v) {
    case PlacementPolicy::device: return {"device", "everything rests in device memory"};
    case PlacementPolicy::host: return {"host", "parameters, gradients and optimizer state rest in host memory"};
    case PlacementPolicy::fixed:
      return {"static", "as --param-placement, --grad-placement and --optimizer-placement say"};
    case PlacementPolicy::automatic: return {"auto", "in device memory what its capacity allows"};
  }
  return {};
}
[[nodiscard]] constexpr const char* to_string(PlacementPolicy v) {
  return word(v).text;
}

/// How much of a kind of model data stays on the device, and where the rest of it rests.
/// A fraction is one of bytes: of all units, the largest first, each stays that still keeps the sum at or below it.
struct Share {
  double on_device = 1;        ///< of the bytes of a rank, 0..1
  Memory rest = Memory::host;  ///< of what does not stay
  friend bool operator==(const Share&, const Share&) = default;
};
inline constexpr Share kOnDevice{.on_device = 1, .rest = Memory::host};
inline constexpr Share kOnHost{.on_device = 0, .rest = Memory::host};
inline constexpr Share kOnDisk{.on_device = 0, .rest = Memory::disk};
/// "device", "host", "disk" or the fraction.
[[nodiscard]] std::string to_string(const Share& share);

/// What the user chose, and nothing more.
struct Placement {
  PlacementPolicy policy = PlacementPolicy::device;
  std::optional<Share> parameters{};  ///< in place of what the policy says
  std::optional<Share> gradients{};   ///< reduced gradients, and the nodes of the gradient tree that wait
  std::optional<Share> optimizer{};   ///< master parameters and optimizer state; a shard steps where they rest
  Bytes device_capacity{0};           ///< automatic: what a rank may use
  double margin_ratio = 1;            ///< automatic: share of what is left that optimizer state may take
  /// Automatic: what anything but model data took at most, measured; else as the plan says, moment by moment.
  std::optional<Bytes> non_model_peak{};

  /// Whether everything simply rests on the device.
  [[nodiscard]] bool all_on_device() const {
    const auto on_device = [&](const std::optional<Share>& s) {
      return s ? *s == kOnDevice : policy == PlacementPolicy::device || policy == PlacementPolicy::fixed;
    };
    return on_device(parameters) && on_device(gradients) && on_device(optimizer);
  }
  /// Whether optimizer state, or a part of it, rests in a directory.
  [[nodiscard]] bool rests_on_disk() const {
    return optimizer && optimizer->on_device < 1 && optimizer->rest == Memory::disk;
  }
  friend bool operator==(const Placement&, const Placement&) = default;
};

}  // namespace shard::plan
