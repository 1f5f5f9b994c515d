// Joins holders by their names, then those of a moved line by file and function.
#include "traces/compare_holders.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "traces/base/numbers.h"
#include "traces/base/text_table.h"
#include "traces/base/wrapping.h"
#include "traces/sites.h"

namespace shard {
namespace {

struct Named {
  std::string name, place;  ///< place: the name without its line
  std::vector<std::string> stack{};
  std::int64_t bytes = 0, blocks = 0;
};

/// "train.py forward" of "train.py:21 forward".
std::string without_line(const Trace& trace, FrameId site) {
  if (!site.valid()) return "";
  const StackFrame& frame = trace.frame_of(site);
  return std::string(trace.name_of(frame.file)) + " " + std::string(trace.name_of(frame.function));
}

std::vector<Named> named(const Trace& trace, const Held& held) {
  std::vector<Named> all;
  all.reserve(held.holders.size());
  for (const Holder& holder : held.holders) {
    Named each{.name = site_text(trace, holder.site),
               .place = without_line(trace, holder.site),
               .bytes = holder.bytes,
               .blocks = holder.blocks};
    if (each.name.empty()) each.name = "(no stack)";
    if (held.by == HeldBy::stack) each.stack = stack_text(trace, holder.stack, kMostFrames);
    all.push_back(std::move(each));
  }
  return all;
}

/// Stacks that differ in other than Python's frames, and equal lines of files of one name, have one name: their sum.
std::map<std::vector<std::string>, Named> by_name(std::vector<Named> all) {
  std::map<std::vector<std::string>, Named> names;
  for (Named& each : all) {
    std::vector<std::string> key = each.stack;
    key.insert(key.begin(), each.name);
    const auto [at, first] = names.try_emplace(std::move(key), std::move(each));
    if (first) continue;
    at->second.bytes = wrapping_sum(at->second.bytes, each.bytes);
    at->second.blocks += each.blocks;
  }
  return names;
}

HolderPair pair_of(const Named* a, const Named* b) {
  HolderPair pair{.stack = a != nullptr ? a->stack : b->stack};
  if (a != nullptr) pair.name.first = a->name, pair.bytes.first = a->bytes, pair.blocks.first = a->blocks;
  if (b != nullptr) pair.name.second = b->name, pair.bytes.second = b->bytes, pair.blocks.second = b->blocks;
  return pair;
}

/// Of those that only one of the two has, joins the lines of one function where each side has one.
void join_moved(const std::vector<const Named*>& only_a, const std::vector<const Named*>& only_b, bool by_site,
                std::vector<HolderPair>& pairs) {
  std::map<std::string, std::pair<std::vector<const Named*>, std::vector<const Named*>>> places;
  for (const Named* each : only_a) places[each->place].first.push_back(each);
  for (const Named* each : only_b) places[each->place].second.push_back(each);
  for (const auto& [place, of] : places) {
    if (by_site && !place.empty() && of.first.size() == 1 && of.second.size() == 1) {
      pairs.push_back(pair_of(of.first.front(), of.second.front()));
      continue;
    }
    for (const Named* each : of.first) pairs.push_back(pair_of(each, nullptr));
    for (const Named* each : of.second) pairs.push_back(pair_of(nullptr, each));
  }
}

std::int64_t grown(const HolderPair& pair) {
  return wrapping_sum(pair.bytes.second, wrapping_product(-1, pair.bytes.first));
}

std::string signed_bytes(std::int64_t bytes) {
  return (bytes < 0 ? "-" : bytes > 0 ? "+" : "") + show_bytes(Bytes{bytes < 0 ? wrapping_product(-1, bytes) : bytes});
}

std::string shown_name(const HolderPair& pair) {
  const auto& [a, b] = pair.name;
  if (a.empty()) return b;
  if (b.empty() || a == b) return a;
  return a + " (b: " + b.substr(0, b.find(' ')) + ")";
}

}  // namespace

HolderComparison compare_holders(const Trace& a, const Held& in_a, const Trace& b, const Held& in_b) {
  HolderComparison result{.by = in_a.by};
  const auto of_a = by_name(named(a, in_a)), of_b = by_name(named(b, in_b));
  std::vector<const Named*> only_a, only_b;
  for (const auto& [key, each] : of_a) {
    const auto same = of_b.find(key);
    if (same != of_b.end()) {
      result.holders.push_back(pair_of(&each, &same->second));
    } else {
      only_a.push_back(&each);
    }
  }
  for (const auto& [key, each] : of_b)
    if (!of_a.contains(key)) only_b.push_back(&each);
  join_moved(only_a, only_b, in_a.by == HeldBy::site, result.holders);
  std::ranges::stable_sort(result.holders, [](const HolderPair& one, const HolderPair& other) {
    const double first = std::abs(static_cast<double>(grown(one)));
    const double second = std::abs(static_cast<double>(grown(other)));
    return first != second ? first > second : one.bytes.first > other.bytes.first;
  });
  return result;
}

nlohmann::ordered_json to_json(const HolderComparison& comparison) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  const auto name = [](const std::string& text) {
    return text.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(text);
  };
  for (const HolderPair& pair : comparison.holders) {
    all.push_back({{"a_site", name(pair.name.first)},
                   {"b_site", name(pair.name.second)},
                   {"a_bytes", pair.bytes.first},
                   {"b_bytes", pair.bytes.second},
                   {"a_blocks", pair.blocks.first},
                   {"b_blocks", pair.blocks.second}});
    if (comparison.by == HeldBy::stack) all.back()["stack"] = pair.stack;
  }
  return all;
}

std::string to_text(const HolderComparison& comparison, std::size_t top) {
  if (comparison.holders.empty()) return "";
  TextTable table({"held by", "a", "b", "b - a"}, 1);
  const auto row = [&](const std::string& name, std::int64_t a, std::int64_t b) {
    table.add(
        {name, show_bytes(Bytes{a}), show_bytes(Bytes{b}), signed_bytes(wrapping_sum(b, wrapping_product(-1, a)))});
  };
  const std::size_t shown = std::min(top, comparison.holders.size());
  std::int64_t rest_a = 0, rest_b = 0;
  for (std::size_t i = 0; i < comparison.holders.size(); ++i) {
    const HolderPair& pair = comparison.holders[i];
    if (i < shown) {
      row(shown_name(pair), pair.bytes.first, pair.bytes.second);
    } else {
      rest_a = wrapping_sum(rest_a, pair.bytes.first);
      rest_b = wrapping_sum(rest_b, pair.bytes.second);
    }
  }
  if (shown < comparison.holders.size())
    row("(" + with_commas(static_cast<std::int64_t>(comparison.holders.size() - shown)) + " others)", rest_a, rest_b);
  if (comparison.by == HeldBy::site) return table.str();
  std::vector<std::vector<std::string>> stacks;
  for (std::size_t i = 0; i < shown; ++i) stacks.push_back(comparison.holders[i].stack);
  return with_stacks(table.str(), stacks);
}

}  // namespace shard
