// Options, and the question that they are.
#include "sim/commands/holders_options.h"

#include <nlohmann/json.hpp>

#include "sim/cli/times.h"
#include "traces/base/wrapping.h"

namespace shard::commands {
namespace {

/// Of the segments that little keeps, so many are told one by one.
constexpr std::size_t kKeptSegments = 3;

}  // namespace

void HoldersOptions::add_moment_to(cli::Group& group) {
  group.add_custom("at", "peak|TIME", "at its peak, or so long after the trace's begin (12.5ms)",
                   [this](std::string_view text, std::string_view from, const cli::Range&) -> Result<void> {
                     asked = true;
                     at_ns.reset();
                     if (text == "peak") return {};
                     const Result<std::int64_t> time = cli::parse_time(text, from);
                     if (!time) return time.error();
                     at_ns = *time;
                     return {};
                   });
  group.add_choice(
      "by", &by,
      {{"site", HeldBy::site, "the innermost line of your own code"}, {"stack", HeldBy::stack, "the whole stack"}},
      "what blocks are put together by");
  group.add("top", &top, "N", "so many of the largest").least(0);
}

void HoldersOptions::add_to(cli::Command& command) {
  cli::Group group = command.group("Who held memory");
  add_moment_to(group);
  group.add("rank", &rank, "N", "of this rank; without, of the one with the highest peak").least(0);
  group.add_choice(
      "memory", &memory,
      {{"device", Memory::device}, {"host", Memory::host}, {"disk", Memory::disk}, {"pinned", Memory::pinned}},
      "of this memory");
}

Result<std::optional<HoldersAnswer>> HoldersOptions::of(const Trace& trace, const Snapshot* snapshot,
                                                        std::int64_t begin_ns) const {
  if (!asked && trace.stacks.empty()) return std::optional<HoldersAnswer>();
  HeldQuery query{.memory = memory, .by = by};
  if (rank) query.rank = Rank{static_cast<std::int32_t>(*rank)};
  if (at_ns) query.time_ns = wrapping_sum(begin_ns, *at_ns);
  Result<Held> held = held_at(trace, query);
  if (!held && !asked) return std::optional<HoldersAnswer>();
  if (!held) return held.error();
  HoldersAnswer answer{.held = std::move(*held)};
  if (snapshot != nullptr && memory == Memory::device)
    answer.segments = segments_at(*snapshot, answer.held.rank.value, query.time_ns);
  return std::optional<HoldersAnswer>(std::move(answer));
}

nlohmann::ordered_json to_json(const Trace& trace, const HoldersAnswer& answer, std::size_t top,
                               std::int64_t begin_ns) {
  nlohmann::ordered_json json = to_json(trace, answer.held, top, begin_ns);
  if (answer.segments)
    json["fragmentation"] =
        to_json(trace, *answer.segments, fragmentation_of(*answer.segments), std::max(top, kKeptSegments));
  return json;
}

std::string to_text(const Trace& trace, const HoldersAnswer& answer, std::size_t top, std::int64_t begin_ns) {
  std::string text = to_text(trace, answer.held, top, begin_ns);
  if (!answer.segments) return text;
  for (const std::string& line : in_words(trace, *answer.segments, fragmentation_of(*answer.segments), kKeptSegments))
    text += line + "\n";
  return text;
}

}  // namespace shard::commands
