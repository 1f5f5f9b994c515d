// What was measured of a machine op by op: laws of time by kind of op, for so many ranks of so many threads on a
// device.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/base/dtype.h"
#include "traces/base/units.h"

namespace shard::cluster {

/// A law is corrected by the size of its op: where `moved` bytes were moved it was found to be off by `factor`.
struct Correction {
  double moved_bytes = 0;
  double factor = 1;
  friend bool operator==(const Correction&, const Correction&) = default;
};

/// The law of one kind of op:   t = (c + F f + W w + B b) k(W + B)                                                  (1)
/// F flops, W bytes of parameters and their gradients, B bytes of all else (plan::work_of), k the corrections.
struct OpLaw {
  std::string kind;                       ///< plan::op_class() knows it
  Dtype dtype = Dtype::f32;               ///< what the run stores its values as
  double call_seconds = 0;                ///< c
  double flop_seconds = 0;                ///< f
  double weight_byte_seconds = 0;         ///< w
  double byte_seconds = 0;                ///< b
  std::vector<Correction> corrections{};  ///< by size, ascending; none: 1
  std::int64_t samples = 0;               ///< ops that it was found from
  double median_error = 0;                ///< of these, relative
  friend bool operator==(const OpLaw&, const OpLaw&) = default;
};

/// Laws as found with so many ranks on a device at once, all of them busy.
struct Occupancy {
  std::int32_t ranks = 1;
  std::int32_t threads = 1;    ///< of each rank
  double between_seconds = 0;  ///< between two ops
  double meeting_seconds = 0;  ///< of every collective: until the others have come
  double waiting_share = 0;    ///< of what ops take: ranks are never equally fast
  std::vector<OpLaw> laws{};
  friend bool operator==(const Occupancy&, const Occupancy&) = default;
};

/// A figure by itself, for those who read the file; what is priced by it stands in the description too.
struct Figure {
  std::string name{};
  double value = 0;
  std::string unit{};
  std::string method{};
  friend bool operator==(const Figure&, const Figure&) = default;
};

struct Measured {
  std::string method{};  ///< how, in words
  std::vector<Figure> figures{};
  std::vector<Occupancy> occupancies{};
  /// Of four of five steps the prediction is nearer, relative; 0: the file does not say.
  double step_error = 0;
  friend bool operator==(const Measured&, const Measured&) = default;
};

}  // namespace shard::cluster
