// One pass over what the range touches.
#include "viewer/index/statistics.h"

#include <algorithm>
#include <map>

#include "traces/base/numbers.h"
#include "traces/base/printable.h"
#include "traces/sites.h"

namespace shard::view {
namespace {

/// A sum under way; spans of one group.
struct Sum {
  std::int64_t count = 0, total = 0, least = INT64_MAX, most = 0, bytes = 0;

  void add(std::int64_t ns) {
    ++count;
    total += ns;
    least = std::min(least, ns);
    most = std::max(most, ns);
  }
};

std::string number(double value) {
  return shortest(value);
}
std::string number(std::int64_t value) {
  return std::to_string(value);
}

}  // namespace

const char* to_string(GroupBy value) {
  switch (value) {
    case GroupBy::name: return "name";
    case GroupBy::span_class: return "kind";
    case GroupBy::stream: return "stream";
    case GroupBy::rank: return "rank";
  }
  return "?";
}

std::vector<SpanStatistics> span_statistics(const Document& document, TimeRange range, GroupBy by, Rank rank) {
  const Trace& trace = document.trace();
  const SpanTable& table = trace.spans;
  std::vector<Sum> by_name(by == GroupBy::name ? trace.names.size() + 1 : 0);  // the last: no name
  std::map<std::string, std::pair<Rank, Sum>> by_key;
  for (const Row& row : document.rows()) {
    const Track& track = trace.track_of(row.track);
    if (rank.valid() && track.rank != rank) continue;
    std::array<Sum, kSpanClassCount> by_class;
    const auto [first, last] = row.index.touching(table, range);
    for (std::size_t i = first; i < last; ++i) {
      const std::uint32_t span = row.index.spans()[i];
      const std::int64_t begin = table.begin_ns[span], end = begin + table.duration_ns[span];
      const NameId name = table.name[span];
      Sum& sum = by == GroupBy::name
                     ? by_name[name.valid() ? static_cast<std::size_t>(name.value) : trace.names.size()]
                     : by_class[by == GroupBy::span_class ? static_cast<std::size_t>(row.index.class_at(i)) : 0];
      sum.add(std::min(end, range.end_ns) - std::max(begin, range.begin_ns));
      if (begin >= range.begin_ns) sum.bytes += table.bytes[span];
    }
    for (std::size_t c = 0; by != GroupBy::name && c < by_class.size(); ++c) {
      const Sum& sum = by_class[c];
      if (sum.count == 0) continue;
      std::string key = to_string(static_cast<SpanClass>(c));
      if (by == GroupBy::rank) key = "rank " + std::to_string(track.rank.value);
      if (by == GroupBy::stream) {
        key = track.kind == TrackKind::stream ? to_string(track.stream) : track.name.empty() ? "track" : track.name;
      }
      auto& [of_rank, all] = by_key[key];
      of_rank = track.rank;
      all.count += sum.count;
      all.total += sum.total;
      all.least = std::min(all.least, sum.least);
      all.most = std::max(all.most, sum.most);
      all.bytes += sum.bytes;
    }
  }
  std::vector<SpanStatistics> rows;
  const auto add = [&](std::string key, NameId name, Rank of_rank, const Sum& sum) {
    rows.push_back({.key = std::move(key),
                    .name = name,
                    .rank = of_rank,
                    .count = sum.count,
                    .total_ns = sum.total,
                    .least_ns = sum.least,
                    .most_ns = sum.most,
                    .mean_ns = static_cast<double>(sum.total) / static_cast<double>(sum.count),
                    .share = 0,
                    .bytes = sum.bytes});
  };
  for (std::size_t i = 0; i < by_name.size(); ++i) {
    if (by_name[i].count == 0) continue;
    const bool named = i < trace.names.size();
    add(named ? trace.names[i] : "(no name)", named ? NameId{static_cast<std::int32_t>(i)} : NameId{}, {}, by_name[i]);
  }
  for (const auto& [key, entry] : by_key) add(key, {}, by == GroupBy::rank ? entry.first : Rank{}, entry.second);
  double total = 0;
  for (const SpanStatistics& row : rows) total += static_cast<double>(row.total_ns);
  for (SpanStatistics& row : rows) row.share = total > 0 ? static_cast<double>(row.total_ns) / total : 0;
  sort_rows(rows, SpanColumn::total, true);
  return rows;
}

std::vector<MemoryStatistics> memory_statistics(const Document& document, TimeRange range, Rank rank) {
  const MemoryTable& table = document.trace().memory;
  std::vector<MemoryStatistics> rows;
  for (const MemorySeries& series : document.memory()) {
    if (rank.valid() && series.rank() != rank) continue;
    const std::size_t first = series.moment_at(range.begin_ns - 1);
    const std::size_t last = std::max(first, series.moment_at(range.end_ns - 1));
    BytesByCategory live = series.stack_at(table, first);
    std::array<MemoryStatistics, kCategoryCount> sums;
    for (std::size_t c = 0; c < sums.size(); ++c) {
      sums[c].rank = series.rank();
      sums[c].memory = series.memory();
      sums[c].category = static_cast<Category>(c);
      sums[c].peak_bytes = live[c];
    }
    for (std::size_t moment = first + 1; moment <= last; ++moment) {
      const std::uint32_t event = series.event_of(moment);
      const auto c = static_cast<std::size_t>(table.category[event]);
      const std::int64_t delta = table.delta_bytes[event];
      MemoryStatistics& sum = sums[c];
      live[c] += delta;
      sum.peak_bytes = std::max(sum.peak_bytes, live[c]);
      (delta >= 0 ? sum.acquired_count : sum.released_count) += 1;
      (delta >= 0 ? sum.acquired_bytes : sum.released_bytes) += delta >= 0 ? delta : -delta;
    }
    for (std::size_t c = 0; c < sums.size(); ++c) {
      sums[c].end_bytes = live[c];
      if (sums[c].peak_bytes != 0 || sums[c].acquired_count + sums[c].released_count > 0) rows.push_back(sums[c]);
    }
  }
  return rows;
}

void sort_rows(std::vector<SpanStatistics>& rows, SpanColumn by, bool descending) {
  const auto sort = [&](auto value) {
    std::stable_sort(rows.begin(), rows.end(), [&](const SpanStatistics& a, const SpanStatistics& b) {
      return descending ? value(b) < value(a) : value(a) < value(b);
    });
  };
  switch (by) {
    case SpanColumn::key: return sort([](const SpanStatistics& r) -> const std::string& { return r.key; });
    case SpanColumn::count: return sort([](const SpanStatistics& r) { return r.count; });
    case SpanColumn::total: return sort([](const SpanStatistics& r) { return r.total_ns; });
    case SpanColumn::mean: return sort([](const SpanStatistics& r) { return r.mean_ns; });
    case SpanColumn::least: return sort([](const SpanStatistics& r) { return r.least_ns; });
    case SpanColumn::most: return sort([](const SpanStatistics& r) { return r.most_ns; });
    case SpanColumn::share: return sort([](const SpanStatistics& r) { return r.share; });
    case SpanColumn::bytes: return sort([](const SpanStatistics& r) { return r.bytes; });
  }
}

std::string to_csv(const std::vector<SpanStatistics>& rows) {
  std::string csv = "key,count,total_ns,mean_ns,min_ns,max_ns,share,bytes\r\n";
  for (const SpanStatistics& row : rows) {
    csv += csv_field(row.key) + "," + number(row.count) + "," + number(row.total_ns) + "," + number(row.mean_ns) + "," +
           number(row.least_ns) + "," + number(row.most_ns) + "," + number(row.share) + "," + number(row.bytes) +
           "\r\n";
  }
  return csv;
}

std::string to_csv(const std::vector<MemoryStatistics>& rows) {
  std::string csv =
      "rank,memory,category,acquired_count,acquired_bytes,released_count,released_bytes,peak_bytes,end_bytes\r\n";
  for (const MemoryStatistics& row : rows) {
    csv += number(std::int64_t{row.rank.value}) + "," + to_string(row.memory) + "," + to_string(row.category) + "," +
           number(row.acquired_count) + "," + number(row.acquired_bytes) + "," + number(row.released_count) + "," +
           number(row.released_bytes) + "," + number(row.peak_bytes) + "," + number(row.end_bytes) + "\r\n";
  }
  return csv;
}

std::string to_csv(const Document& document, const std::vector<LiveBuffer>& rows) {
  const Trace& trace = document.trace();
  const std::vector<FrameId> site = sites(trace);
  std::string csv = "buffer,unit,unit_name,category,bytes,offset_bytes,since_ns,op,phase,step,requested_bytes,site\r\n";
  for (const LiveBuffer& row : rows) {
    csv += number(std::int64_t{row.buffer.value}) + "," + number(std::int64_t{row.unit.value}) + "," +
           csv_field(document.chunks().name_of(row.unit)) + "," + to_string(row.category) + "," + number(row.bytes) +
           "," + number(row.offset_bytes) + "," + number(row.since_ns) + "," + number(std::int64_t{row.op.value}) +
           "," + to_string(row.phase) + "," + number(std::int64_t{row.step}) + ",";
    const std::int64_t requested = trace.memory.requested_bytes[row.event];
    const StackId stack = trace.memory.stack[row.event];
    if (requested > 0) csv += number(requested);
    csv += ",";
    if (stack.valid()) csv += csv_field(site_text(trace, site[static_cast<std::size_t>(stack.value)]));
    csv += "\r\n";
  }
  return csv;
}

}  // namespace shard::view
