// Laws of time found from measured ops: least squares without negative terms, then corrections by size.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "sim/cluster/measured.h"
#include "sim/ir/op_class.h"
#include "traces/base/dtype.h"

namespace shard::cost {

/// One op that was timed: the lower quartile of its repetitions, since whatever disturbs it only adds.
struct OpSample {
  plan::OpClass kind;
  Dtype dtype = Dtype::f32;  ///< what the run stores its values as
  plan::OpWork work;
  double seconds = 0;
};

/// One law per kind and type, in the order of the kinds. The terms c, f, w, b of a law make the sum of squares of
/// relative errors least among all choices without a negative term (all sixteen subsets are tried, so the least is
/// found). Its corrections are the medians of measured over law for ops of like size: one per power of two of bytes
/// moved. A sample without time is left out.
[[nodiscard]] std::vector<cluster::OpLaw> laws_of(std::span<const OpSample> samples);

/// The steps of one training on one rank: how long they took, and how much of that their ops.
struct StepSample {
  double ops = 0;
  double collectives = 0;   ///< of these
  double busy_seconds = 0;  ///< sum of OpSample::seconds; of collectives while data moved
  double seconds = 0;       ///< the median step
};

/// What steps take beside their ops: so long between two ops, so long for each collective until the other ranks have
/// come, and a share of what the ops take: ranks are never equally fast, nor an op always as fast. By least squares,
/// relative to the steps' own times, without negative terms.
struct BesideOps {
  double between_seconds = 0;
  double meeting_seconds = 0;
  double waiting_share = 0;
};
[[nodiscard]] BesideOps beside_ops(std::span<const StepSample> steps);

/// The value that this share of all lie below: of n values sorted number n x share, counted from 0; 0 of none.
[[nodiscard]] double quantile(std::vector<double> values, double share);
/// The middle of the values, of two the upper.
[[nodiscard]] inline double median(std::vector<double> values) {
  return quantile(std::move(values), 0.5);
}

}  // namespace shard::cost
