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
    case Phase::evaluate:
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

/// Of all but those at fault, the oldest collective first.
std::vector<Waiters> waiters_of(std::span<const Recording> recordings, const std::vector<std::int32_t>& at_fault) {
  std::vector<Waiters> all;
  for (const Recording& each : recordings) {
    if (std::ranges::find(at_fault, each.rank) != at_fault.end()) continue;
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

/// Those who wait for nobody: what ends a run may come before they do.
std::vector<std::int32_t> at_work_beside(std::span<const Recording> recordings, std::int32_t dead) {
  std::vector<std::int32_t> ranks;
  for (const Recording& each : recordings)
    if (const Position position = position_of(each); each.rank != dead && position.last && !position.awaited)
      ranks.push_back(each.rank);
  return ranks;
}

std::string of_the_dead(std::span<const Recording> recordings, const Recording& dead) {
  const Position position = position_of(dead);
  if (!position.last) return {};
  std::string text = "rank " + std::to_string(dead.rank) + " died " + place_of_event(dead, position, "");
  bool first = true;
  for (const Waiters& each : waiters_of(recordings, {dead.rank})) {
    const std::string name = collective_text(*each.first, each.collective);
    if (first) text += (has_started(dead, each.collective) ? ", within " : ", before ") + name;
    text += "; " + ranks_text(each.ranks) + wait_word(each.ranks) + " in " + (first ? "it" : name);
    first = false;
  }
  if (first && position.next_out)
    text += ", within " + collective_text(dead, *position.next_out);
  else if (first && position.landed)
    text += ", behind " + collective_text(dead, *position.landed);
  const std::vector<std::int32_t> at_work = at_work_beside(recordings, dead.rank);
  if (!at_work.empty())
    text += "; " + ranks_text(at_work) + (at_work.size() == 1 ? " was" : " were") + " still at work";
  return text;
}

/// Ranks that live and do not go on, and who waits for them.
std::string of_the_stuck(const std::vector<const Recording*>& stuck, const std::vector<Waiters>& waiters,
                         std::optional<std::int64_t> now_ns) {
  std::string text;
  for (const Recording* each : stuck) {
    const Position position = position_of(*each);
    if (!position.last) continue;
    text += (text.empty() ? "rank " : "; rank ") + std::to_string(each->rank) + " has made no progress ";
    // A time before that of any clock is of a damaged recorder.
    if (const std::int64_t since = position.last->time_ns; now_ns && since >= 0 && *now_ns > since)
      text += "for " + std::to_string((*now_ns - since) / 1'000'000'000) + " s ";
    text += place_of_event(*each, position, "in ");
  }
  if (text.empty()) return text;
  const char* const whom = stuck.size() == 1 ? " for it in " : " for them in ";
  for (const Waiters& each : waiters)
    text +=
        "; " + ranks_text(each.ranks) + wait_word(each.ranks) + whom + collective_text(*each.first, each.collective);
  return text;
}

std::string of_the_silent(std::span<const Recording> recordings, const Fault& fault) {
  std::vector<std::int32_t> ranks;
  std::vector<const Recording*> silent;
  for (const Recording& each : recordings) {
    const bool known = std::ranges::find(fault.silent, each.rank) != fault.silent.end();
    if (!known && (!fault.silent.empty() || each.seen != Seen::silent)) continue;
    ranks.push_back(each.rank);
    silent.push_back(&each);
  }
  return silent.empty() ? std::string() : of_the_stuck(silent, waiters_of(recordings, ranks), fault.now_ns);
}

bool has_landed(const Recording& recording, const Event& collective) {
  return std::ranges::any_of(recording.entries, [&](const Entry& entry) {
    return entry.event.kind == EventKind::landed && same_collective(entry.event, collective);
  });
}

/// Whether others who wait in this collective may wait for this rank: it has not come to it, or, with `under_way`, it
/// has started it and does something else, while what the others wait for needs its thread.
bool is_late(const Recording& recording, const Event& collective, bool under_way) {
  const Position position = position_of(recording);
  if (!position.last || position.awaited) return false;
  const bool started = has_started(recording, collective);
  if (under_way) return started && !has_landed(recording, collective);
  return !started && !is_before(collective, *position.last);
}

/// Whether it waits in an earlier collective, which all others have behind them.
bool is_left_behind(std::span<const Recording> recordings, const Recording& recording, const Event& collective) {
  const Position position = position_of(recording);
  return position.awaited && is_before(*position.awaited, collective) &&
         std::ranges::all_of(recordings, [&](const Recording& other) {
           return other.rank == recording.rank || has_landed(other, *position.awaited);
         });
}

/// By the first collective that others wait in.
std::string of_the_late(std::span<const Recording> recordings, std::optional<std::int64_t> now_ns) {
  enum class Rule : std::uint8_t { not_started, under_way, left_behind };
  for (const Rule rule : {Rule::not_started, Rule::under_way, Rule::left_behind})
    for (const Waiters& each : waiters_of(recordings, {})) {
      std::vector<const Recording*> late;
      std::vector<std::int32_t> ranks;
      for (const Recording& other : recordings) {
        const bool at_fault = rule == Rule::left_behind ? is_left_behind(recordings, other, each.collective)
                                                        : is_late(other, each.collective, rule == Rule::under_way);
        if (!at_fault) continue;
        late.push_back(&other);
        ranks.push_back(other.rank);
      }
      if (!late.empty()) return of_the_stuck(late, waiters_of(recordings, ranks), now_ns);
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
    position.landed = event;
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
  const auto died = std::ranges::find(recordings, Seen::dead, &Recording::seen);
  if (fault.dead || died != recordings.end()) {
    const Recording* const dead = fault.dead ? recording_of(recordings, *fault.dead) : &*died;
    return dead == nullptr ? std::string() : of_the_dead(recordings, *dead);
  }
  const std::string silent = of_the_silent(recordings, fault);
  return silent.empty() ? of_the_late(recordings, fault.now_ns) : silent;
}

std::string own_words(const Recording& recording) {
  const Position position = position_of(recording);
  if (!position.last) return {};
  std::string text = "rank " + std::to_string(recording.rank) + " is " + place_of_event(recording, position, "");
  if (position.awaited) text += ", and waits in " + collective_text(recording, *position.awaited);
  return text;
}

}  // namespace shard::flight
