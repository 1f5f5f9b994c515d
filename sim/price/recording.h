// Laws beside a recording: what kernels took, and what the laws say that they take.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/cluster/cluster.h"
#include "sim/price/kernel_call.h"
#include "traces/base/units.h"
#include "traces/import/kineto_program.h"

namespace shard::price {

/// Kernels that one law prices, or those of one name that none does.
struct Beside {
  std::string name;  ///< the law's; the kernel's
  std::int64_t kernels = 0;
  Seconds measured, by_law;
};

struct LawsBeside {
  std::vector<Beside> laws;       ///< the one that took longest first
  std::vector<Beside> differing;  ///< kernels of one name that have a law, those first that it is off by most for
  std::vector<Beside> not_known;  ///< the one that took longest first
  Seconds measured, by_law;       ///< of what has a law
  Seconds without_law;            ///< measured of what has none
  Seconds exchanges;              ///< measured of NCCL's kernels, which wait for other ranks and are left out
  Seconds host_copies;            ///< measured of copies from and to the host, likewise

  /// The share of the measured time that has a law.
  [[nodiscard]] double coverage() const;
  /// Of the sums; 0 where nothing has a law.
  [[nodiscard]] double error() const;
};

/// The operator that launched each kernel: by the call that did, or by the id that the profiler gave it; -1: not known.
[[nodiscard]] std::vector<std::int32_t> callers_of(const import::KinetoProgram& recording);
/// As prices are asked with.
[[nodiscard]] Operator operator_of(const import::KinetoOperator& recorded);
/// NCCL's.
[[nodiscard]] bool is_exchange(const import::KinetoKernel& kernel);

/// `card` has kernel_laws.
[[nodiscard]] LawsBeside laws_beside(const import::KinetoProgram& recording, const cluster::Cluster& card);

}  // namespace shard::price
