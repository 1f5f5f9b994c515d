// The median of an even number of draws is the lower of the two in the middle, which is one that was seen.
#include "profiler/commands/routing_draws.h"

#include <algorithm>

#include "profiler/commands/routing.h"
#include "traces/base/numbers.h"

namespace shard::dryrun {
namespace {

struct Spread {
  std::int64_t least = 0, median = 0, largest = 0;
};

Spread spread_of(std::vector<std::int64_t> peaks) {
  std::ranges::sort(peaks);
  return {peaks.front(), peaks[(peaks.size() - 1) / 2], peaks.back()};
}

nlohmann::ordered_json to_json(const Spread& spread) {
  return {{"least", spread.least}, {"median", spread.median}, {"largest", spread.largest}};
}

}  // namespace

void RoutingDraws::add(const DryRuns& runs) {
  allocated_.push_back(runs.worst().answer ? runs.worst().answer->allocated_bytes : 0);
  reserved_.push_back(reserved_bytes(runs.worst()));
}

bool RoutingDraws::is_largest_last() const {
  return allocated_.back() == *std::ranges::max_element(allocated_);
}

nlohmann::ordered_json RoutingDraws::json() const {
  return {{"draws", allocated_.size()},
          {"peak_allocated_bytes", to_json(spread_of(allocated_))},
          {"peak_reserved_bytes", to_json(spread_of(reserved_))},
          {"each_peak_allocated_bytes", allocated_}};
}

std::string RoutingDraws::text(const std::string& routing) const {
  const Spread peak = spread_of(allocated_);
  if (peak.least == peak.largest)
    return with_commas(static_cast<std::int64_t>(allocated_.size())) + " draws of " + name_of_routing(routing) +
           " routing have the same peak\n";
  return "over " + with_commas(static_cast<std::int64_t>(allocated_.size())) + " draws of " + name_of_routing(routing) +
         " routing the peak was " + show_bytes(Bytes{peak.least}) + " at least, " + show_bytes(Bytes{peak.median}) +
         " in the median, " + show_bytes(Bytes{peak.largest}) + " at most, which is the run above\n";
}

}  // namespace shard::dryrun
