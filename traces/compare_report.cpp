// A comparison as JSON and as text.
#include <nlohmann/json.hpp>

#include "traces/base/numbers.h"
#include "traces/base/text_table.h"
#include "traces/compare.h"

namespace shard {
namespace {

using Json = nlohmann::ordered_json;

template <class T>
void put(Json& row, const Comparison& comparison, const std::string& key, const Pair<T>& pair) {
  row[comparison.label.first + "_" + key] = pair.first;
  row[comparison.label.second + "_" + key] = pair.second;
}

Json ratio(const Pair<double>& pair) {
  return pair.first == 0 ? Json(nullptr) : Json(pair.second / pair.first);
}

Json group_json(const Comparison& comparison, const GroupComparison& group, const char* key) {
  Json row;
  if (group.rank.valid()) {
    row[key] = group.rank.value;
  } else {
    row[key] = group.key;
  }
  row["phase"] = to_string(group.phase);
  row["op_count"] = group.op_count;
  put(row, comparison, "seconds", group.seconds);
  row["seconds_ratio"] = ratio(group.seconds);
  put(row, comparison, "waiting_seconds", group.waiting_seconds);
  put(row, comparison, "bytes", group.bytes);
  return row;
}

Json by_op_json(const LargestMemoryDifference& by_op) {
  if (!by_op.compared) return nullptr;
  Json json{{"largest_difference_bytes", by_op.bytes}};
  const auto place = [](const MemoryPlace& place) {
    return Json{{"op", place.op}, {"phase", to_string(place.phase)}, {"step", place.step}};
  };
  if (by_op.bytes == 0) return json;
  json["rank"] = by_op.rank.value;
  json["memory"] = to_string(by_op.memory);
  json["at"] = place(by_op.at);
  json["begin"] = place(by_op.begin);
  json["begin"]["difference_bytes"] = by_op.begin_bytes;
  return json;
}

std::string waiting_text(double seconds) {
  return seconds > 0 ? duration(Seconds{seconds}, 4) : "-";
}

std::string signed_bytes(const Pair<std::int64_t>& pair) {
  if (pair.equal()) return "equal";
  // Modulo 2^64: sizes of a hostile file may be anything.
  const auto difference =
      static_cast<std::int64_t>(static_cast<std::uint64_t>(pair.second) - static_cast<std::uint64_t>(pair.first));
  return (difference > 0 ? "+" : "") + show_bytes(Bytes{difference});
}

/// What is said of memory beside whether it is equal.
std::string by_op_text(const LargestMemoryDifference& by_op) {
  if (!by_op.compared) return "";
  if (by_op.bytes == 0) return " at every op";
  return ": by " + show_bytes(Bytes{by_op.bytes}) + " at '" + by_op.at.op + "' (" + to_string(by_op.memory) +
         " of rank " + std::to_string(by_op.rank.value) + ", step " + std::to_string(by_op.at.step) + "), first at '" +
         by_op.begin.op + "'";
}

/// Whether they are equal, in what, and where not.
std::string verdict_text(const Comparison& comparison) {
  const auto verdict = [](bool is_compared, bool equal, const char* what) {
    return is_compared ? std::string(equal ? "equal" : "DIFFERS")
                       : std::string("not compared: neither trace has ") + what;
  };
  const std::string &first = comparison.label.first, &second = comparison.label.second;
  std::string text;
  if (!comparison.same_plan) text += "Traces of different plans, lined up by force.\n";
  if (!comparison.complete.first) text += "The first trace (" + first + ") is incomplete.\n";
  if (!comparison.complete.second) text += "The second trace (" + second + ") is incomplete.\n";
  text += "memory         " +
          verdict(comparison.memory_compared(), comparison.memory_equal(), "peaks of a phase of both") +
          by_op_text(comparison.memory_by_op) + "\n";
  text += "communication  " +
          verdict(comparison.communication_compared(), comparison.communication_equal(), "totals of collectives") +
          "\n";
  text += "step           " + first + " " + duration(Seconds{comparison.step_seconds.first}, 4) + ", " + second + " " +
          duration(Seconds{comparison.step_seconds.second}, 4) + ", " +
          show_ratio(comparison.step_seconds.first, comparison.step_seconds.second) + "\n";
  if (!comparison.steps.equal())
    text += "steps          " + first + " " + std::to_string(comparison.steps.first) + ", " + second + " " +
            std::to_string(comparison.steps.second) + ": compared step by step\n";
  return text;
}

}  // namespace

Json to_json(const Comparison& comparison) {
  Json json{{"schema_version", 1},
            {"equal", comparison.equal()},
            {"memory_equal", comparison.memory_equal()},
            {"communication_equal", comparison.communication_equal()},
            {"memory_compared", comparison.memory_compared()},
            {"communication_compared", comparison.communication_compared()},
            {"same_plan", comparison.same_plan}};
  put(json, comparison, "plan_hash", comparison.plan_hash);
  put(json, comparison, "complete", comparison.complete);
  json["world_size"] = comparison.world_size;
  json["steps"] =
      Json{{comparison.label.first, comparison.steps.first}, {comparison.label.second, comparison.steps.second}};
  json["memory_by_op"] = by_op_json(comparison.memory_by_op);
  put(json, comparison, "step_seconds", comparison.step_seconds);
  json["step_seconds_ratio"] = ratio(comparison.step_seconds);
  for (const char* key : {"strategy", "memory", "categories", "collectives", "streams", "ranks", "names", "ops"}) {
    json[key] = Json::array();
  }
  for (const FieldComparison& field : comparison.strategy) {
    Json row{{"field", field.name}};
    put(row, comparison, "value", field.value);
    json["strategy"].push_back(std::move(row));
  }
  for (const MemoryComparison& memory : comparison.memory) {
    Json row{{"rank", memory.rank.value}, {"memory", to_string(memory.memory)}, {"phase", to_string(memory.phase)}};
    put(row, comparison, "peak_bytes", memory.peak_bytes);
    put(row, comparison, "live_peak_bytes", memory.live_peak_bytes);
    row["compared"] = memory.compared;
    row["equal"] = memory.equal();
    json["memory"].push_back(std::move(row));
  }
  for (const CategoryComparison& category : comparison.categories) {
    Json row{{"rank", category.rank.value},
             {"memory", to_string(category.memory)},
             {"category", to_string(category.category)}};
    put(row, comparison, "peak_bytes", category.peak_bytes);
    row["equal"] = category.peak_bytes.equal();
    json["categories"].push_back(std::move(row));
  }
  for (const CollectiveComparison& collective : comparison.collectives) {
    Json row{{"rank", collective.rank.value}, {"kind", to_string(collective.kind)}};
    row["phase"] = collective.phase ? Json(to_string(*collective.phase)) : Json(nullptr);
    put(row, comparison, "count", collective.count);
    put(row, comparison, "bytes", collective.bytes);
    row["equal"] = collective.equal();
    json["collectives"].push_back(std::move(row));
  }
  for (const auto& group : comparison.streams) json["streams"].push_back(group_json(comparison, group, "stream"));
  for (const auto& group : comparison.ranks) json["ranks"].push_back(group_json(comparison, group, "rank"));
  for (const auto& group : comparison.names) json["names"].push_back(group_json(comparison, group, "name"));
  for (const OpComparison& op : comparison.ops) {
    Json row{{"rank", op.rank.value},        {"op", op.op.value},           {"name", op.name},
             {"phase", to_string(op.phase)}, {"micro_step", op.micro_step}, {"stream", to_string(op.stream)}};
    put(row, comparison, "step_count", op.steps);
    put(row, comparison, "seconds", op.seconds);
    row["seconds_ratio"] = ratio(op.seconds);
    put(row, comparison, "waiting_seconds", op.waiting_seconds);
    put(row, comparison, "bytes", op.bytes);
    row["bytes_equal"] = op.bytes_equal();
    json["ops"].push_back(std::move(row));
  }
  json["joined_op_count"] = comparison.joined_op_count;
  put(json, comparison, "unmatched_op_count", comparison.unmatched_op_count);
  json["unequal_op_bytes_count"] = comparison.unequal_op_bytes_count;
  return json;
}

std::string to_text(const Comparison& comparison, std::size_t most_ops) {
  const std::string &first = comparison.label.first, &second = comparison.label.second;
  std::string text = verdict_text(comparison);

  TextTable strategy({"strategy", first, second}, 3);
  for (const FieldComparison& field : comparison.strategy)
    strategy.add({field.name, field.value.first, field.value.second});
  if (!strategy.empty()) text += "\n" + strategy.str();

  TextTable memory({"rank", "memory", "phase", first + " peak", second + " peak", "difference", "live peak"}, 3);
  for (const MemoryComparison& row : comparison.memory) {
    memory.add({std::to_string(row.rank.value), to_string(row.memory), to_string(row.phase),
                show_bytes(Bytes{row.peak_bytes.first}), show_bytes(Bytes{row.peak_bytes.second}),
                row.compared ? signed_bytes(row.peak_bytes) : "not run",
                row.compared ? signed_bytes(row.live_peak_bytes) : "not run"});
  }
  if (!memory.empty()) text += "\n" + memory.str();

  TextTable collectives(
      {"rank", "collective", first + " calls", second + " calls", first + " bytes", second + " bytes", "difference"},
      2);
  for (const CollectiveComparison& row : comparison.collectives) {
    const std::string when = row.phase ? std::string(" in a ") + to_string(*row.phase) : "";
    collectives.add({std::to_string(row.rank.value), to_string(row.kind) + when, std::to_string(row.count.first),
                     std::to_string(row.count.second), show_bytes(Bytes{row.bytes.first}),
                     show_bytes(Bytes{row.bytes.second}), row.equal() ? "equal" : "DIFFERS"});
  }
  if (!collectives.empty()) text += "\n" + collectives.str();

  Pair<bool> waits;
  for (const GroupComparison& group : comparison.streams) {
    waits.first = waits.first || group.waiting_seconds.first > 0;
    waits.second = waits.second || group.waiting_seconds.second > 0;
  }
  const auto times = [&](const std::vector<GroupComparison>& groups, const char* title, std::size_t most) {
    std::vector<std::string> heading{title, "phase", first, second, "ratio"};
    if (waits.first) heading.push_back(first + " waiting");
    if (waits.second) heading.push_back(second + " waiting");
    TextTable table(std::move(heading), 2);
    for (const GroupComparison& group : groups) {
      if (most-- == 0) break;
      std::vector<std::string> row{group.rank.valid() ? std::to_string(group.rank.value) : group.key,
                                   to_string(group.phase), duration(Seconds{group.seconds.first}, 4),
                                   duration(Seconds{group.seconds.second}, 4),
                                   show_ratio(group.seconds.first, group.seconds.second)};
      if (waits.first) row.push_back(waiting_text(group.waiting_seconds.first));
      if (waits.second) row.push_back(waiting_text(group.waiting_seconds.second));
      table.add(std::move(row));
    }
    if (!table.empty()) text += "\n" + table.str();
  };
  constexpr std::size_t kMostRows = 15;
  times(comparison.streams, "stream", kMostRows);
  times(comparison.ranks, "rank", kMostRows);
  times(comparison.names, "op", most_ops);
  text += "\n" + std::to_string(comparison.joined_op_count) + " ops joined, " +
          std::to_string(comparison.unmatched_op_count.first) + " only " + first + ", " +
          std::to_string(comparison.unmatched_op_count.second) + " only " + second + ", " +
          std::to_string(comparison.unequal_op_bytes_count) + " with other bytes\n";
  return text;
}

}  // namespace shard
