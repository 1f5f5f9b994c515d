// Finds the operators around calls, by thread and time.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "traces/import/kineto_program.h"

namespace shard::price {

/// Operators of a thread lie within each other, so one walk through a thread's calls, in the order of time, finds each
/// call's. Indices are those of the operators, which outlive the walk; -1: none.
class OperatorWalk {
 public:
  explicit OperatorWalk(const std::vector<import::KinetoOperator>& operators);

  /// Goes on to a moment of a thread, not before its last one. False: the thread has no operators.
  bool to(std::int64_t thread, std::int64_t time_ns);

  // Of the moment that the walk is at.
  /// Operators that began since the last moment of this thread.
  [[nodiscard]] std::int32_t begun() const { return begun_; }
  /// The innermost around it that has tensors; where none has, the innermost.
  [[nodiscard]] std::int32_t innermost_with_tensors() const;
  /// The innermost that says the ranks of a collective.
  [[nodiscard]] std::int32_t innermost_with_ranks() const;
  [[nodiscard]] std::int32_t outermost() const;

 private:
  struct Thread {
    std::vector<std::int32_t> order;  ///< by begin, outer ones first
    std::size_t next = 0;
    std::vector<std::int32_t> open;
  };

  [[nodiscard]] const import::KinetoOperator& of(std::int32_t index) const {
    return operators_[static_cast<std::size_t>(index)];
  }
  void leave(Thread& thread, std::int64_t time_ns) const;

  const std::vector<import::KinetoOperator>& operators_;
  std::map<std::int64_t, Thread> threads_;
  const Thread* at_ = nullptr;
  std::int32_t begun_ = 0;
};

}  // namespace shard::price
