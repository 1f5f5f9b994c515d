// What a plan is compiled for: the kind of device that operators run on, and what they need there.
#pragma once

#include <cstdint>

#include "sim/model/direction.h"
#include "sim/model/fusion.h"
#include "sim/model/graph.h"
#include "sim/target/cuda_workspace.h"
#include "sim/target/workspace.h"
#include "traces/base/dtype.h"
#include "traces/base/units.h"
#include "traces/base/word.h"

namespace shard::plan {

enum class Device : std::uint8_t { cpu, cuda };

[[nodiscard]] constexpr Word word(Device v) {
  switch (v) {
    case Device::cpu: return {"cpu"};
    case Device::cuda: return {"cuda", "NVIDIA GPUs"};
  }
  return {};
}
[[nodiscard]] constexpr const char* to_string(Device v) {
  return word(v).text;
}

/// A plan names its target, and its hash covers it. How fast the device is, is the cluster's business.
struct Target {
  Device device = Device::cpu;
  std::int32_t threads = 1;    ///< of one rank: its kernels' workspaces are sized for as many
  Dtype storage = Dtype::f32;  ///< of parameters, activations and gradients
  bool tensor_float = false;   ///< fp32 products may round their operands to tf32 where the device has it
  friend bool operator==(const Target&, const Target&) = default;
  /// Whether one op does what these two would (model/fusion.h).
  [[nodiscard]] constexpr bool fuses(model::OperatorKind first, model::Direction direction,
                                     model::OperatorKind then) const {
    return device == Device::cuda && model::fusion(first, direction, then).has_value();
  }
  /// Whether its host memory is page-locked (Memory::pinned).
  [[nodiscard]] constexpr bool pins() const { return device == Device::cuda; }
  /// Bytes of the workspace operand of an operator's op in one direction; 0: it has none.
  [[nodiscard]] constexpr Bytes workspace(model::OperatorKind kind, model::Direction direction,
                                          const model::Attributes& attributes) const {
    switch (device) {
      case Device::cpu: return compute_workspace(kind, direction, attributes, storage, threads);
      case Device::cuda: return cuda_workspace(kind, direction, attributes);
    }
    return Bytes{0};
  }
};

}  // namespace shard::plan
