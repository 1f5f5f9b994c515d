// Predicts every row and sums the errors up.
#include "sim/validate/validation.h"

#include <algorithm>
#include <map>

namespace shard::validate {
namespace {

bool counts_as_peak(MemoryKind kind) {
  return kind != MemoryKind::states && kind != MemoryKind::not_stated;
}

/// A measured dense run on one stage of a pipeline, its sequences whole.
bool is_plain(const ValidatedRow& row) {
  const PublishedRun& run = row.run;
  return run.measured() && !run.mixture && run.pipeline <= 1 && run.context <= 1 && !run.host_memory_only;
}

ValidatedRow validated(PublishedRun run, const FindCluster& find_cluster) {
  ValidatedRow row;
  row.run = std::move(run);
  row.machine = machine_of(row.run);
  row.predicted = predict(row.run, row.machine);
  if (!row.run.tokens_per_second) return row;
  if (row.machine.cluster.empty()) {
    row.throughput_reason = "no cluster is described that is like it";
    return row;
  }
  const Result<cluster::Cluster> machine = find_cluster(row.machine.cluster);
  const Result<Throughput> throughput =
      machine ? predict_throughput(row.run, cluster_of(row.run, *machine)) : Result<Throughput>(machine.error());
  if (throughput)
    row.throughput = *throughput;
  else
    row.throughput_reason = throughput.error().what;
  return row;
}

/// Errors by a name, in order of first appearance.
class Table {
 public:
  Errors& operator[](const std::string& name) {
    const auto [at, fresh] = index_.try_emplace(name, entries_.size());
    if (fresh) {
      entries_.emplace_back();
      entries_.back().of.name = name;
    }
    current_ = at->second;
    return entries_[current_].of;
  }
  void add_memory(double error) { entries_[current_].memory.push_back(error); }
  void add_throughput(const ValidatedRow& row) {
    Entry& e = entries_[current_];
    e.throughput.push_back(*row.throughput_error());
    ++e.of.intervals.rows;
    e.of.intervals.within += *row.within() ? 1 : 0;
  }
  [[nodiscard]] std::vector<Errors> take() {
    std::vector<Errors> out;
    for (Entry& e : entries_) {
      e.of.peak_memory = summarize(std::move(e.memory));
      e.of.throughput = summarize(std::move(e.throughput));
      out.push_back(std::move(e.of));
    }
    return out;
  }

