// One strategy of a sweep: what was asked, and the figures that one compares.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/commands/assumed.h"
#include "sim/commands/simulate_strategy.h"
#include "sim/strategy/strategy.h"
#include "traces/base/ids.h"
#include "traces/base/result.h"
#include "traces/base/units.h"

namespace shard::commands {

/// A list that was given in place of a value.
struct SweptOption {
  std::string option;
  std::vector<std::string> values;
};

/// Times of a step, where they are predicted.
struct SweepTimes {
  std::string of{};  ///< whose: our own executor's, or the framework whose memory it is
  Seconds step;
  double tokens_per_second = 0;  ///< of all ranks
  double tflops_per_device = 0;
  /// Of laws of kernels: between which four of five runs are expected; none of our own executor's.
  std::optional<Seconds> step_low{}, step_high{};
  /// What the simulator of our own executor knows beside these.
  std::optional<Seconds> first_step{}, creation{}, run{};
  std::optional<double> compute_share{}, communication_share{}, exposed_communication_share{};
};

/// Other memories than the device's, where they are predicted.
struct SweepHost {
  Bytes peak;                 ///< of one host, pinned bytes included
  Bytes pinned;               ///< of these
  std::optional<Bytes> disk;  ///< of the largest rank; none: not predicted
  std::optional<Bytes> capacity;
};

/// What holds most at the device's peak.
struct SweepHolder {
  std::string name;
  Category category{};
  Bytes bytes;
};

struct SweepFigures {
  Assumed taken;
  std::optional<plan::Strategy> strategy;  ///< none where the model is a list of parameters
  std::string plan_hash;                   ///< empty: no plan of ours
  cluster::Verdict verdict{};
  cluster::ByteRange outside;  ///< of the allocator
  Bytes device_peak;
  Bytes live_peak;                    ///< at most that: without what lies unused between buffers
  CategoryBytes by_category{};        ///< sums to live_peak, or to little less where only the largest are known
  std::optional<SweepHolder> holder;  ///< the largest
  std::array<Bytes, kCollectiveCount> sent{};  ///< by one rank in one step: full buffers of its calls
  std::optional<SweepHost> host;
  std::optional<SweepTimes> times;

  [[nodiscard]] Bytes sent_together() const;
  /// The same with an all_reduce as what it sends: a reduce_scatter and an all_gather of its buffer.
  [[nodiscard]] Bytes on_the_wire() const;
  [[nodiscard]] bool fits() const { return verdict != cluster::Verdict::does_not_fit; }
  /// "27.17 GiB of 24.00 GiB device memory", with what lies outside; empty where it fits.
  [[nodiscard]] std::string short_of() const;
};

[[nodiscard]] SweepFigures figures_of(const Simulated& simulated);

/// Either has figures or the error that says why not.
struct SweepRow {
  std::vector<std::string> values;  ///< of the lists, in their order
  std::optional<SweepFigures> figures;
  std::optional<Error> error;
  bool on_front = false;  ///< fits, and no other that does takes less device memory for as many tokens a second

  /// Tight or not.
  [[nodiscard]] bool fits() const { return figures && figures->fits(); }
  [[nodiscard]] bool tight() const { return figures && figures->verdict == cluster::Verdict::tight; }
  /// Has no figures because of what it is, and not because there is no room for it.
  [[nodiscard]] bool contradicts() const { return error && error->code != Errc::does_not_fit; }
  /// "fits", "tight", "does_not_fit", "contradiction".
  [[nodiscard]] const char* status() const {
    if (contradicts()) return "contradiction";
    return cluster::to_string(figures ? figures->verdict : cluster::Verdict::does_not_fit);
  }
  /// Why it is tight, does not fit or cannot be; empty otherwise.
  [[nodiscard]] std::string reason() const;
};

/// Sets SweepRow::on_front of all.
void mark_front(std::vector<SweepRow>& rows);

/// Those that fit, the fastest first, then those that do not, the smallest first, then those that contradict
/// themselves; equals in their order. Indices of rows.
[[nodiscard]] std::vector<std::size_t> best_first(const std::vector<SweepRow>& rows);

}  // namespace shard::commands
