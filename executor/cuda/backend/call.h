// One compute op as kernels are launched for it: its operands by their roles, in device memory.
#pragma once

#include <array>
#include <cstdint>

#include "executor/cuda/api/api.h"
#include "executor/cuda/kernels/kernels.h"
#include "executor/kernels/elements.h"
#include "executor/kernels/store.h"
#include "sim/ir/op.h"

namespace shard::cuda {

using model::Role;

struct Call {
  Api& api;
  const Kernels& kernels;
  Stream stream = nullptr;
  const plan::Compute& op;
  model::Signature slots;
  std::array<Elements, model::Signature::kMost> at{};  ///< by slot
  std::array<std::int64_t, model::Signature::kMost> bytes{};
  std::int64_t tensor_rank = 0;
  MaskSource mask{};                   ///< of an operator that drops
  const std::int64_t* step = nullptr;  ///< on the device: the number of the step
  bool tensor_float = false;
  Bytes product_alignment{};  ///< of operands of products

  [[nodiscard]] const model::Attributes& attributes() const { return *op.attributes; }
  [[nodiscard]] bool forward() const { return op.direction == plan::Direction::forward; }
  [[nodiscard]] Store into_input() const { return op.accumulate_input ? Store::add : Store::write; }
  [[nodiscard]] Store into_weight() const { return op.accumulate_weight ? Store::add : Store::write; }
  /// Null where the op has no such operand.
  [[nodiscard]] Elements optional(Role role, int i = 0) const {
    const int slot = slots.find(role, i);
    return slot < 0 ? Elements() : at[static_cast<std::size_t>(slot)];
  }
  [[nodiscard]] Elements operator()(Role role, int i = 0) const { return at[slots.position(role, i)]; }
  /// Of the operator that the op does behind its own.
  [[nodiscard]] Elements then(Role role, int i = 0) const { return at[slots.position(role, i, true)]; }
  [[nodiscard]] float* floats(Role role, int i = 0) const { return reinterpret_cast<float*>((*this)(role, i).bytes()); }
  /// Tokens and targets.
  [[nodiscard]] const std::int32_t* indices(Role role, int i = 0) const {
    return reinterpret_cast<const std::int32_t*>((*this)(role, i).bytes());
  }
  [[nodiscard]] std::int64_t count(Role role, int i = 0) const {
    return bytes[slots.position(role, i)] / bytes_per_element((*this)(role, i).dtype());
  }
  /// Empty where the op needs none.
  [[nodiscard]] std::span<std::byte> workspace() const {
    if (!op.workspace) return {};
    return {(*this)(Role::workspace).bytes(), static_cast<std::size_t>(bytes[slots.position(Role::workspace)])};
  }
  /// Of a loss's gradient: the loss scale on the device, or null.
  [[nodiscard]] const float* loss_scale() const { return op.scaled ? floats(Role::loss_scale) : nullptr; }
};

/// Enqueues the op.
[[nodiscard]] Result<void> compute(const Call& call);

}  // namespace shard::cuda
