// One pass over the memory events, with a ledger per rank and memory.
#include "traces/peaks.h"
#include "traces/base/wrapping.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>

namespace shard {
namespace {

struct Ledger {
  std::int64_t live = 0;
  BytesByCategory by_category{};
  std::unordered_map<std::int32_t, std::int64_t> end_of_buffer;
  std::multiset<std::int64_t> ends;
  std::optional<Phase> phase;
};

using Key = std::tuple<Rank, Memory>;

}  // namespace

std::vector<MemoryPeak> memory_peaks(const Trace& trace) {
  std::map<Key, Ledger> ledgers;
  std::map<std::tuple<Rank, Memory, Phase>, MemoryPeak> peaks;
  Ledger* ledger = nullptr;
  Key current{};
  for (std::size_t i = 0; i < trace.memory.size(); ++i) {
    const MemoryEvent event = trace.memory[i];
    if (const Key key{event.rank, event.memory}; ledger == nullptr || key != current) {
      current = key;
      ledger = &ledgers[key];
    }
    const auto [at, first] = peaks.try_emplace({event.rank, event.memory, event.phase});
    MemoryPeak& peak = at->second;
    const auto raise = [&] {
      if (!ledger->ends.empty()) peak.peak_bytes = std::max(peak.peak_bytes, *ledger->ends.rbegin());
      if (ledger->live > peak.live_peak_bytes) {
        peak.live_peak_bytes = ledger->live;
        peak.at_peak_bytes = ledger->by_category;
        peak.peak_time_ns = event.time_ns;
        peak.peak_op = event.op;
      }
      for (std::size_t c = 0; c < ledger->by_category.size(); ++c) {
        peak.category_peak_bytes[c] = std::max(peak.category_peak_bytes[c], ledger->by_category[c]);
      }
    };
    if (first) {
      peak.rank = event.rank;
      peak.memory = event.memory;
      peak.phase = event.phase;
    }
    if (ledger->phase != event.phase) raise();  // what earlier phases left live
    ledger->phase = event.phase;

    ledger->live = wrapping_sum(ledger->live, event.delta_bytes);
    std::int64_t& category = ledger->by_category[static_cast<std::size_t>(event.category)];
    category = wrapping_sum(category, event.delta_bytes);
    if (const auto old = ledger->end_of_buffer.find(event.buffer.value); old != ledger->end_of_buffer.end()) {
      ledger->ends.erase(ledger->ends.find(old->second));
      ledger->end_of_buffer.erase(old);
    }
    if (event.delta_bytes > 0) {
      const std::int64_t end = wrapping_sum(event.offset_bytes, event.delta_bytes);
      ledger->end_of_buffer.emplace(event.buffer.value, end);
      ledger->ends.insert(end);
      raise();
    }
  }
  std::vector<MemoryPeak> result;
  result.reserve(peaks.size());
  for (const auto& [key, peak] : peaks) result.push_back(peak);
  return result;
}

}  // namespace shard
