// Times of ops on a machine whose laws were measured: one law per kind of op, for as many busy ranks as the run has.
#pragma once

#include <array>
#include <optional>

#include "sim/cluster/cluster.h"
#include "sim/ir/op_class.h"
#include "sim/ir/plan.h"
#include "traces/base/units.h"

namespace shard::cost {

/// t = (c + F f + W w + B b) k(W + B), cluster::OpLaw (1). Corrections are interpolated between sizes, log over log,
/// and go on unchanged beyond the smallest and the largest.
[[nodiscard]] Seconds law_time(const cluster::OpLaw& law, const plan::OpWork& work);

/// Whether one law can hold for all ops of this one's kind and storage. On a GPU it does not for what rests in host
/// memory alone, for copies within one memory, and for products that may round to tf32: other formulas price these.
[[nodiscard]] bool obeys_law(const plan::Plan& plan, const plan::Op& op);

/// The laws that hold for the ranks of one plan. On CPUs those of the occupancy that is nearest in ranks and threads
/// (by ratio; threads that differ count double); where ranks and threads are more than the cores, they take turns, and
/// each op takes as much longer. On GPUs those of the nearest number of ranks on a device, which divide it. Where no
/// law is of the plan's type that of another type stands in. Source: measured on the machine itself (`shardscope
/// calibrate`). Not modelled: cores that differ, and how the cost of sharing grows between two measured occupancies.
/// Measured error: MODELS.md#measured.
class MeasuredTimes {
 public:
  /// None are known where the cluster has no measurement. The cluster is borrowed.
  MeasuredTimes(const plan::Plan& plan, const cluster::Cluster& cluster, const cluster::Layout& layout);
  /// With the time between ops, and for a collective the ranks' meeting; nothing where there is no law.
  [[nodiscard]] std::optional<Seconds> operator()(const plan::Plan& plan, const plan::Op& op) const;

 private:
  /// `cores` 0: of a GPU.
  void choose_occupancy(const cluster::Measured& measured, double threads, double ranks, double cores);

  const cluster::Occupancy* occupancy_ = nullptr;
  double slower_ = 1;
  std::array<const cluster::OpLaw*, plan::kOpClasses> laws_{};
};

}  // namespace shard::cost
