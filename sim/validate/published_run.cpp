// Rows of a table of published runs: words to quantities.
#include "sim/validate/published_run.h"

#include <charconv>
#include <cmath>

#include "sim/validate/csv.h"
#include "sim/validate/text.h"

namespace shard::validate {
namespace {

MemoryKind kind_of(std::string_view words) {
  if (holds(words, "model states")) return MemoryKind::states;
  if (holds(words, "unspecified")) return holds(words, "reserved") ? MemoryKind::reserved : MemoryKind::not_stated;
  if (holds(words, "smi")) return MemoryKind::nvidia_smi;
  if (holds(words, "reserved")) return MemoryKind::reserved;
  if (holds(words, "active")) return MemoryKind::active;
  if (holds(words, "allocated") || holds(words, "torch peak") || holds(words, "activations"))
    return MemoryKind::allocated;
  return MemoryKind::not_stated;
}

/// The column is in GiB unless its kind says GB. A kind that says MB was brought to GiB by the table's makers, who
/// took a megabyte for 2^20 bytes.
std::optional<PublishedMemory> memory_of(double figure, std::string_view words) {
  if (!(figure > 0) || !(figure < 1e6)) return std::nullopt;
  const bool decimal = has_word(words, "gb");
  return PublishedMemory{.kind = kind_of(words), .bytes = Bytes{std::llround(figure * (decimal ? 1e9 : 1073741824.0))}};
}

Outcome outcome_of(std::string_view words) {
  if (begins(words, "oom") || holds(words, "out of memory")) return Outcome::out_of_memory;
  return holds(words, "upper bound") ? Outcome::fits_only : Outcome::ran;
}

std::optional<double> throughput_of(const CsvTable& table, std::size_t i, const PublishedRun& run) {
  if (const double stated = number(table.at(i, "tokens_s_gpu")); stated > 0) return stated;
  const auto per_gpu = static_cast<double>(run.micro_batch * run.sequence);
  const double step = number(table.at(i, "step_time_s"));
  const double group =
      static_cast<double>(std::max<std::int64_t>(run.tensor, 1) * std::max<std::int64_t>(run.pipeline, 1) *
                          std::max<std::int64_t>(run.context, 1));
  if (step > 0 && per_gpu > 0)
    return per_gpu * static_cast<double>(std::max<std::int64_t>(run.accumulation, 1)) / group / step;
  return std::nullopt;
}

PublishedRun run_of(const CsvTable& table, std::size_t i) {
  const auto text = [&](std::string_view column) { return std::string(table.at(i, column)); };
  const auto count = [&](std::string_view column) {
    const double value = number(table.at(i, column));
    return value > 0 && value < 1e15 ? static_cast<std::int64_t>(value) : std::int64_t{0};
  };
  PublishedRun run{.id = text("id"),
                   .source = text("source"),
                   .date = text("date"),
                   .framework = text("framework"),
                   .model = text("model"),
                   .gpu = text("gpu"),
                   .sharding = text("sharding"),
                   .offload = text("offload"),
                   .precision = text("precision"),
                   .recompute = text("ac_mode"),
                   .compile = text("compile"),
                   .attention = text("flash_attn"),
                   .notes = text("notes"),
                   .layers = count("layers"),
                   .hidden = count("hidden"),
                   .heads = count("heads"),
                   .kv_heads = count("kv_heads"),
                   .ffn = count("ffn"),
                   .vocab = count("vocab"),
                   .sequence = count("seq_len"),
                   .parameters = number(table.at(i, "params")),
                   .gpu_gib = number(table.at(i, "gpu_mem_gib")),
                   .gpus = count("n_gpus"),
                   .gpus_per_node = count("gpus_per_node"),
                   .stage = count("zero_stage"),
                   .stage_stated = !table.at(i, "zero_stage").empty(),
                   .shard_degree = count("dp_shard"),
                   .tensor = count("tp"),
                   .pipeline = count("pp"),
                   .context = count("cp"),
                   .micro_batch = count("micro_batch"),
                   .accumulation = count("grad_accum"),
                   .memory = {},
                   .host_memory_only = holds(table.at(i, "mem_kind"), "host"),
                   .tokens_per_second = std::nullopt,
                   .outcome = outcome_of(table.at(i, "outcome")),
                   .measured = table.at(i, "evidence").empty() || begins(table.at(i, "evidence"), "measured"),
                   .upper_bound = holds(table.at(i, "evidence"), "maximum")};
  if (!run.host_memory_only)
    for (const auto& [figure, words] : {std::pair{"peak_mem_gib", "mem_kind"}, std::pair{"peak_mem2_gib", "mem2_kind"}})
      if (const auto memory = memory_of(number(table.at(i, figure)), table.at(i, words))) run.memory.push_back(*memory);
  if (run.outcome == Outcome::ran && run.memory.empty() && run.upper_bound) run.outcome = Outcome::fits_only;
  run.tokens_per_second = throughput_of(table, i, run);
  return run;
}

}  // namespace

Result<std::vector<PublishedRun>> read_published_runs(std::string_view text, std::string_view file) {
  const Result<CsvTable> table = parse_csv(text, file);
  if (!table) return table.error();
  for (const char* needed : {"framework", "model", "outcome"})
    if (!table->has(needed))
      return Error{.code = Errc::malformed,
                   .what = std::string("there is no column '") + needed + "'",
                   .where = std::string(file) + ":1",
                   .help = "name the columns as docs/validation.md does"};
  std::vector<PublishedRun> runs;
  for (std::size_t i = 0; i < table->rows.size(); ++i) runs.push_back(run_of(*table, i));
  return runs;
}

}  // namespace shard::validate
