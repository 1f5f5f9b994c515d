// A simulation as JSON: keys with their units.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>
#include <vector>

#include "sim/engine/report.h"
#include "sim/strategy/fields.h"

namespace shard::engine {
nlohmann::json to_json(const CategoryBytes& bytes) {
  nlohmann::json object = nlohmann::json::object();
  for (std::size_t c = 0; c < bytes.size(); ++c) {
    if (bytes[c] != Bytes{0}) object[to_string(static_cast<Category>(c))] = bytes[c].count();
  }
  return object;
}

namespace {

using nlohmann::json;

constexpr std::int32_t kRanksListed = 64;

json optional_bytes(const std::optional<Bytes>& bytes) {
  return bytes ? json(bytes->count()) : json(nullptr);
}

json holders(const std::vector<Holder>& list) {
  json array = json::array();
  for (const Holder& h : list) {
    array.push_back(
        {{"name", h.name}, {"category", to_string(h.category)}, {"bytes", h.bytes.count()}, {"buffers", h.buffers}});
  }
  return array;
}

json memory_peaks(const PhaseResult& phase) {
  json array = json::array();
  for (const MemoryPeak& m : phase.memory) {
    if (m.peak == Bytes{0}) continue;
    array.push_back({{"memory", to_string(m.memory)},
                     {"peak_bytes", m.peak.count()},
                     {"live_peak_bytes", m.live_peak.count()},
                     {"by_category", to_json(m.by_category)},
                     {"largest_holders", holders(m.largest_holders)},
                     {"op", m.op}});
  }
  return array;
}

json counts(const CollectiveCounts& all) {
  json array = json::array();
  for (std::size_t k = 0; k < all.size(); ++k) {
    if (all[k].count == 0) continue;
    array.push_back(
        {{"kind", to_string(static_cast<Collective>(k))}, {"count", all[k].count}, {"bytes", all[k].bytes.count()}});
  }
  return array;
}

json phases(const ClassResult& c) {
  json array = json::array();
  for (const PhaseResult& p : c.phases) {
    array.push_back({{"phase", to_string(p.phase)},
                     {"in_run", p.in_run},
                     {"seconds", p.seconds.count()},
                     {"compute_seconds", p.compute_seconds.count()},
                     {"communication_seconds", p.communication_seconds.count()},
                     {"exposed_communication_seconds", p.exposed_communication_seconds.count()},
                     {"memory", memory_peaks(p)},
                     {"collectives", counts(p.collectives)}});
  }
  return array;
}

json moments(const ClassResult& c) {
  json array = json::array();
  for (const Moment& m : c.moments) {
    array.push_back({{"name", m.name},
                     {"live_bytes", m.live.count()},
                     {"live_peak_bytes", m.live_peak.count()},
                     {"by_category", to_json(m.by_category)}});
  }
  return array;
}

/// (rank, class) of all ranks that are listed, in order of rank.
std::vector<std::pair<std::int32_t, const ClassResult*>> listed_ranks(const Simulation& s) {
  std::vector<std::pair<std::int32_t, const ClassResult*>> ranks;
  for (const ClassResult& c : s.classes) {
    for (const std::int32_t rank : c.ranks) {
      if (s.strategy.world_size <= kRanksListed || rank == c.ranks.front()) ranks.emplace_back(rank, &c);
    }
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

json arenas(const Simulation& s) {
  json array = json::array();
  for (const auto& [rank, c] : listed_ranks(s)) {
    for (std::size_t m = 0; m < c->peak.size(); ++m) {
      if (c->arena[m] == Bytes{0} && c->peak[m] == Bytes{0}) continue;
      array.push_back({{"rank", rank},
                       {"memory", to_string(static_cast<Memory>(m))},
                       {"predicted_peak_bytes", c->peak[m].count()}});
    }
  }
  return array;
}

json collectives(const Simulation& s) {
  json array = json::array();
  for (const auto& [rank, c] : listed_ranks(s)) {
    for (std::size_t k = 0; k < c->collectives.size(); ++k) {
      if (c->collectives[k].count == 0) continue;
      array.push_back({{"rank", rank},
                       {"kind", to_string(static_cast<Collective>(k))},
                       {"predicted_count", c->collectives[k].count},
                       {"predicted_bytes", c->collectives[k].bytes.count()}});
    }
  }
  return array;
}

}  // namespace

json to_json(const plan::Strategy& strategy) {
  json j;
  for (const plan::Field& field : plan::fields())
    std::visit([&](const auto& value) { j[std::string(field.key)] = value; }, plan::json_value(field, strategy));
  return j;
}

json to_json(const cluster::ByteRange& range) {
  return {{"low", range.low.count()}, {"high", range.high.count()}};
}

json to_json(const Simulation& s, const std::optional<Change>& change) {
  const ClassResult& largest = s.largest();
  json j;
  j["schema_version"] = kSchemaVersion;
  j["plan_hash"] = s.plan_hash;
  j["cluster"] = s.cluster;
  j["strategy"] = to_json(s.strategy);
  j["world_size"] = s.strategy.world_size;
  j["steps"] = s.steps;
  j["fits"] = s.fits;
  j["verdict"] = cluster::to_string(s.verdict());
  j["device_capacity_bytes"] = optional_bytes(s.device_capacity);
  j["headroom_bytes"] = optional_bytes(s.headroom());
  j["outside_allocator_bytes"] = to_json(s.outside);
  j["peak_uncertainty"] = s.room().uncertainty;
  j["peak_device_bytes"] = largest.peak[kDevice].count();
  j["live_peak_device_bytes"] = largest.live_peak[kDevice].count();
  j["peak_host_bytes"] = s.host_peak.count();
  j["peak_pinned_bytes"] = s.pinned_peak.count();
  j["host_capacity_bytes"] = optional_bytes(s.host.capacity);
  j["peak_disk_bytes"] = s.largest(Memory::disk).peak[static_cast<std::size_t>(Memory::disk)].count();
  const Memory shown = s.short_of().value_or(Memory::device);
  const PhaseResult* peak = s.largest(shown).peak_phase(shown);
  j["peak_memory"] = to_string(shown);
  j["peak_phase"] = peak == nullptr ? json(nullptr) : json(to_string(peak->phase));
  j["largest_holders"] =
      peak == nullptr ? json::array() : holders(peak->memory[static_cast<std::size_t>(shown)].largest_holders);
  j["smallest_change"] =
      change ? json{{"options", change->text}, {"peak_device_bytes", change->peak.count()}} : json(nullptr);
  j["moments"] = moments(largest);
  j["rank_classes"] = json::array();
  for (const ClassResult& c : s.classes) {
    j["rank_classes"].push_back(
        {{"rank", c.ranks.empty() ? 0 : c.ranks.front()}, {"ranks", c.ranks.size()}, {"phases", phases(c)}});
  }
  j["arenas"] = arenas(s);
  j["collectives"] = collectives(s);
  j["step_seconds"] = s.step_seconds.count();
  j["step_seconds_low"] = s.low(s.step_seconds).count();
  j["step_seconds_high"] = s.high(s.step_seconds).count();
  j["first_step_seconds"] = s.first_step_seconds.count();
  j["creation_seconds"] = s.creation_seconds.count();
  j["run_seconds"] = s.run_seconds.count();
  if (const PhaseResult* p = largest.find(Phase::steady_step)) {
    j["compute_share"] = share(p->compute_seconds, p->seconds);
    j["communication_share"] = share(p->communication_seconds, p->seconds);
    j["exposed_communication_share"] = share(p->exposed_communication_seconds, p->seconds);
  }
  j["tokens_per_second"] = s.tokens_per_second;
  j["tflops_per_device"] = s.flops_per_second / 1e12;
  return j;
}

}  // namespace shard::engine
