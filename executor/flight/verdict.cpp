// The last events of each rank, side by side.
#include "executor/flight/verdict.h"

#include <algorithm>
#include <map>
#include <vector>

namespace shard::flight {
namespace {

bool same_collective(const Event& a, const Event& b) {
  return a.step == b.step && a.phase == b.phase && a.op == b.op;
}

bool is_before(const Event& a, const Event& b) {
  return a.step != b.step ? a.step < b.step : a.phase != b.phase ? a.phase < b.phase : a.op < b.op;
}

/// "h.3" of "transformer.h.3.attn.c_attn"; "block 3" where the name says no more.
std::string block_text(std::string_view name, std::int32_t block) {
  const std::string number = std::to_string(block);
  std::string_view before;
  while (!name.empty()) {
    const std::size_t end = std::min(name.find_first_of(". "), name.size());
    const std::string_view part = name.substr(0, end);
    if (part == number && !before.empty()) return std::string(before) + "." + number;
    before = part;
    name.remove_prefix(std::min(end + 1, name.size()));
  }
  return "block " + number;
}

std::string op_text(const Recording& recording, const Event& event) {
  const auto name = recording.op_names.find(event.op);
  const std::string known = name == recording.op_names.end() ? "op " + std::to_string(event.op) : name->second;
  const bool passes = event.part == Part::forward || event.part == Part::recompute || event.part == Part::backward;
  if (!passes) return known;
  return std::string(to_string(event.part)) + " of " + (event.block < 0 ? known : block_text(known, event.block));
}

std::string phase_text(const Event& event) {
  switch (event.phase) {
    case Phase::first_step:
    case Phase::steady_step: return "step " + std::to_string(std::int64_t{event.step} + 1);
    case Phase::creation:
    case Phase::save:
    case Phase::load:
    case Phase::digest: return to_string(event.phase);
  }
  return "?";
}

/// Between phases a rank is behind the last one.
std::string place_of_event(const Recording& recording, const Position& position, const char* in) {
  const std::string phase = phase_text(*position.last);
  if (position.last->kind == EventKind::phase_ended) return "behind " + phase;
  return "in " + phase + (position.op ? ", " + (in + op_text(recording, *position.op)) : std::string());
}

std::string ranks_text(const std::vector<std::int32_t>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  return text;
}

const char* wait_word(const std::vector<std::int32_t>& ranks) {
  return ranks.size() == 1 ? " waits" : " wait";
}

/// Who waits in one collective, as the first of them names it.
struct Waiters {
  const Recording* first = nullptr;
  Event collective{};
  std::vector<std::int32_t> ranks{};
};

/// Of all but `at_fault`, the oldest collective first.
std::vector<Waiters> waiters_of(std::span<const Recording> recordings, std::optional<std::int32_t> at_fault) {
  std::vector<Waiters> all;
  for (const Recording& each : recordings) {
    if (each.rank == at_fault) continue;
    const Position position = position_of(each);
    if (!position.awaited) continue;
    const auto known =
        std::ranges::find_if(all, [&](const Waiters& w) { return same_collective(w.collective, *position.awaited); });
    if (known != all.end())
      known->ranks.push_back(each.rank);
    else
      all.push_back({&each, *position.awaited, {each.rank}});
  }
  std::ranges::stable_sort(all,
                           [](const Waiters& a, const Waiters& b) { return is_before(a.collective, b.collective); });
  return all;
}

const Recording* recording_of(std::span<const Recording> recordings, std::int32_t rank) {
  const auto found = std::ranges::find(recordings, rank, &Recording::rank);
  return found == recordings.end() ? nullptr : &*found;
}

std::string of_the_dead(std::span<const Recording> recordings, const Recording& dead) {
  const Position position = position_of(dead);
  if (!position.last) return {};
  std::string text = "rank " + std::to_string(dead.rank) + " died " + place_of_event(dead, position, "");
  bool first = true;
  for (const Waiters& each : waiters_of(recordings, dead.rank)) {
    const std::string name = collective_text(*each.first, each.collective);
    if (first) text += (has_started(dead, each.collective) ? ", within " : ", before ") + name;
    text += "; " + ranks_text(each.ranks) + wait_word(each.ranks) + " in " + (first ? "it" : name);
    first = false;
  }
  if (first && position.next_out) text += ", within " + collective_text(dead, *position.next_out);
  return text;
}

/// Those of a collective that others wait in who have not started it, by the first such collective.
std::string of_the_late(std::span<const Recording> recordings, std::optional<std::int64_t> now_ns) {
  for (const Waiters& each : waiters_of(recordings, std::nullopt)) {
    std::string text;
    for (const Recording& other : recordings) {
      if (std::ranges::find(each.ranks, other.rank) != each.ranks.end() || has_started(other, each.collective))
        continue;
      const Position position = position_of(other);
      if (!position.last || is_before(each.collective, *position.last)) continue;
      text += (text.empty() ? "rank " : "; rank ") + std::to_string(other.rank) + " has made no progress ";
      if (now_ns && *now_ns > position.last->time_ns)
        text += "for " + std::to_string((*now_ns - position.last->time_ns) / 1'000'000'000) + " s ";
      text += place_of_event(other, position, "in ");
    }
    if (!text.empty())
      return text + "; " + ranks_text(each.ranks) + wait_word(each.ranks) + " for it in " +
             collective_text(*each.first, each.collective);
  }
  return {};
}

}  // namespace

Position position_of(const Recording& recording) {
  Position position;
  std::map<std::uint32_t, Event> in_flight;
  for (const Entry& entry : recording.entries) {
    const Event& event = entry.event;
    position.last = event;
    if (event.kind == EventKind::phase_begun) position.op.reset();
    if (event.kind == EventKind::op_begun) position.op = event;
    if (event.kind == EventKind::started) in_flight.insert_or_assign(event.call, event);
    if (event.kind == EventKind::waiting) {
      position.awaited = event;
      in_flight.insert_or_assign(event.call, event);
    }
    if (event.kind != EventKind::landed) continue;
    in_flight.erase(in_flight.begin(), in_flight.upper_bound(event.call));
    if (!position.awaited || position.awaited->call > event.call) continue;
    position.awaited.reset();
  }
  if (!in_flight.empty()) position.next_out = in_flight.begin()->second;
  // What began behind the wait says that the wait is over, even where the landing was torn.
  if (position.awaited && position.last->kind != EventKind::waiting) position.awaited.reset();
  return position;
}

bool has_started(const Recording& recording, const Event& collective) {
  return std::ranges::any_of(recording.entries, [&](const Entry& entry) {
    const EventKind kind = entry.event.kind;
    return (kind == EventKind::started || kind == EventKind::waiting || kind == EventKind::landed) &&
           same_collective(entry.event, collective);
  });
}

std::string place_text(const Recording& recording) {
  const Position position = position_of(recording);
  return position.last ? place_of_event(recording, position, "") : std::string();
}

std::string collective_text(const Recording& recording, const Event& collective) {
  std::string kind = to_string(collective.collective);
  std::ranges::replace(kind, '_', '-');
  std::string name;
  if (const auto unit = recording.unit_names.find(collective.unit); unit != recording.unit_names.end())
    name = unit->second;
  else if (const auto op = recording.op_names.find(collective.op); op != recording.op_names.end())
    name = op->second;
  return "collective " + std::to_string(collective.call) + " (" + kind + (name.empty() ? "" : " ") + name + ")";
}

std::string verdict(std::span<const Recording> recordings, const Fault& fault) {
  const auto died = std::ranges::find(recordings, true, &Recording::died);
  if (!fault.dead && died == recordings.end()) return of_the_late(recordings, fault.now_ns);
  const Recording* const dead =
      recording_of(recordings, fault.dead.value_or(died == recordings.end() ? -1 : died->rank));
  return dead == nullptr ? std::string() : of_the_dead(recordings, *dead);
}

std::string own_words(const Recording& recording) {
  const Position position = position_of(recording);
  if (!position.last) return {};
  std::string text = "rank " + std::to_string(recording.rank) + " is " + place_of_event(recording, position, "");
  if (position.awaited) text += ", and waits in " + collective_text(recording, *position.awaited);
  return text;
}

}  // namespace shard::flight
