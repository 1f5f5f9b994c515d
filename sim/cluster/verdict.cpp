// Three values from a peak, a capacity and an interval.
#include "sim/cluster/verdict.h"

#include <cmath>

namespace shard::cluster {

Verdict verdict_of(Bytes peak, const Room& room) {
  if (!room.capacity) return Verdict::fits;
  if (peak + room.outside.low > *room.capacity) return Verdict::does_not_fit;
  const auto margin = static_cast<std::int64_t>(std::ceil(static_cast<double>(peak.count()) * room.uncertainty));
  return peak + Bytes{margin} + room.outside.high > *room.capacity ? Verdict::tight : Verdict::fits;
}

std::string show_range(ByteRange range, ShowBytes show) {
  std::string low = show(range.low);
  const std::string high = show(range.high);
  if (range.low == range.high) return high;
  const std::size_t unit = high.find(' ');
  if (unit != std::string::npos && low.ends_with(high.substr(unit))) low.resize(low.size() - (high.size() - unit));
  return low + " to " + high;
}

std::string account_of(Bytes peak, const Room& room, ShowBytes show, const std::string& what) {
  std::string text = show(peak) + what;
  if (room.outside != ByteRange{})
    text += " + " + show_range(room.outside, show) +
            " outside of the allocator = " + show_range(ByteRange{peak, peak} + room.outside, show);
  if (room.capacity) text += " of " + show(*room.capacity) + " device memory";
  return text;
}

HostRoom host_room(const Cluster& cluster, std::int32_t ranks, std::optional<Bytes> given) {
  return {.capacity = given ? given : cluster.host_memory,
          .ranks = layout(cluster, ranks).ranks_per_host(),
          .assumed_of = given || !cluster.host_memory ? std::string() : cluster.name};
}

std::string host_account(Bytes of_all_ranks, Bytes pinned, const HostRoom& room, ShowBytes show) {
  std::string text = show(of_all_ranks);
  if (room.capacity) text += " of " + show(*room.capacity);
  text += " host memory";
  if (room.ranks > 1) text += " (" + std::to_string(room.ranks) + " ranks of a host)";
  if (pinned > Bytes{0}) text += ", " + show(pinned) + " of it pinned";
  if (!room.assumed_of.empty())
    text += "; the limit is what the description of " + room.assumed_of + " assumes: --host-capacity for another";
  return text;
}

std::string host_line(Bytes of_all_ranks, Bytes pinned, const HostRoom& room, ShowBytes show) {
  if (!room.holds(of_all_ranks)) return "does not fit either: " + host_account(of_all_ranks, pinned, room, show) + "\n";
  return "host memory: " + show(of_all_ranks) +
         (room.capacity ? " of " + show(*room.capacity) + " of a host" : " at the peak of a host") +
         (pinned > Bytes{0} ? ", " + show(pinned) + " of it pinned" : "") + "\n";
}

std::string headline_of(Verdict verdict) {
  return verdict == Verdict::does_not_fit ? "does not fit: " : std::string(to_string(verdict)) + ": ";
}

std::string unlimited_line(Bytes peak, const Room& room, ShowBytes show, const std::string& what) {
  return "device memory: " + account_of(peak, room, show, what) + " at the peak, no limit set\n";
}

std::string verdict_line(Verdict verdict, Bytes peak, const Room& room, ShowBytes show, const std::string& what) {
  return room.capacity ? headline_of(verdict) + account_of(peak, room, show, what) + "\n" : "";
}

}  // namespace shard::cluster
