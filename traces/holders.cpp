// Walks one memory's events up to the moment, with the blocks that are in use; then sums these by who asked for them.
#include "traces/holders.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "traces/base/in_words.h"
#include "traces/base/numbers.h"
#include "traces/base/text_table.h"
#include "traces/base/wrapping.h"
#include "traces/sites.h"
#include "traces/snapshot.h"

namespace shard {
namespace {

using Json = nlohmann::ordered_json;

/// The event after which most was live, of one rank.
struct Peak {
  std::size_t event = 0;
  std::int64_t bytes = 0;
};

Result<Peak> peak_of(const Trace& trace, const HeldQuery& query) {
  std::map<Rank, std::int64_t> live;
  std::map<Rank, Peak> peaks;
  for (std::size_t i = 0; i < trace.memory.size(); ++i) {
    if (trace.memory.memory[i] != query.memory || (query.rank && trace.memory.rank[i] != *query.rank)) continue;
    std::int64_t& now = live[trace.memory.rank[i]];
    now = wrapping_sum(now, trace.memory.delta_bytes[i]);
    const auto [peak, first] = peaks.try_emplace(trace.memory.rank[i], Peak{i, now});
    if (now > peak->second.bytes) peak->second = {i, now};
  }
  // Of equals the first.
  const auto highest = std::ranges::max_element(peaks, {}, [](const auto& rank) { return rank.second.bytes; });
  if (highest != peaks.end()) return highest->second;
  return Error{.code = Errc::contradiction,
               .what = std::string("the trace has no events of ") + to_string(query.memory) + " memory" +
                       (query.rank ? " of rank " + std::to_string(query.rank->value) : ""),
               .where = "who held memory",
               .help = "a trace with memory events: a PyTorch memory snapshot, or one of simulate, train, dryrun"};
}

/// Acquired and not released, by buffer: the events that acquired them.
std::vector<std::size_t> live_events(const Trace& trace, const HeldQuery& query, Rank rank, std::size_t last) {
  std::unordered_map<std::int32_t, std::size_t> live;
  for (std::size_t i = 0; i < trace.memory.size() && (query.time_ns || i <= last); ++i) {
    if (trace.memory.memory[i] != query.memory || trace.memory.rank[i] != rank) continue;
    if (query.time_ns && trace.memory.time_ns[i] > *query.time_ns) continue;
    if (trace.memory.delta_bytes[i] > 0) {
      live[trace.memory.buffer[i].value] = i;
    } else if (trace.memory.delta_bytes[i] < 0) {
      live.erase(trace.memory.buffer[i].value);
    }
  }
  std::vector<std::size_t> events;
  events.reserve(live.size());
  for (const auto& [buffer, event] : live) events.push_back(event);
  std::ranges::sort(events);
  return events;
}

/// Importers put what was there already before the first event, at its time.
ThereAtBegin there_at_begin(const Trace& trace, const std::vector<std::size_t>& live, const Held& held) {
  const MemoryTable& memory = trace.memory;
  ThereAtBegin there;
  if (trace.stacks.empty()) return there;
  std::optional<std::int64_t> begin_ns;
  std::size_t end = 0;
  for (; end < memory.size(); ++end) {
    if (memory.memory[end] != held.memory || memory.rank[end] != held.rank) continue;
    if (!begin_ns) begin_ns = memory.time_ns[end];
    if (memory.time_ns[end] != *begin_ns || memory.delta_bytes[end] < 0) break;
  }
  for (const std::size_t i : live) {
    if (i >= end || memory.stack[i].valid()) continue;
    there.bytes = wrapping_sum(there.bytes, memory.delta_bytes[i]);
    ++there.blocks;
    ++there.blocks_by_size[memory.delta_bytes[i]];
  }
  return there;
}

/// Of a recording of another program, unless its stacks say categories.
bool are_inferred(const Trace& trace, const Held& held) {
  const auto unknown = held.category_bytes[static_cast<std::size_t>(Category::not_known)];
  return !trace.stacks.empty() && unknown != held.allocated_bytes &&
         std::ranges::none_of(trace.frames,
                              [&](const StackFrame& frame) { return trace.name_of(frame.file) == kCategoryFile; });
}

std::vector<Holder> put_together(const Trace& trace, const std::vector<std::size_t>& events, HeldBy by) {
  const std::vector<FrameId> site = sites(trace);
  std::map<std::int32_t, Holder> holders;                            // by stack or site
  std::map<std::int32_t, std::map<StackId, std::int64_t>> of_stack;  // of a site: bytes
  for (const std::size_t i : events) {
    const StackId stack = trace.memory.stack[i];
    const FrameId at = stack.valid() ? site[static_cast<std::size_t>(stack.value)] : FrameId{};
    const std::int32_t key = by == HeldBy::stack ? stack.value : at.value;
    Holder& holder = holders[key];
    const std::int64_t bytes = trace.memory.delta_bytes[i], requested = trace.memory.requested_bytes[i];
    holder.bytes = wrapping_sum(holder.bytes, bytes);
    holder.requested_bytes = wrapping_sum(holder.requested_bytes, requested > 0 ? requested : bytes);
    ++holder.blocks;
    holder.site = at;
    std::int64_t& sum = of_stack[key][stack];
    sum = wrapping_sum(sum, bytes);
  }
  std::vector<Holder> result;
  result.reserve(holders.size());
  for (auto& [key, holder] : holders) {
    holder.stack = std::ranges::max_element(of_stack[key], {}, [](const auto& each) { return each.second; })->first;
    result.push_back(holder);
  }
  std::ranges::stable_sort(result, std::ranges::greater{}, &Holder::bytes);
  return result;
}

void describe(const Trace& trace, FrameId frame, Json& json) {
  const StackFrame none;
  const StackFrame& of = frame.valid() ? trace.frame_of(frame) : none;
  json["file"] = trace.name_of(of.file);
  json["line"] = of.written_line();
  json["function"] = trace.name_of(of.function);
}

Holder rest_of(const Held& held, std::size_t top) {
  Holder rest;
  for (std::size_t i = top; i < held.holders.size(); ++i) {
    rest.bytes = wrapping_sum(rest.bytes, held.holders[i].bytes);
    rest.requested_bytes = wrapping_sum(rest.requested_bytes, held.holders[i].requested_bytes);
    rest.blocks += held.holders[i].blocks;
  }
  return rest;
}

/// "activation 434.70 MiB, gradient 87.00 MiB, not known 1.00 MiB", the largest first.
std::string categories_text(const Held& held) {
  std::vector<std::pair<std::int64_t, std::string>> parts;
  for (int i = 0; i < kCategoryCount; ++i) {
    const std::string name = in_words(to_string(static_cast<Category>(i)));
    if (const std::int64_t bytes = held.category_bytes[static_cast<std::size_t>(i)]; bytes != 0)
      parts.emplace_back(bytes, name + " " + show_bytes(Bytes{bytes}));
  }
  std::ranges::stable_sort(parts, std::ranges::greater{}, &std::pair<std::int64_t, std::string>::first);
  std::string text;
  for (const auto& [bytes, part] : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

/// "96 of 100.00 MiB, 128 of 26.00 MiB and 100 others", by what they take together.
std::string sizes_text(const ThereAtBegin& there) {
  constexpr std::size_t kSizes = 4;
  std::vector<std::pair<std::int64_t, std::int64_t>> sizes(there.blocks_by_size.begin(), there.blocks_by_size.end());
  std::ranges::stable_sort(sizes, std::ranges::greater{},
                           [](const auto& size) { return wrapping_product(size.first, size.second); });
  std::string text;
  std::int64_t rest = there.blocks;
  for (std::size_t i = 0; i < std::min(kSizes, sizes.size()); ++i) {
    text += (i == 0 ? "" : ", ") + with_commas(sizes[i].second) + " of " + show_bytes(Bytes{sizes[i].first});
    rest -= sizes[i].second;
  }
  return text + (rest > 0 ? " and " + with_commas(rest) + " others" : "");
}

/// Of the `shown` largest.
std::vector<std::vector<std::string>> stacks_of(const Trace& trace, const Held& held, std::size_t shown) {
  std::vector<std::vector<std::string>> stacks;
  for (std::size_t i = 0; i < shown; ++i) stacks.push_back(stack_text(trace, held.holders[i].stack, kMostFrames));
  return stacks;
}

double seconds_of(const Held& held, std::int64_t begin_ns) {
  return static_cast<double>(wrapping_sum(held.time_ns, wrapping_product(-1, begin_ns))) * 1e-9;
}

}  // namespace

Result<Held> held_at(const Trace& trace, const HeldQuery& query) {
  const Result<Peak> peak = peak_of(trace, query);
  if (!peak) return peak.error();
  Held held{.rank = trace.memory.rank[peak->event],
            .memory = query.memory,
            .by = query.by,
            .time_ns = trace.memory.time_ns[peak->event]};
  if (query.time_ns) held.time_ns = *query.time_ns;
  const std::vector<std::size_t> events = live_events(trace, query, held.rank, peak->event);
  for (const std::size_t i : events) {
    const std::int64_t bytes = trace.memory.delta_bytes[i], requested = trace.memory.requested_bytes[i];
    held.allocated_bytes = wrapping_sum(held.allocated_bytes, bytes);
    held.requested_bytes = wrapping_sum(held.requested_bytes, requested > 0 ? requested : bytes);
    ++held.blocks;
    std::int64_t& of_category = held.category_bytes[static_cast<std::size_t>(trace.memory.category[i])];
    of_category = wrapping_sum(of_category, bytes);
  }
  held.holders = put_together(trace, events, query.by);
  held.there_at_begin = there_at_begin(trace, events, held);
  held.categories_inferred = are_inferred(trace, held);
  return held;
}

Json to_json(const Trace& trace, const Held& held, std::size_t top, std::int64_t begin_ns) {
  Json json{{"rank", held.rank.value},
            {"memory", to_string(held.memory)},
            {"time_seconds", seconds_of(held, begin_ns)},
            {"allocated_bytes", held.allocated_bytes},
            {"requested_bytes", held.requested_bytes},
            {"blocks", held.blocks},
            {"categories", Json::object()},
            {"holders", Json::array()}};
  for (int i = 0; i < kCategoryCount; ++i)
    if (const std::int64_t bytes = held.category_bytes[static_cast<std::size_t>(i)]; bytes != 0)
      json["categories"][to_string(static_cast<Category>(i))] = bytes;
  json["categories_inferred"] = held.categories_inferred;
  json["there_at_begin"] = {
      {"bytes", held.there_at_begin.bytes}, {"blocks", held.there_at_begin.blocks}, {"sizes", Json::array()}};
  const std::map<std::int64_t, std::int64_t>& sizes = held.there_at_begin.blocks_by_size;
  for (auto size = sizes.rbegin(); size != sizes.rend(); ++size)
    json["there_at_begin"]["sizes"].push_back({{"bytes", size->first}, {"blocks", size->second}});
  const std::size_t shown = std::min(top, held.holders.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const Holder& holder = held.holders[i];
    Json each{{"bytes", holder.bytes},
              {"requested_bytes", holder.requested_bytes},
              {"blocks", holder.blocks},
              {"share", static_cast<double>(holder.bytes) /
                            static_cast<double>(std::max<std::int64_t>(1, held.allocated_bytes))}};
    describe(trace, holder.site, each);
    each["stack"] = Json::array();
    std::size_t frames = 0;
    for (StackId stack = holder.stack; stack.valid() && frames < kMostFrames;
         stack = trace.stack_of(stack).caller, ++frames)
      describe(trace, trace.stack_of(stack).frame, each["stack"].emplace_back(Json::object()));
    json["holders"].push_back(std::move(each));
  }
  const Holder rest = rest_of(held, shown);
  json["rest"] = {{"holders", held.holders.size() - shown},
                  {"bytes", rest.bytes},
                  {"requested_bytes", rest.requested_bytes},
                  {"blocks", rest.blocks}};
  return json;
}

std::string to_text(const Trace& trace, const Held& held, std::size_t top, std::int64_t begin_ns) {
  TextTable table({"held by", "blocks", "takes", "asked for", "share"}, 1);
  const auto row = [&](const std::string& name, const Holder& holder) {
    const double share =
        static_cast<double>(holder.bytes) / static_cast<double>(std::max<std::int64_t>(1, held.allocated_bytes));
    table.add({name, with_commas(holder.blocks), show_bytes(Bytes{holder.bytes}),
               show_bytes(Bytes{holder.requested_bytes}), show_fixed(100 * share, 1) + " %"});
  };
  const std::size_t shown = std::min(top, held.holders.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const std::string name = site_text(trace, held.holders[i].site);
    row(name.empty() ? "(no stack)" : name, held.holders[i]);
  }
  const Holder rest = rest_of(held, shown);
  if (rest.blocks > 0)
    row("(" + with_commas(static_cast<std::int64_t>(held.holders.size() - shown)) + " others)", rest);
  const ThereAtBegin& at_begin = held.there_at_begin;
  const std::string there =
      at_begin.blocks == 0 ? ""
                           : "there when the recording began, without a stack: " + show_bytes(Bytes{at_begin.bytes}) +
                                 ", " + sizes_text(at_begin) + "\n";
  return std::string(to_string(held.memory)) + " memory of rank " + std::to_string(held.rank.value) + " at " +
         duration(Seconds{seconds_of(held, begin_ns)}) + " after the begin: " + with_commas(held.allocated_bytes) +
         " bytes (" + show_bytes(Bytes{held.allocated_bytes}) + ") in " + with_commas(held.blocks) +
         " blocks, of which rounding up took " + show_bytes(Bytes{held.allocated_bytes - held.requested_bytes}) + "\n" +
         "by category" + (held.categories_inferred ? " (inferred from frames, lives and sizes of blocks)" : "") + ": " +
         categories_text(held) + "\n" + there +
         (held.by == HeldBy::stack ? with_stacks(table.str(), stacks_of(trace, held, shown)) : table.str());
}

}  // namespace shard
