// Columns as a list of keys and functions.
#include "sim/commands/sweep_tables.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <set>
#include <string_view>
#include <variant>

#include "sim/commands/printing.h"
#include "sim/strategy/fields.h"
#include "traces/base/numbers.h"

namespace shard::commands {
namespace {

using cli::Align;
using cli::Cell;

struct SweepColumn {
  cli::Column column;
  std::function<Cell(const SweepRow&)> cell;
};

cli::Table table_of(const std::vector<SweepColumn>& columns, const std::vector<const SweepRow*>& rows) {
  cli::Table table;
  for (const SweepColumn& each : columns) table.columns.push_back(each.column);
  for (const SweepRow* row : rows) {
    std::vector<Cell> cells;
    cells.reserve(columns.size());
    for (const SweepColumn& each : columns) cells.push_back(each.cell(*row));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

struct CellOf {
  Cell operator()(std::nullptr_t) const { return {}; }
  Cell operator()(const std::vector<std::int64_t>& list) const {
    std::string text;
    for (const std::int64_t each : list) text += (text.empty() ? "" : ",") + std::to_string(each);
    return text;
  }
  Cell operator()(const std::vector<std::string>& list) const {
    std::string text;
    for (const std::string& each : list) text += (text.empty() ? "" : ",") + each;
    return text;
  }
  Cell operator()(const auto& plain) const { return plain; }
};

Cell cell_of(const plan::JsonValue& value) {
  return std::visit(CellOf{}, value);
}

/// A number or a truth where the whole text is one.
Cell cell_of_text(const std::string& text) {
  if (text == "true" || text == "false") return text == "true";
  const char* const end = text.data() + text.size();
  std::int64_t whole = 0;
  if (const auto read = std::from_chars(text.data(), end, whole); read.ec == std::errc() && read.ptr == end)
    return whole;
  double number = 0;
  const bool digits = text.find_first_not_of("+-.eE0123456789") == std::string::npos;
  if (const auto read = std::from_chars(text.data(), end, number); digits && read.ec == std::errc() && read.ptr == end)
    return number;
  return text;
}

std::string key_of(std::string_view option) {
  std::string key(option);
  std::ranges::replace(key, '-', '_');
  return key;
}

/// The options' columns, as numbers where `typed`, else as they were given.
std::vector<SweepColumn> swept_columns(const std::vector<SweptOption>& lists, bool typed) {
  std::vector<SweepColumn> columns;
  for (std::size_t i = 0; i < lists.size(); ++i) {
    const std::string& option = lists[i].option;
    const bool is_text = std::ranges::any_of(lists[i].values, [](const std::string& value) {
      const Cell cell = cell_of_text(value);
      return std::holds_alternative<std::string>(cell.value);
    });
    const cli::Column column{
        .key = key_of(option), .title = option, .align = is_text && !typed ? Align::left : Align::right};
    const plan::Field* const field = plan::find_field(option);
    const bool is_field = field != nullptr && field->key == column.key && field->given_by == plan::GivenBy::value;
    columns.push_back({column, [=](const SweepRow& row) -> Cell {
                         if (!typed) return row.values[i];
                         if (is_field && row.figures && row.figures->strategy)
                           return cell_of(plan::json_value(*field, *row.figures->strategy));
                         return cell_of_text(row.values[i]);
                       }});
  }
  return columns;
}

/// Columns that come behind others: a key that is there already is left out.
class Columns {
 public:
  explicit Columns(std::vector<SweepColumn> first) : all_(std::move(first)) {}
  void add(std::string key, std::function<Cell(const SweepRow&)> cell) {
    if (std::ranges::any_of(all_, [&](const SweepColumn& each) { return each.column.key == key; })) return;
    all_.push_back({{.key = key, .title = key}, std::move(cell)});
  }
  /// Of rows that have figures.
  template <class Of>
  void figure(std::string key, Of of) {
    add(std::move(key), [of](const SweepRow& row) -> Cell { return row.figures ? Cell(of(*row.figures)) : Cell(); });
  }
  template <class Of>
  void time(std::string key, Of of) {
    add(std::move(key), [of](const SweepRow& row) -> Cell {
      return row.figures && row.figures->times ? Cell(of(*row.figures->times)) : Cell();
    });
  }
  template <class Of>
  void host(std::string key, Of of) {
    add(std::move(key), [of](const SweepRow& row) -> Cell {
      return row.figures && row.figures->host ? Cell(of(*row.figures->host)) : Cell();
    });
  }
  [[nodiscard]] const std::vector<SweepColumn>& all() const { return all_; }

 private:
  std::vector<SweepColumn> all_;
};

Cell bytes_or_none(const std::optional<Bytes>& bytes) {
  return bytes ? Cell(bytes->count()) : Cell();
}

Category largest_category(const SweepFigures& f) {
  return static_cast<Category>(std::ranges::max_element(f.by_category) - f.by_category.begin());
}

void add_memory(Columns& columns) {
  using F = SweepFigures;
  columns.figure("peak_device_bytes", [](const F& f) { return f.device_peak.count(); });
  columns.figure("live_peak_device_bytes", [](const F& f) { return f.live_peak.count(); });
  columns.figure("device_capacity_bytes", [](const F& f) { return bytes_or_none(f.taken.device_capacity); });
  columns.figure("outside_allocator_low_bytes", [](const F& f) { return f.outside.low.count(); });
  columns.figure("outside_allocator_high_bytes", [](const F& f) { return f.outside.high.count(); });
  columns.figure("headroom_bytes", [](const F& f) {
    return f.taken.device_capacity ? Cell((*f.taken.device_capacity - f.device_peak - f.outside.high).count()) : Cell();
  });
  columns.host("peak_host_bytes", [](const SweepHost& h) { return h.peak.count(); });
  columns.host("peak_pinned_bytes", [](const SweepHost& h) { return h.pinned.count(); });
  columns.host("host_capacity_bytes", [](const SweepHost& h) { return bytes_or_none(h.capacity); });
  columns.host("peak_disk_bytes", [](const SweepHost& h) { return bytes_or_none(h.disk); });
}

void add_times(Columns& columns) {
  using T = SweepTimes;
  columns.figure("memory_of", [](const SweepFigures& f) { return Cell(f.taken.memory_of); });
  columns.figure("times_of", [](const SweepFigures& f) { return f.times ? Cell(f.times->of) : Cell(); });
  const auto seconds = [](const std::optional<Seconds>& s) { return s ? Cell(s->count()) : Cell(); };
  const auto share = [](const std::optional<double>& s) { return s ? Cell(*s) : Cell(); };
  columns.time("step_seconds", [](const T& t) { return t.step.count(); });
  columns.time("step_seconds_low", [=](const T& t) { return seconds(t.step_low); });
  columns.time("step_seconds_high", [=](const T& t) { return seconds(t.step_high); });
  columns.time("tokens_per_second", [](const T& t) { return t.tokens_per_second; });
  columns.time("tflops_per_device", [](const T& t) { return t.tflops_per_device; });
  columns.time("first_step_seconds", [=](const T& t) { return seconds(t.first_step); });
  columns.time("creation_seconds", [=](const T& t) { return seconds(t.creation); });
  columns.time("run_seconds", [=](const T& t) { return seconds(t.run); });
  columns.time("compute_share", [=](const T& t) { return share(t.compute_share); });
  columns.time("communication_share", [=](const T& t) { return share(t.communication_share); });
  columns.time("exposed_communication_share", [=](const T& t) { return share(t.exposed_communication_share); });
}

void add_holders(Columns& columns) {
  using F = SweepFigures;
  columns.figure("sent_bytes", [](const F& f) { return f.sent_together().count(); });
  for (std::size_t k = 0; k < kCollectiveCount; ++k)
    columns.figure(std::string(to_string(static_cast<Collective>(k))) + "_bytes",
                   [k](const F& f) { return f.sent[k].count(); });
  columns.figure("largest_category", [](const F& f) { return to_string(largest_category(f)); });
  columns.figure("largest_category_bytes", [](const F& f) { return std::ranges::max(f.by_category).count(); });
  columns.figure("largest_holder", [](const F& f) { return f.holder ? Cell(f.holder->name) : Cell(); });
  columns.figure("largest_holder_bytes", [](const F& f) { return f.holder ? Cell(f.holder->bytes.count()) : Cell(); });
  for (std::size_t c = 0; c < kCategoryCount; ++c)
    if (static_cast<Category>(c) != Category::not_known)
      columns.figure(std::string(to_string(static_cast<Category>(c))) + "_bytes",
                     [c](const F& f) { return f.by_category[c].count(); });
}

void add_strategy(Columns& columns) {
  columns.figure("strategy", [](const SweepFigures& f) { return f.strategy ? Cell(to_string(*f.strategy)) : Cell(); });
  columns.figure("plan_hash", [](const SweepFigures& f) { return f.plan_hash.empty() ? Cell() : Cell(f.plan_hash); });
  for (const plan::Field& field : plan::fields())
    columns.figure(std::string(field.key), [&field](const SweepFigures& f) {
      return f.strategy ? cell_of(plan::json_value(field, *f.strategy)) : Cell();
    });
}

/// The number of a reason, from 1 on; a new one is added.
std::size_t number_of(const std::string& reason, std::vector<std::string>& reasons) {
  const auto at = std::ranges::find(reasons, reason);
  const auto number = static_cast<std::size_t>(at - reasons.begin()) + 1;
  if (at == reasons.end()) reasons.push_back(reason);
  return number;
}

}  // namespace

std::string options_of(const std::vector<SweptOption>& lists, const SweepRow& row) {
  std::string text;
  for (std::size_t i = 0; i < lists.size(); ++i)
    text += (text.empty() ? "" : " ") + typed_option(lists[i].option, row.values[i]);
  return text;
}

cli::Table all_columns(const std::vector<SweptOption>& lists, const std::vector<SweepRow>& rows) {
  std::vector<SweepColumn> first{{{.key = "row", .title = "row"}, [&rows](const SweepRow& row) -> Cell {
                                    return static_cast<std::int64_t>(&row - rows.data()) + 1;
                                  }}};
  for (SweepColumn& each : swept_columns(lists, true)) first.push_back(std::move(each));
  Columns columns(std::move(first));
  columns.add("status", [](const SweepRow& row) { return Cell(row.status()); });
  columns.add("fits", [](const SweepRow& row) { return row.contradicts() ? Cell() : Cell(row.fits()); });
  columns.add("reason", [](const SweepRow& row) {
    const std::string reason = row.reason();
    return reason.empty() ? Cell() : Cell(reason);
  });
  columns.add("on_front", [](const SweepRow& row) { return Cell(row.on_front); });
  columns.add("options", [&lists](const SweepRow& row) { return Cell(options_of(lists, row)); });
  columns.figure("model", [](const SweepFigures& f) { return f.taken.model; });
  columns.figure("cluster", [](const SweepFigures& f) { return f.taken.cluster ? Cell(*f.taken.cluster) : Cell(); });
  columns.figure("memory_of", [](const SweepFigures& f) { return f.taken.memory_of; });
  add_memory(columns);
  add_times(columns);
  add_holders(columns);
  add_strategy(columns);
  std::vector<const SweepRow*> in_order;
  for (const SweepRow& row : rows) in_order.push_back(&row);
  return table_of(columns.all(), in_order);
}

cli::Table chief_columns(const std::vector<SweptOption>& lists, const std::vector<SweepRow>& rows,
                         std::vector<std::string>& reasons) {
  std::vector<SweepColumn> columns{{{.key = "front", .title = "Pareto front", .align = Align::left},
                                    [](const SweepRow& row) { return Cell(row.on_front ? "*" : ""); }}};
  for (SweepColumn& each : swept_columns(lists, false)) columns.push_back(std::move(each));
  const auto of_figures = [](auto of) {
    return [of](const SweepRow& row) -> Cell { return row.figures ? Cell(of(*row.figures)) : Cell(); };
  };
  const auto column = [&](const char* key, const char* title, auto of, Align align = Align::right) {
    columns.push_back({{.key = key, .title = title, .align = align}, of_figures(of)});
  };
  const auto shown = [](Bytes bytes) { return Cell(bytes.count(), show_bytes(bytes)); };
  const auto any_host = std::ranges::any_of(
      rows, [](const SweepRow& row) { return row.figures && row.figures->host && row.figures->host->peak > Bytes{0}; });
  std::set<std::string> whose;
  for (const SweepRow& row : rows)
    if (row.figures) whose.insert(row.figures->taken.memory_of);
  if (whose.size() > 1)
    column(
        "memory_of", "memory of", [](const SweepFigures& f) { return f.taken.memory_of; }, Align::left);
  column("peak_device_bytes", "peak", [=](const SweepFigures& f) { return shown(f.device_peak); });
  if (any_host)
    column("peak_host_bytes", "host", [=](const SweepFigures& f) { return f.host ? shown(f.host->peak) : Cell(); });
  column("step_seconds", "step", [](const SweepFigures& f) { return f.times ? cli::cell(f.times->step) : Cell(); });
  column("tokens_per_second", "tokens/s", [](const SweepFigures& f) {
    return f.times ? Cell(f.times->tokens_per_second, show_number(f.times->tokens_per_second)) : Cell();
  });
  const auto sends = [](const SweepRow& row) { return row.figures && row.figures->sent_together() > Bytes{0}; };
  if (std::ranges::any_of(rows, sends))
    column("sent_bytes", "sent", [=](const SweepFigures& f) { return shown(f.on_the_wire()); });
  column(
      "largest_category", "largest",
      [](const SweepFigures& f) {
        return std::string(to_string(largest_category(f))) + " " + show_bytes(std::ranges::max(f.by_category));
      },
      Align::left);
  if (std::ranges::any_of(rows, [](const SweepRow& row) { return !row.fits() || row.tight(); }))
    columns.push_back({{.key = "reason", .title = "why not", .align = Align::left}, [&reasons](const SweepRow& row) {
                         if (row.figures) return Cell(row.reason());
                         return Cell(std::string(row.status()) + " [" +
                                     std::to_string(number_of(row.reason(), reasons)) + "]");
                       }});
  std::vector<const SweepRow*> sorted;
  for (const std::size_t i : best_first(rows)) sorted.push_back(&rows[i]);
  return table_of(columns, sorted);
}

}  // namespace shard::commands
