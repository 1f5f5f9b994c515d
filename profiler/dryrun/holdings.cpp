// The block of an address is the last that was allocated there before the moment: what is held is in use.
#include "profiler/dryrun/holdings.h"

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "profiler/dryrun/allocation_counts.h"
#include "traces/import/names.h"

namespace shard::dryrun {
namespace {

using Json = nlohmann::json;

/// A block of the device: where it is, and the event that made it.
struct Made {
  std::uint64_t address = 0;
  std::size_t row = 0;
};

/// In the order in which they were made, those that were there before the recording first.
std::vector<Made> blocks_of(const LoadedTrace& recording, std::int32_t device) {
  std::vector<Made> blocks;
  for (const Snapshot::Start::Live& live : recording.snapshot->at_start.blocks)
    if (live.device == device) blocks.push_back({.address = live.address});
  for (const SnapshotEvent& event : recording.snapshot->events)
    if (event.device == device && event.action == SnapshotAction::alloc) blocks.push_back({.address = event.address});
  const MemoryTable& memory = recording.trace.memory;
  std::size_t next = 0;
  for (std::size_t row = 0; row < memory.size() && next < blocks.size(); ++row)
    if (memory.rank[row].value == device && memory.delta_bytes[row] > 0) blocks[next++].row = row;
  blocks.resize(next);
  return blocks;
}

class Held {
 public:
  Held(const Json& said, LoadedTrace& recording, std::int32_t device)
      : memory_(recording.trace.memory),
        counts_(said.value("allocations", Json()), *recording.snapshot, device),
        blocks_(blocks_of(recording, device)) {}

  [[nodiscard]] bool fits() const {
    return counts_.fit() && static_cast<std::int64_t>(blocks_.size()) == counts_.live_at_start() + counts_.recorded();
  }

  /// Behind the marks before it.
  void mark(const Json& counts, const Json& held) {
    const std::int64_t made = counts_.live_at_start() + counts_.recorded_before(counts);
    for (; static_cast<std::int64_t>(next_) < made && next_ < blocks_.size(); ++next_)
      at_[blocks_[next_].address] = blocks_[next_].row;
    if (made < 0 || !held.is_object()) return;
    for (const auto& [name, places] : held.items())
      if (const std::optional<Category> category = import::category_named(name)) take(places, *category);
  }

  /// Both ends of a block alike.
  void finish() {
    for (std::size_t row = 0; row < memory_.size(); ++row) {
      if (memory_.rank[row].value != counts_.device()) continue;
      const std::int32_t buffer = memory_.buffer[row].value;
      if (memory_.delta_bytes[row] > 0) {
        if (told_.contains(row)) open_[buffer] = memory_.category[row];
      } else if (const auto at = open_.find(buffer); at != open_.end()) {
        memory_.category[row] = at->second;
        open_.erase(at);
      }
    }
  }

 private:
  void take(const Json& places, Category category) {
    for (const Json& place : places) {
      if (!place.is_array() || place.size() != 2 || place[0] != counts_.device() || !place[1].is_number_unsigned())
        continue;
      const auto at = at_.find(place[1].get<std::uint64_t>());
      if (at == at_.end() || memory_.category[at->second] != Category::not_known) continue;
      memory_.category[at->second] = category;
      told_.insert(at->second);
    }
  }

  MemoryTable& memory_;
  AllocationCounts counts_;
  std::vector<Made> blocks_;
  std::size_t next_ = 0;                               // of blocks_: those before are in at_
  std::unordered_map<std::uint64_t, std::size_t> at_;  // by address, the row that made the latest block there
  std::set<std::size_t> told_;                         // rows
  std::unordered_map<std::int32_t, Category> open_;    // by buffer
};

}  // namespace

void add_holdings(const std::filesystem::path& file, LoadedTrace& recording) {
  std::ifstream in(file);
  const Json said = Json::parse(in, nullptr, false);
  if (!said.is_object() || !recording.snapshot) return;
  for (std::int32_t device = 0; device < static_cast<std::int32_t>(recording.snapshot->device_count); ++device) {
    Held held(said, recording, device);
    if (!held.fits()) continue;
    for (const Json& mark : said.value("marks", Json::array()))
      if (mark.is_array() && mark.size() == 2) held.mark(mark[0], mark[1]);
    held.finish();
  }
}

}  // namespace shard::dryrun
