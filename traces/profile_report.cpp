// Tables of a profile; what is longer than a screen is cut and says so.
#include "traces/profile_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "traces/base/in_words.h"
#include "traces/base/numbers.h"
#include "traces/base/printable.h"
#include "traces/base/text_table.h"
#include "traces/base/wrapping.h"

namespace shard {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kShownSteps = 12;
constexpr std::size_t kShownRows = 32;
constexpr std::size_t kNameWidth = 60;

double seconds(std::int64_t ns) {
  return static_cast<double>(ns) / 1e9;
}

double share(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

Json place_json(const DevicePlace& place) {
  return {{"rank", place.rank.value}, {"device", place.device.valid() ? Json(place.device.value) : Json()}};
}

Json time_json(const DeviceTime& time) {
  return {{"busy_seconds", seconds(time.busy_ns)},     {"busy_share", share(time.busy_ns, time.window_ns)},
          {"idle_seconds", seconds(time.idle_ns)},     {"kernel_seconds", seconds(time.kernel_ns)},
          {"copy_seconds", seconds(time.copy_ns)},     {"communication_seconds", seconds(time.communication_ns)},
          {"hidden_seconds", seconds(time.hidden_ns)}, {"exposed_seconds", seconds(time.exposed_ns)}};
}

std::int64_t sum_of(const std::vector<NamedTime>& names, std::size_t from, std::int64_t NamedTime::*what) {
  std::int64_t sum = 0;
  for (std::size_t i = from; i < names.size(); ++i)
    sum = std::max(sum, wrapping_sum(sum, names[i].*what));  // of files that say anything at all: no less
  return sum;
}

Json names_json(const std::vector<NamedTime>& names, std::size_t top, bool kernels) {
  const std::int64_t all = sum_of(names, 0, &NamedTime::self_ns);
  Json list = Json::array();
  for (std::size_t i = 0; i < std::min(top, names.size()); ++i) {
    const NamedTime& named = names[i];
    Json row{{"name", named.name},
             {"activity", is_collective(named.activity) && kernels ? "collective" : to_string(named.activity)},
             {"count", named.count},
             {"total_seconds", seconds(named.total_ns)}};
    if (kernels) {
      row["mean_seconds"] = seconds(named.total_ns) / static_cast<double>(named.count);
    } else {
      row["self_seconds"] = seconds(named.self_ns);
    }
    row["share"] = share(named.self_ns, all);
    list.push_back(std::move(row));
  }
  return list;
}

Json rest_json(const std::vector<NamedTime>& names, std::size_t top, bool kernels) {
  const std::size_t from = std::min(top, names.size());
  return {{"names", names.size() - from},
          {"count", sum_of(names, from, &NamedTime::count)},
          {kernels ? "total_seconds" : "self_seconds", seconds(sum_of(names, from, &NamedTime::self_ns))}};
}

std::string time_text(std::int64_t ns) {
  return duration(Seconds{seconds(ns)}, 4);
}

std::string percent(std::int64_t part, std::int64_t whole) {
  return show_number(share(part, whole) * 100, 3) + " %";
}

std::string name_text(const std::string& name) {
  std::string text = printable_line(name);
  if (text.size() > kNameWidth) text = text.substr(0, kNameWidth - 3) + "...";
  return text.empty() ? "(no name)" : text;
}

std::string rank_text(const DevicePlace& place) {
  return std::to_string(place.rank.value);
}

/// Rows of a table as long as a screen.
class ShortTable {
 public:
  ShortTable(std::vector<std::string> header, std::size_t left_columns, std::size_t most = kShownRows)
      : table_(std::move(header), left_columns), most_(most) {}
  void add(std::vector<std::string> row) {
    if (rows_++ < most_) table_.add(std::move(row));
  }
  [[nodiscard]] std::string str() const {
    if (rows_ == 0) return "";
    const std::string rest = rows_ > most_ ? "and " + std::to_string(rows_ - most_) + " more (--json has all)\n" : "";
    return "\n" + table_.str() + rest;
  }

 private:
  TextTable table_;
  std::size_t most_, rows_ = 0;
};

std::string devices_text(const Profile& profile) {
  ShortTable table({"rank", "device", "recorded", "busy", "share", "idle", "between first and last", "computes",
                    "copies", "collectives", "hidden", "exposed"},
                   2);
  for (const DeviceUse& use : profile.devices) {
    const DeviceTime& time = use.time;
    table.add({rank_text(use.place), device_name(use.place), time_text(time.window_ns), time_text(time.busy_ns),
               percent(time.busy_ns, time.window_ns), time_text(time.idle_ns), time_text(use.idle_between_ns),
               time_text(time.kernel_ns), time_text(time.copy_ns), time_text(time.communication_ns),
               time_text(time.hidden_ns), time_text(time.exposed_ns)});
  }
  return table.str();
}

std::string steps_text(const Profile& profile) {
  ShortTable table({"rank", "device", "step", "takes", "busy", "idle", "collectives", "hidden", "exposed"}, 2,
                   kShownSteps);
  for (const DeviceStep& step : profile.steps) {
    table.add({rank_text(step.place), device_name(step.place), std::to_string(step.step),
               time_text(step.time.window_ns), time_text(step.time.busy_ns), time_text(step.time.idle_ns),
               time_text(step.time.communication_ns), time_text(step.time.hidden_ns), time_text(step.time.exposed_ns)});
  }
  return table.str();
}

std::string bytes_text(std::int64_t bytes, std::int64_t without, std::int64_t count) {
  if (without == count) return "not said";
  return show_bytes(Bytes{bytes}) + (without > 0 ? " (" + std::to_string(without) + " do not say)" : "");
}

/// A producer's total and what was seen of it.
const CollectiveTotal* total_of(const std::vector<CollectiveTotal>& totals, const CollectiveUse& use) {
  const auto at = std::ranges::find_if(totals, [&](const CollectiveTotal& total) {
    return total.rank == use.place.rank && activity_of(total.kind) == use.kind;
  });
  return at == totals.end() ? nullptr : &*at;
}

bool seen(const CollectiveTotal& total, const Profile& profile) {
  return std::ranges::any_of(profile.collectives, [&](const CollectiveUse& use) {
    return use.place.rank == total.rank && use.kind == activity_of(total.kind);
  });
}

std::string collectives_text(const std::vector<CollectiveTotal>& totals, const Profile& profile) {
  ShortTable table({"rank", "device", "collective", "calls", "bytes", "time", "hidden", "exposed"}, 3);
  for (const CollectiveUse& use : profile.collectives) {
    const CollectiveTotal* total = total_of(totals, use);
    table.add({rank_text(use.place), device_name(use.place, use.on_host), to_string(use.kind),
               std::to_string(total == nullptr ? use.count : total->count),
               total == nullptr ? bytes_text(use.bytes, use.without_bytes, use.count) : show_bytes(Bytes{total->bytes}),
               time_text(use.total_ns), use.on_host ? "" : time_text(use.hidden_ns),
               use.on_host ? "" : time_text(use.exposed_ns)});
  }
  for (const CollectiveTotal& total : totals) {
    if (seen(total, profile)) continue;
    table.add({std::to_string(total.rank.value), "", to_string(total.kind), std::to_string(total.count),
               show_bytes(Bytes{total.bytes}), "", "", ""});
  }
  return table.str();
}

std::string copies_text(const Profile& profile) {
  ShortTable table({"rank", "device", "copy", "count", "bytes", "time"}, 3);
  for (const CopyUse& use : profile.copies) {
    table.add({rank_text(use.place), device_name(use.place), in_words(to_string(use.direction)),
               std::to_string(use.count), show_bytes(Bytes{use.bytes}), time_text(use.total_ns)});
  }
  return table.str();
}

std::string rest_text(const std::vector<NamedTime>& names, std::size_t top) {
  if (names.size() <= top) return "";
  return "and " + std::to_string(names.size() - top) + " more names, " +
         time_text(sum_of(names, top, &NamedTime::self_ns)) + "\n";
}

std::string names_text(const std::vector<NamedTime>& names, std::size_t top, bool kernels) {
  if (names.empty() || top == 0) return "";
  const std::int64_t all = sum_of(names, 0, &NamedTime::self_ns);
  TextTable table(
      {kernels ? "kernel" : "on the host", kernels ? "" : "is", "count", "time", kernels ? "mean" : "its own", "share"},
      2);
  for (std::size_t i = 0; i < std::min(top, names.size()); ++i) {
    const NamedTime& named = names[i];
    table.add({name_text(named.name), kernels ? "" : to_string(named.activity), std::to_string(named.count),
               time_text(named.total_ns), time_text(kernels ? named.total_ns / named.count : named.self_ns),
               percent(named.self_ns, all)});
  }
  return "\n" + table.str() + rest_text(names, top);
}

}  // namespace

std::string device_name(const DevicePlace& place, bool on_host) {
  if (on_host) return "host";
  return place.device.valid() ? "GPU " + std::to_string(place.device.value) : "";
}

Json to_json(const Profile& profile, std::size_t top) {
  Json json{{"devices", Json::array()}, {"copies", Json::array()}};
  for (const DeviceUse& use : profile.devices) {
    Json row = place_json(use.place);
    row["stream_count"] = use.streams;
    row["window_seconds"] = seconds(use.time.window_ns);
    row.update(time_json(use.time));
    row["idle_between_seconds"] = seconds(use.idle_between_ns);
    json["devices"].push_back(std::move(row));
  }
  for (const CopyUse& use : profile.copies) {
    Json row = place_json(use.place);
    row.update({{"direction", to_string(use.direction)},
                {"count", use.count},
                {"bytes", use.bytes},
                {"seconds", seconds(use.total_ns)}});
    json["copies"].push_back(std::move(row));
  }
  json["kernels"] = names_json(profile.kernels, top, true);
  json["kernels_rest"] = rest_json(profile.kernels, top, true);
  json["operations"] = names_json(profile.operations, top, false);
  json["operations_rest"] = rest_json(profile.operations, top, false);
  return json;
}

Json collectives_json(const std::vector<CollectiveTotal>& totals, const Profile& profile) {
  Json list = Json::array();
  for (const CollectiveTotal& total : totals) {
    if (seen(total, profile)) continue;
    list.push_back(
        {{"rank", total.rank.value}, {"kind", to_string(total.kind)}, {"count", total.count}, {"bytes", total.bytes}});
  }
  for (const CollectiveUse& use : profile.collectives) {
    const CollectiveTotal* total = total_of(totals, use);
    const auto where = [&](std::int64_t ns) { return use.on_host ? Json() : Json(seconds(ns)); };
    Json row{{"rank", use.place.rank.value},
             {"kind", to_string(use.kind)},
             {"count", total == nullptr ? use.count : total->count},
             {"bytes", total == nullptr ? use.bytes : total->bytes}};
    row["device"] = place_json(use.place)["device"];
    row["on_host"] = use.on_host;
    row["calls_without_bytes"] = total == nullptr ? use.without_bytes : 0;
    row["seconds"] = seconds(use.total_ns);
    row["hidden_seconds"] = where(use.hidden_ns);
    row["exposed_seconds"] = where(use.exposed_ns);
    list.push_back(std::move(row));
  }
  return list;
}

Json step_json(const Profile& profile, std::int32_t step) {
  Json list = Json::array();
  const auto first = std::ranges::lower_bound(profile.steps, step, {}, &DeviceStep::step);
  for (auto at = first; at != profile.steps.end() && at->step == step; ++at) {
    Json row = place_json(at->place);
    row["seconds"] = seconds(at->time.window_ns);
    row.update(time_json(at->time));
    list.push_back(std::move(row));
  }
  return list;
}

std::string to_text(const Profile& profile, const std::vector<CollectiveTotal>& totals, std::size_t top) {
  return devices_text(profile) + steps_text(profile) + collectives_text(totals, profile) + copies_text(profile) +
         names_text(profile.kernels, top, true) + names_text(profile.operations, top, false);
}

}  // namespace shard
