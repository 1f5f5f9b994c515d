// Whether a predicted peak fits a device: the one place that decides, and the headline that says it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/cluster/outside.h"
#include "traces/base/numbers.h"
#include "traces/base/units.h"

namespace shard::cluster {

enum class Verdict : std::uint8_t { fits, tight, does_not_fit };

[[nodiscard]] constexpr const char* to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::fits: return "fits";
    case Verdict::tight: return "tight";
    case Verdict::does_not_fit: return "does_not_fit";
  }
  return "?";
}

/// A device's memory, and what a peak leaves out.
struct Room {
  std::optional<Bytes> capacity{};  ///< none: no limit
  ByteRange outside{};              ///< of the allocator
  double uncertainty = 0;           ///< of the peak, as a share: how far predictions were off where they were compared
  /// What is left to the allocator with the lowest and with the highest of what lies outside.
  [[nodiscard]] std::optional<Bytes> at_most() const { return left(outside.low); }
  [[nodiscard]] std::optional<Bytes> at_least() const { return left(outside.high); }

 private:
  [[nodiscard]] std::optional<Bytes> left(Bytes taken) const {
    if (!capacity) return std::nullopt;
    return *capacity > taken ? *capacity - taken : Bytes{0};
  }
};

/// A host's memory, which its ranks share.
struct HostRoom {
  std::optional<Bytes> capacity{};  ///< none: no limit
  std::int32_t ranks = 1;           ///< of the host that has most of them
  std::string assumed_of{};         ///< the cluster whose description says the capacity; empty: the user does
  [[nodiscard]] bool holds(Bytes of_all_ranks) const { return !capacity || of_all_ranks <= *capacity; }
};

/// Of so many ranks on a cluster; `given` in place of what the cluster's description says.
[[nodiscard]] HostRoom host_room(const Cluster& cluster, std::int32_t ranks, std::optional<Bytes> given);

/// "70.00 GiB of 64.00 GiB host memory (4 ranks of a host), 60.00 GiB of it pinned", with whose limit that is where
/// the user did not say it. For the headline of a run that has too much for its host.
[[nodiscard]] std::string host_account(Bytes of_all_ranks, Bytes pinned, const HostRoom& room,
                                       ShowBytes show = show_bytes);
/// The line below a headline about the device: "host memory: 35.52 GiB of 2048.00 GiB of a host", or that this does not
/// fit either.
[[nodiscard]] std::string host_line(Bytes of_all_ranks, Bytes pinned, const HostRoom& room,
                                    ShowBytes show = show_bytes);

/// does_not_fit: too large with the lowest of what lies outside; fits: small enough with the highest, and were the peak
/// larger by the uncertainty; tight: between them.
[[nodiscard]] Verdict verdict_of(Bytes peak, const Room& room);

/// "0.54 to 1.63 GiB"; one figure where both are equal.
[[nodiscard]] std::string show_range(ByteRange range, ShowBytes show = show_bytes);

/// "22.21 GiB + 0.54 to 1.63 GiB outside of the allocator = 22.75 to 23.84 GiB of 39.50 GiB device memory"; without the
/// account where nothing lies outside. `show` is for bytes; `what` comes behind the peak (" reserved").
[[nodiscard]] std::string account_of(Bytes peak, const Room& room, ShowBytes show = show_bytes,
                                     const std::string& what = "");

/// "fits: ", "tight: ", "does not fit: ".
[[nodiscard]] std::string headline_of(Verdict verdict);

/// "device memory: 5.87 GiB at the peak, no limit set", a line.
[[nodiscard]] std::string unlimited_line(Bytes peak, const Room& room, ShowBytes show, const std::string& what = "");

/// Headline and account, one line ended by a newline; empty without a limit. The verdict is verdict_of() but where more
/// than the peak is known.
[[nodiscard]] std::string verdict_line(Verdict verdict, Bytes peak, const Room& room, ShowBytes show = show_bytes,
                                       const std::string& what = "");

}  // namespace shard::cluster
