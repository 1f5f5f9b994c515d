// An emulation as JSON, text and Markdown.
#include "sim/like/report.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "sim/engine/report.h"
#include "traces/base/numbers.h"

namespace shard::like {
namespace {

using nlohmann::json;

/// Every run of digits becomes one star.
std::string without_numbers(const std::string& name) {
  std::string text;
  for (char c : name) {
    if (std::isdigit(static_cast<unsigned char>(c)) == 0)
      text += c;
    else if (text.empty() || text.back() != '*')
      text += '*';
  }
  return text;
}

/// A group of one keeps its name.
std::vector<BlockGroup> largest(const MemoryAnswer& result, std::size_t count) {
  if (result.moments.empty()) return {};
  std::vector<BlockGroup> groups = group_blocks(result.moments.back().blocks);
  std::stable_sort(groups.begin(), groups.end(),
                   [](const BlockGroup& a, const BlockGroup& b) { return a.together() > b.together(); });
  groups.resize(std::min(groups.size(), count));
  return groups;
}

std::string padded(std::string text, std::size_t width, bool right = false) {
  if (text.size() >= width) return text;
  return right ? std::string(width - text.size(), ' ') + text : text + std::string(width - text.size(), ' ');
}

}  // namespace

std::vector<BlockGroup> group_blocks(const std::vector<Block>& blocks) {
  std::vector<BlockGroup> groups;
  std::map<std::tuple<std::string, Category, std::int64_t, std::int64_t>, std::size_t> known;
  for (const Block& b : blocks) {
    std::string name = without_numbers(b.name);
    const auto [it, is_new] =
        known.try_emplace({name, b.category, b.requested.count(), b.taken.count()}, groups.size());
    if (is_new) groups.push_back({b.name, b.category, b.requested, b.taken, 0});
    BlockGroup& group = groups[it->second];
    if (++group.blocks == 2) group.name = std::move(name);
  }
  return groups;
}

json to_json(const MemoryAnswer& r, std::size_t holders) {
  json moments = json::array();
  for (const Moment& m : r.moments) {
    json blocks = json::array();
    std::map<Category, Bytes> by_category;
    for (const BlockGroup& g : group_blocks(m.blocks)) {
      blocks.push_back({{"name", g.name},
                        {"category", to_string(g.category)},
                        {"blocks", g.blocks},
                        {"requested_bytes", g.requested.count()},
                        {"block_bytes", g.taken.count()}});
      by_category[g.category] += g.together();
    }
    json categories = json::object();
    for (const auto& [category, bytes] : by_category) categories[to_string(category)] = bytes.count();
    moments.push_back({{"name", m.name},
                       {"max_allocated_bytes", m.max_allocated.count()},
                       {"max_reserved_bytes", m.max_reserved.count()},
                       {"allocated_bytes", m.allocated.count()},
                       {"reserved_bytes", m.reserved.count()},
                       {"op", m.op},
                       {"by_category", std::move(categories)},
                       {"blocks", std::move(blocks)}});
  }
  json largest_holders = json::array();
  for (const BlockGroup& g : largest(r, holders))
    largest_holders.push_back({{"name", g.name},
                               {"category", to_string(g.category)},
                               {"bytes", g.together().count()},
                               {"buffers", g.blocks}});
  json collectives = json::array();
  for (const CollectiveSum& c : r.collectives)
    collectives.push_back({{"rank", r.rank},
                           {"phase", to_string(c.phase)},
                           {"kind", to_string(c.kind)},
                           {"predicted_count", c.count},
                           {"predicted_bytes", c.bytes.count()}});
  json phases = json::array();
  for (const PhasePeaks& p : r.phases)
    phases.push_back({{"phase", to_string(p.phase)},
                      {"peak_allocated_bytes", p.allocated.count()},
                      {"peak_active_bytes", p.active.count()},
                      {"peak_reserved_bytes", p.reserved.count()}});
  return {{"fits", r.verdict() != cluster::Verdict::does_not_fit},
          {"verdict", cluster::to_string(r.verdict())},
          {"outside_allocator_bytes", engine::to_json(r.outside)},
          {"peak_uncertainty", r.uncertainty},
          {"device_capacity_bytes", r.device_capacity ? json(r.device_capacity->count()) : json(nullptr)},
          {"peak_device_bytes", r.peak_reserved().count()},
          {"peak_allocated_bytes", r.peak_allocated().count()},
          {"peak_active_bytes", r.peak_active().count()},
          {"peak_reserved_bytes", r.peak_reserved().count()},
          {"inactive_bytes", r.inactive.count()},
          {"largest_gap_bytes", r.largest_gap.count()},
          {"peak_host_bytes", r.host_peak.count()},
          {"peak_pinned_bytes", r.pinned_peak.count()},
          {"peak_host_of_all_bytes", r.host_of_all().count()},
          {"host_capacity_bytes", r.host.capacity ? json(r.host.capacity->count()) : json(nullptr)},
          {"peak_memory", to_string(r.short_of().value_or(Memory::device))},
          {"optimizer_state_bytes", r.optimizer_state.count()},
          {"phases", std::move(phases)},
          {"moments", std::move(moments)},
          {"largest_holders", std::move(largest_holders)},
          {"allocator",
           {{"allocation_count", r.statistics.allocation_count},
            {"segment_count", r.statistics.segment_count},
            {"allocated_bytes", r.statistics.allocated.current.count()},
            {"reserved_bytes", r.statistics.reserved.current.count()}}},
          {"collectives", std::move(collectives)}};
}

ShowBytes unit_of(const MemoryAnswer& r) {
  return one_unit(std::max(r.peak_reserved() + r.outside.high, r.host_of_all()));
}

std::string verdict_text(const MemoryAnswer& r, ShowBytes show) {
  if (r.short_of().value_or(Memory::device) == Memory::device) {
    const std::string device = r.device_capacity
                                   ? cluster::verdict_line(r.verdict(), r.peak_reserved(), r.room(), show, " reserved")
                                   : cluster::unlimited_line(r.peak_reserved(), r.room(), show, " reserved");
    if (r.host_of_all() == Bytes{0}) return device;
    return device + cluster::host_line(r.host_of_all(), r.pinned_of_all(), r.host, show);
  }
  return cluster::headline_of(r.verdict()) + cluster::host_account(r.host_of_all(), r.pinned_of_all(), r.host, show) +
         "\ndevice memory: " + cluster::account_of(r.peak_reserved(), r.room(), show, " reserved") + "\n";
}

json to_json(const LikeResult& r, std::size_t holders) {
  json j = to_json(static_cast<const MemoryAnswer&>(r), holders);
  j.update({{"schema_version", engine::kSchemaVersion},
            {"like", r.framework},
            {"model", r.model},
            {"strategy", engine::to_json(r.strategy)},
            {"world_size", r.strategy.world_size},
            {"rank", r.rank}});
  return j;
}

std::string details_text(const MemoryAnswer& r, const std::string& who, ShowBytes show, std::size_t holders) {
  constexpr std::size_t kColumns = 19;
  std::string text = who + "\n";
  text += padded("", 24) + padded("max allocated", kColumns, true) + padded("max reserved", kColumns, true) + "\n";
  for (const Moment& m : r.moments)
    text += padded("  " + m.name, 24) + padded(show(m.max_allocated), kColumns, true) +
            padded(show(m.max_reserved), kColumns, true) + "\n";
  if (r.host_peak + r.pinned_peak > Bytes{0})
    text += "host memory of a rank at most: " + show(r.pinned_peak) + " pinned, " + show(r.host_peak) + " pageable\n";
  text += "largest at the peak:\n";
  for (const BlockGroup& g : largest(r, holders)) {
    text += padded(show(g.together()), kColumns, true) + "  " + padded(to_string(g.category), 17) + g.name;
    if (g.blocks > 1) text += " (" + std::to_string(g.blocks) + " blocks)";
    text += "\n";
  }
  return text;
}

std::string who(const LikeResult& r) {
  return "like " + r.framework + ", rank " + std::to_string(r.rank) + " of " + std::to_string(r.strategy.world_size) +
         ", " + r.steps;
}

std::string to_markdown(const MemoryAnswer& r) {
  std::string text;
  for (const Moment& m : r.moments) {
    text += (text.empty() ? "" : "\n") + std::string("**") + m.name + "**: " + with_commas(m.max_allocated.count()) +
            " bytes, reached by \"" + m.op + "\"\n\n";
    text += "| block | category | blocks | requested | block size | together |\n|---|---|--:|--:|--:|--:|\n";
    for (const BlockGroup& g : group_blocks(m.blocks)) {
      text += "| `" + g.name + "` | " + to_string(g.category) + " | " + std::to_string(g.blocks) + " | " +
              with_commas(g.requested.count()) + " | " + with_commas(g.taken.count()) + " | " +
              with_commas(g.together().count()) + " |\n";
    }
  }
  return text;
}

}  // namespace shard::like
