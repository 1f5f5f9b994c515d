// Births of optimizer state and the saving of a run's state: what goes between buffers and whoever keeps a run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "executor/rank/backend.h"
#include "sim/ir/plan.h"

namespace shard::cpu {

/// One rank's, of any stretch of an op's elements, so that what lies on disk goes through small buffers. What it refers
/// to outlives it.
class StateOps {
 public:
  StateOps(const plan::Plan& plan, const plan::Position& position, const executor::BackendOptions& options)
      : plan_(plan), position_(position), options_(options) {}

  /// Whether births are those of a run that goes on; else state is born zero.
  [[nodiscard]] bool goes_on() const { return static_cast<bool>(options_.first_state); }

  /// Bytes of the op's operand from byte `offset` on, as the run that goes on had them. Errors: of first_state.
  [[nodiscard]] Result<void> born(const plan::ZeroState& op, std::size_t operand, std::int64_t offset,
                                  std::span<std::byte> into) const;

  /// Hands out what of the op's content lies in `from`, which stands at byte `offset` of it. Of what other ranks hold
  /// too: this rank's part.
  void save(const plan::Save& op, Dtype dtype, std::int64_t offset, std::span<const std::byte> from) const;

 private:
  /// run(param, whole, local, n): stretches of elements [first, first + n) of an op that begins at `begin` of its flat;
  /// `whole` counts in the whole parameter, `local` from `first`.
  template <class Run>
  void for_each_stretch(std::int32_t flat, std::int64_t begin, std::int64_t first, std::int64_t n,
                        const Run& run) const;

  const plan::Plan& plan_;
  plan::Position position_;
  const executor::BackendOptions& options_;
};

}  // namespace shard::cpu
