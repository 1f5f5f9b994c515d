// What each call of a step takes on the device, alone.
#pragma once

#include <map>
#include <string_view>
#include <unordered_map>

#include "profiler/steptime/step_calls.h"
#include "sim/cluster/cluster.h"
#include "sim/price/kernel_call.h"

namespace shard::steptime {

struct Cost {
  double seconds = 0;
  double doubt = 0;  ///< relative, of the law
  std::string_view law;
  bool known = true;  ///< false: no law; `seconds` is what a kernel that moves its operator's tensors takes
};

/// Of the calls of one run. `card` has kernel_laws. What it is given outlives it.
class Prices {
 public:
  Prices(const WorkList& work, const import::KinetoProgram& operators, const StepCalls& calls,
         const cluster::Cluster& card);

  /// Of a kernel, a product, a copy, a fill, a library's call or a collective. Calls to NCCL between its group's begin
  /// and end are one kernel, which the first of them is: the others cost nothing.
  [[nodiscard]] Cost of(const Call& call) const;
  /// Whether it is in a group of calls to NCCL, and not the first.
  [[nodiscard]] bool is_part_of_earlier(const Call& call) const;

 private:
  /// Calls to NCCL that are one kernel.
  struct Group {
    std::size_t first = 0;  ///< item
    double bytes = 0, sent = 0, received = 0;
  };

  void look_at(const Call& call, const import::KinetoProgram& operators);
  [[nodiscard]] Cost copy(const WorkItem& item) const;
  [[nodiscard]] Cost exchange(const Call& call) const;
  [[nodiscard]] double assumed(const price::Operator* op) const;

  const WorkList& work_;
  const cluster::Cluster& card_;
  std::unordered_map<std::int32_t, price::Operator> operators_;  ///< of calls, by their index
  std::unordered_map<std::int64_t, Group> groups_;
  std::unordered_map<std::int64_t, std::int64_t> strides_;  ///< by communicator, where operators tell its ranks
  /// Blocks of an operator's kernels of one name.
  std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> blocks_;
};

/// Kinds of calls to NCCL (standin/nccl.cpp).
enum class NcclCall : std::int64_t { all_reduce = 1, all_gather = 4, reduce_scatter = 5, send = 9, receive = 11 };

}  // namespace shard::steptime
