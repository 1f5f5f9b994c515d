// One compute op as kernels are called with it: its operands by their roles, never by their places.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

#include "executor/cpu/kernels/dropout.h"
#include "executor/cpu/kernels/threads.h"
#include "executor/kernels/elements.h"
#include "executor/kernels/store.h"
#include "sim/ir/op.h"

namespace shard::cpu {

using model::Role;

/// What one operand lies at.
struct Bound {
  Elements elements{};  ///< statistics and losses are fp32; the rest is what its buffer says
  std::int64_t bytes = 0;
};

struct Call {
  ThreadPool& pool;
  const plan::Compute& op;
  model::Signature slots;
  std::array<Bound, model::Signature::kMost> bound{};  ///< by slot
  std::int64_t tensor_rank = 0;                        ///< which part of a model that ranks share this one has
  RandomKey mask{};                                    ///< of an operator that drops

  [[nodiscard]] const model::Attributes& attributes() const { return *op.attributes; }
  [[nodiscard]] bool forward() const { return op.direction == plan::Direction::forward; }
  [[nodiscard]] Store into_input() const { return op.accumulate_input ? Store::add : Store::write; }
  [[nodiscard]] Store into_weight() const { return op.accumulate_weight ? Store::add : Store::write; }

  /// Null where the op has no such operand.
  [[nodiscard]] Elements optional(Role role, int i = 0) const {
    const int at = slots.find(role, i);
    return at < 0 ? Elements() : bound[static_cast<std::size_t>(at)].elements;
  }
  [[nodiscard]] Elements operator()(Role role, int i = 0) const { return at(role, i).elements; }
  [[nodiscard]] float* floats(Role role, int i = 0) const { return at(role, i).elements.as<float>(); }
  /// Tokens and targets.
  [[nodiscard]] const std::int32_t* indices(Role role, int i = 0) const {
    return reinterpret_cast<const std::int32_t*>(at(role, i).elements.bytes());
  }
  [[nodiscard]] std::int64_t count(Role role, int i = 0) const {
    return at(role, i).bytes / bytes_per_element(at(role, i).elements.dtype());
  }
  /// Empty where the op needs none.
  [[nodiscard]] std::span<std::byte> workspace() const {
    if (!op.workspace) return {};
    const Bound& b = at(Role::workspace, 0);
    return {b.elements.bytes(), static_cast<std::size_t>(b.bytes)};
  }
  /// Of a loss's gradient.
  [[nodiscard]] float scale() const { return op.scaled ? op.scale * *floats(Role::loss_scale) : op.scale; }

 private:
  [[nodiscard]] const Bound& at(Role role, int i) const { return bound[slots.position(role, i)]; }
};

/// Operators of ranks that share a model.
void compute_part(const Call& call);

}  // namespace shard::cpu
