// Rows of typed columns.
#include "sim/validate/published_run.h"

#include <array>
#include <charconv>
#include <cmath>

#include "sim/validate/csv.h"

namespace shard::validate {
namespace {

/// Larger numbers are no count of anything that was trained.
constexpr double kMostCount = 1e15;

/// Whether `text` is of the column's words, and what it says.
using Read = bool (*)(PublishedRun& run, std::string_view text);

template <auto member>
bool text_of(PublishedRun& run, std::string_view text) {
  run.*member = text;
  return true;
}

template <auto member>
bool yes_or_no(PublishedRun& run, std::string_view text) {
  run.*member = text == "yes";
  return text == "yes" || text == "no" || text.empty();
}

bool parse_number(std::string_view text, double& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && value >= 0 && value < kMostCount;
}

template <auto member>
bool count(PublishedRun& run, std::string_view text) {
  double value = 0;
  if (!text.empty() && (!parse_number(text, value) || value != std::floor(value))) return false;
  run.*member = static_cast<std::int64_t>(value);
  return true;
}

template <class E>
std::optional<E> enumerator(std::string_view text) {
  const std::vector<Word> words = words_of<E>();
  for (std::size_t i = 0; i < words.size(); ++i)
    if (text == words[i].text) return static_cast<E>(i);
  return std::nullopt;
}

template <auto member>
bool choice(PublishedRun& run, std::string_view text) {
  const auto found = enumerator<std::remove_reference_t<decltype(run.*member)>>(text);
  if (found) run.*member = *found;
  return found.has_value();
}

bool memory_bytes(PublishedRun& run, std::string_view text) {
  double value = 0;
  if (text.empty()) return true;
  if (!parse_number(text, value) || run.memory.empty()) return false;
  run.memory.back().bytes = Bytes{static_cast<std::int64_t>(value)};
  return true;
}

bool memory_kind(PublishedRun& run, std::string_view text) {
  if (text.empty()) return true;
  const auto kind = enumerator<MemoryKind>(text);
  if (kind) run.memory.push_back({.kind = *kind, .bytes = Bytes{0}});
  return kind.has_value();
}

bool memory_of(PublishedRun& run, std::string_view text) {
  run.host_memory_only = text == "host";
  return text == "host" || text == "device";
}

bool speed(PublishedRun& run, std::string_view text) {
  double value = 0;
  if (text.empty()) return true;
  if (!parse_number(text, value)) return false;
  run.tokens_per_second = value;
  return true;
}

struct Column {
  const char* name;
  Read read;
};

constexpr std::array kFacts{
    Column{"id", text_of<&PublishedRun::id>},
    Column{"framework_name", text_of<&PublishedRun::framework_name>},
    Column{"evidence", choice<&PublishedRun::evidence>},
    Column{"outcome", choice<&PublishedRun::outcome>},
    Column{"memory_of", memory_of},
    Column{"memory_kind", memory_kind},
    Column{"memory_bytes", memory_bytes},
    Column{"memory2_kind", memory_kind},
    Column{"memory2_bytes", memory_bytes},
    Column{"tokens_per_second", speed},
};
/// Each has its companion.
constexpr std::array kSettings{
    Column{"framework", choice<&PublishedRun::framework>},
    Column{"code", choice<&PublishedRun::code>},
    Column{"model", text_of<&PublishedRun::model>},
    Column{"family", choice<&PublishedRun::family>},
    Column{"layers", count<&PublishedRun::layers>},
    Column{"hidden", count<&PublishedRun::hidden>},
    Column{"heads", count<&PublishedRun::heads>},
    Column{"kv_heads", count<&PublishedRun::kv_heads>},
    Column{"head_dim", count<&PublishedRun::head_dim>},
    Column{"ffn", count<&PublishedRun::ffn>},
    Column{"vocab", count<&PublishedRun::vocab>},
    Column{"tied", yes_or_no<&PublishedRun::tied>},
    Column{"mixture", yes_or_no<&PublishedRun::mixture>},
    Column{"sequence", count<&PublishedRun::sequence>},
    Column{"gpu", text_of<&PublishedRun::gpu>},
    Column{"gpu_bytes", count<&PublishedRun::gpu_bytes>},
    Column{"ranks", count<&PublishedRun::ranks>},
    Column{"ranks_per_host", count<&PublishedRun::ranks_per_host>},
    Column{"host_link", choice<&PublishedRun::host_link>},
    Column{"host_link_bytes_per_second", count<&PublishedRun::host_link_bytes_per_second>},
    Column{"network_bytes_per_second", count<&PublishedRun::network_bytes_per_second>},
    Column{"power_watts", count<&PublishedRun::power_watts>},
    Column{"tensor_parallel", count<&PublishedRun::tensor>},
    Column{"pipeline_parallel", count<&PublishedRun::pipeline>},
    Column{"pipeline_chunks", count<&PublishedRun::pipeline_chunks>},
    Column{"context_parallel", count<&PublishedRun::context>},
    Column{"sequence_parallel", yes_or_no<&PublishedRun::sequence_parallel>},
    Column{"asynchronous_tensor_parallel", yes_or_no<&PublishedRun::asynchronous_tensor>},
    Column{"stage", count<&PublishedRun::stage>},
    Column{"shard_degree", count<&PublishedRun::shard_degree>},
    Column{"reshard_after_forward", yes_or_no<&PublishedRun::reshard_after_forward>},
    Column{"wrapping", choice<&PublishedRun::wrapping>},
    Column{"precision", choice<&PublishedRun::precision>},
    Column{"compute_type", choice<&PublishedRun::compute_type>},
    Column{"autocast", yes_or_no<&PublishedRun::autocast>},
    Column{"reduced_bits", count<&PublishedRun::reduced_bits>},
    Column{"float8", choice<&PublishedRun::float8>},
    Column{"float8_scales", choice<&PublishedRun::float8_scales>},
    Column{"weight_bits", count<&PublishedRun::weight_bits>},
    Column{"micro_batch", count<&PublishedRun::micro_batch>},
    Column{"accumulation", count<&PublishedRun::accumulation>},
    Column{"recompute", choice<&PublishedRun::recompute>},
    Column{"recompute_keeps_attention", yes_or_no<&PublishedRun::recompute_keeps_attention>},
    Column{"compile", choice<&PublishedRun::compile>},
    Column{"fused_kernels", yes_or_no<&PublishedRun::fused_kernels>},
    Column{"attention", choice<&PublishedRun::attention>},
    Column{"attention_kernel", choice<&PublishedRun::attention_kernel>},
    Column{"loss", choice<&PublishedRun::loss>},
    Column{"norms", choice<&PublishedRun::norms>},
    Column{"optimizer", choice<&PublishedRun::optimizer>},
    Column{"optimizer_step", choice<&PublishedRun::optimizer_step>},
    Column{"optimizer_bits", count<&PublishedRun::optimizer_bits>},
    Column{"adapter", choice<&PublishedRun::adapter>},
    Column{"adapter_rank", count<&PublishedRun::adapter_rank>},
    Column{"offload_parameters", yes_or_no<&PublishedRun::offload_parameters>},
    Column{"offload_optimizer", yes_or_no<&PublishedRun::offload_optimizer>},
    Column{"offload_activations", yes_or_no<&PublishedRun::offload_activations>},
    Column{"expandable_segments", yes_or_no<&PublishedRun::expandable_segments>},
};

Error absent(const std::string& column, std::string_view file) {
  return {
      .code = Errc::malformed,
      .what = "there is no column '" + column + "': a table of typed columns is read, none in its publishers' words",
      .where = std::string(file) + ":1",
      .help = "python3 tests/validation/normalise.py ROWS.csv > TYPED.csv, and read that"};
}

Error wrong(const CsvTable& table, std::size_t row, const char* column, std::string_view file) {
  return {.code = Errc::malformed,
          .what = "column '" + std::string(column) + "' has no value '" + std::string(table.at(row, column)) + "'",
          .where = std::string(file) + ":" + std::to_string(table.lines[row]),
          .help = "the values are in tests/validation/README.md"};
}

}  // namespace

Result<std::vector<PublishedRun>> read_published_runs(std::string_view text, std::string_view file) {
  const Result<CsvTable> table = parse_csv(text, file);
  if (!table) return table.error();
  for (const Column& c : kFacts)
    if (!table->has(c.name)) return absent(c.name, file);
  for (const Column& c : kSettings)
    for (const std::string& name : {std::string(c.name), std::string(c.name) + "_from"})
      if (!table->has(name)) return absent(name, file);
  std::vector<PublishedRun> runs(table->rows.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (const Column& c : kFacts)
      if (!c.read(runs[i], table->at(i, c.name))) return wrong(*table, i, c.name, file);
    for (const Column& c : kSettings) {
      if (!c.read(runs[i], table->at(i, c.name))) return wrong(*table, i, c.name, file);
      if (table->at(i, std::string(c.name) + "_from") != "assumed" || table->at(i, c.name).empty()) continue;
      runs[i].assumed +=
          (runs[i].assumed.empty() ? "" : ", ") + std::string(c.name) + " " + std::string(table->at(i, c.name));
    }
    for (std::int64_t PublishedRun::*n :
         {&PublishedRun::ranks, &PublishedRun::tensor, &PublishedRun::pipeline, &PublishedRun::pipeline_chunks,
          &PublishedRun::context, &PublishedRun::micro_batch, &PublishedRun::accumulation})
      if (runs[i].*n < 1) runs[i].*n = 1;
  }
  return runs;
}

}  // namespace shard::validate
