// Which operands an operator's op has, in order: the one answer to that question, for passes, verifier and backends.
#pragma once

#include <array>
#include <cassert>
#include <cstdint>

#include "sim/model/graph.h"

namespace shard::model {

/// What of a row one op has. A plan says it for each op; nobody infers it from how many operands there are.
struct Form {
  bool input_gradient = false;     ///< there is a dx, of all inputs that can have one
  bool in_place = false;           ///< dy becomes dx, where the row leaves that open
  bool accumulate_input = false;   ///< dx is added to, not written
  bool accumulate_weight = false;  ///< dp is added to, not written
  bool scaled = false;             ///< a loss scale multiplies
  bool workspace = false;
};

/// One operand.
struct Slot {
  Role role = Role::none;     ///< what is read, or made where nothing is
  Role becomes = Role::none;  ///< what is there afterwards, where that is something else
  std::int8_t index = 0;      ///< of the operator's input, parameter or statistic
  Access access = Access::read;
  Extent extent = Extent::whole;
  bool then = false;  ///< of the operator that the op does behind its own (fusion.h)
  [[nodiscard]] constexpr bool is(Role r) const { return role == r || becomes == r; }
  /// What is there afterwards.
  [[nodiscard]] constexpr Role made() const { return becomes == Role::none ? role : becomes; }
};

/// The operands of one op. Finding one is a scan of at most kMost bytes; nothing is allocated.
class Signature {
 public:
  static constexpr int kMost = 16;

  [[nodiscard]] const Slot* begin() const { return slots_.data(); }
  [[nodiscard]] const Slot* end() const { return slots_.data() + size_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] const Slot& operator[](std::size_t i) const { return slots_[i]; }

  /// Which operand reads or makes that, -1: none. Where x becomes y they are one operand. `then`: of the operator that
  /// the op does behind its own.
  [[nodiscard]] int find(Role role, int index = 0, bool then = false) const;
  /// The same for one that is there.
  [[nodiscard]] std::size_t position(Role role, int index = 0, bool then = false) const {
    const int found = find(role, index, then);
    assert(found >= 0 && "the op lacks that operand");
    return static_cast<std::size_t>(found);
  }
  [[nodiscard]] bool has(Role role, int index = 0) const { return find(role, index) >= 0; }
  /// Backward: whether there is any dx or dp. An op without does not exist.
  [[nodiscard]] bool makes_gradient() const { return has(Role::dx) || makes_parameter_gradient_; }

  void push(Slot slot);

 private:
  std::array<Slot, kMost> slots_{};
  std::uint8_t size_ = 0;
  bool makes_parameter_gradient_ = false;
};

/// Empty where the operator has no op of that direction. Parameters that are frozen have no dp.
[[nodiscard]] Signature signature(OperatorKind kind, Direction direction, const Attributes& attributes,
                                  const Form& form);

/// Of an op that does what two would (fusion.h): the operands of the first, behind them those of the other without what
/// it gets from the first, then the first's workspace. A result on the way is written, a gradient on the way is not.
[[nodiscard]] Signature fused(const Signature& first, const Signature& then, Direction direction);

/// Inputs and parameters that an operator has: attention q, k and v, or one that packs them; linear a bias or none.
[[nodiscard]] int inputs_of(OperatorKind kind, const Attributes& attributes);
[[nodiscard]] int parameters_of(OperatorKind kind, const Attributes& attributes);

/// The value that an operand is, or is the gradient of: roles x, dx, y, dy and statistic.
[[nodiscard]] ValueId value_of(const Operator& op, const Slot& slot);

/// Elements of an operand; 0 of a workspace, whose bytes the target says.
[[nodiscard]] std::int64_t elements(const Graph& graph, const ParameterList& parameters, const Operator& op,
                                    const Slot& slot);

/// Results of operators and data are stored as `storage`, statistics, losses and workspaces in fp32, indices as they
/// are.
[[nodiscard]] Dtype stored_as(const Value& value, Dtype storage);
[[nodiscard]] Dtype dtype(const Graph& graph, const Operator& op, const Slot& slot, Dtype storage);

}  // namespace shard::model