 private:
  struct Entry {
    Errors of;
    std::vector<double> memory, throughput;
  };
  std::map<std::string, std::size_t> index_;
  std::vector<Entry> entries_;
  std::size_t current_ = 0;
};

void classify(Validation& v, const ValidatedRow& row) {
  if (!row.machine.device_memory) return;
  const auto& memory = row.predicted.memory;
  const bool ran_out = row.run.outcome == Outcome::out_of_memory;
  Classified& of = ran_out ? v.oom : v.fits;
  ++of.count;
  if (!memory) return;
  ++of.predicted;
  if (memory->fits != ran_out) ++of.right;
}

void count_unpredicted(Validation& v) {
  for (std::size_t reason = 0; reason < words_of<NotPredicted>().size(); ++reason) {
    Unpredicted of{.reason = static_cast<NotPredicted>(reason)};
    for (const ValidatedRow& row : v.rows) {
      if (row.predicted.memory || row.predicted.reason != of.reason) continue;
      ++of.rows;
      of.with_memory += row.run.memory.empty() ? 0 : 1;
    }
    if (of.rows > 0) v.unpredicted.push_back(of);
  }
}

/// Speeds that stand in their kind alone, as model states do among figures of memory; null: it counts everywhere.
const char* speed_apart(const ValidatedRow& row) {
  if (row.throughput->launch_bound) return "launch-bound";
  return row.run.pipeline > 1 ? "pipelines" : nullptr;
}

std::vector<const char*> speed_kinds(const PublishedRun& run) {
  const bool eager = run.compile == Compile::none, whole = run.tensor == 1;
  std::vector<const char*> kinds;
  if (run.float8 != Float8::none)
    kinds.push_back("8 or 4 bits");
  else
    kinds.push_back(whole ? eager ? "16 bits, eager, no tensor parallelism" : "16 bits, compiled, no tensor parallelism"
                    : eager ? "16 bits, eager, tensor parallelism"
                            : "16 bits, compiled, tensor parallelism");
  if (run.float8 == Float8::none && whole) kinds.push_back("16 bits, no tensor parallelism");
  if (run.code != Code::llm_foundry) kinds.push_back("all but Composer");
  return kinds;
}

std::optional<double> median_of_medians(const std::vector<Errors>& frameworks) {
  std::vector<double> medians;
  for (const Errors& e : frameworks)
    if (e.throughput.count > 0) medians.push_back(e.throughput.median_ape);
  if (medians.empty()) return std::nullopt;
  return summarize(std::move(medians)).median_ape;
}

void sum_up(Validation& v) {
  Table frameworks, kinds, overall, speeds;
  std::int64_t plain = 0, modelled = 0;
  for (const ValidatedRow& row : v.rows) {
    ++frameworks[row.run.framework_name].rows;
    ++overall["overall"].rows;
    if (is_plain(row) || row.run.upper_bound()) classify(v, row);
    if (is_plain(row)) {
      ++plain;
      modelled += row.predicted.memory ? 1 : 0;
    }
    for (std::size_t i = 0; i < row.run.memory.size(); ++i) {
      const MemoryKind kind = row.run.memory[i].kind;
      ++kinds[to_string(kind)].rows;
      const std::optional<double> error = row.memory_error(i);
      if (!error) continue;
      kinds.add_memory(*error);
      if (!counts_as_peak(kind) || !row.run.measured()) continue;
      frameworks.add_memory(*error);
      overall.add_memory(*error);
    }
    if (!row.throughput_error() || !row.run.measured()) continue;
    if (const char* const apart = speed_apart(row)) {
      ++speeds[apart].rows;
      speeds.add_throughput(row);
      continue;
    }
    frameworks.add_throughput(row);
    overall.add_throughput(row);
    for (const char* const kind : speed_kinds(row.run)) {
      ++speeds[kind].rows;
      speeds.add_throughput(row);
    }
  }
  v.frameworks = frameworks.take();
  v.memory_kinds = kinds.take();
  v.speed_kinds = speeds.take();
  v.median_of_medians = median_of_medians(v.frameworks);
  if (auto all = overall.take(); !all.empty()) v.overall = std::move(all.front());
  v.modelled_fraction = plain > 0 ? static_cast<double>(modelled) / static_cast<double>(plain) : 0;
}

}  // namespace

std::optional<double> ValidatedRow::memory_error(std::size_t figure) const {
  if (!predicted.memory) return std::nullopt;
  const PublishedMemory& measured = run.memory[figure];
  return absolute_percentage_error(static_cast<double>(predicted.memory->of(measured.kind).count()),
                                   static_cast<double>(measured.bytes.count()));
}

std::optional<double> ValidatedRow::throughput_error() const {
  if (!throughput || !run.tokens_per_second) return std::nullopt;
  return absolute_percentage_error(throughput->tokens_per_second, *run.tokens_per_second);
}

std::optional<bool> ValidatedRow::within() const {
  if (!throughput || !run.tokens_per_second) return std::nullopt;
  return throughput->low <= *run.tokens_per_second && *run.tokens_per_second <= throughput->high;
}

Validation validate_runs(std::vector<PublishedRun> runs, const FindCluster& find_cluster,
                         const std::function<void(std::size_t)>& progress) {
  Validation v;
  for (PublishedRun& run : runs) {
    v.rows.push_back(validated(std::move(run), find_cluster));
    if (progress) progress(v.rows.size());
  }
  sum_up(v);
  count_unpredicted(v);
  return v;
}

}  // namespace shard::validate
