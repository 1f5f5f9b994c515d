// The first broken rule of a plan, with where it is broken.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/ir/plan.h"
#include "traces/base/result.h"

namespace shard::plan::verification {

/// Keeps the first fault; checks may go on after it, their findings are dropped.
class Faults {
 public:
  explicit Faults(std::int32_t rank) : rank_(rank) {}

  /// Where the next faults are. Null: not at an op.
  void at(const PhaseOps* phase, const Op* op) {
    phase_ = phase;
    op_ = op;
  }
  /// `rule`: "P7".
  void fail(std::string_view rule, std::string what) {
    if (first_) return;
    std::string where = "rank " + std::to_string(rank_);
    if (phase_ != nullptr) where += std::string(" ") + to_string(phase_->phase);
    if (op_ != nullptr) where += " op " + std::to_string(op_->id.value) + " \"" + std::string(op_->name) + '"';
    first_ = Error{.code = Errc::internal,
                   .what = std::move(what) + " (" + std::string(rule) + ")",
                   .where = std::move(where),
                   .help = "this is a fault of the program: report it with the command and `shardscope plan`'s output"};
  }
  [[nodiscard]] bool failed() const { return first_.has_value(); }
  [[nodiscard]] Result<void> result() const {
    if (first_) return *first_;
    return {};
  }

 private:
  std::int32_t rank_;
  const PhaseOps* phase_ = nullptr;
  const Op* op_ = nullptr;
  std::optional<Error> first_;
};

/// Bytes [begin, end) of a buffer, as an operand names them on the rank that holds shard `shard_rank`.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};
[[nodiscard]] inline Range range_of(const Operand& o, std::int32_t shard_rank) {
  const std::int64_t begin = o.offset_on(shard_rank);
  return {begin, begin + o.bytes};
}
/// The same, of its memory's arena.
[[nodiscard]] inline Range range_in_arena(const Plan& plan, const Operand& o, std::int32_t shard_rank) {
  const Range r = range_of(o, shard_rank);
  const std::int64_t base = plan.buffer(o.buffer).offset;
  return {base + r.begin, base + r.end};
}
[[nodiscard]] inline std::string to_string(Range r) {
  return '[' + std::to_string(r.begin) + ", " + std::to_string(r.end) + ')';
}

}  // namespace shard::plan::verification
