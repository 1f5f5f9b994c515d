// The names of models and machines as tables.
#include "sim/commands/known_names.h"

#include <iomanip>
#include <sstream>

#include "sim/cli/sizes.h"
#include "sim/cluster/read_cluster.h"
#include "sim/commands/printing.h"
#include "sim/model/examples.h"
#include "sim/model/known_models.h"
#include "sim/model/read_model.h"
#include "traces/base/numbers.h"

namespace shard::commands {
namespace {

/// What a command can do with it, and why no more.
std::string usable_for(const model::Model& model) {
  if (model.not_simulated) return "inspect";
  return model.not_trained ? "simulate, search" : "simulate, search, train";
}

cli::Cell figure(double value, double unit, const char* name) {
  std::ostringstream text;
  text << value / unit << name;
  return {value, text.str()};
}

std::string in_gib(Bytes bytes) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(2) << static_cast<double>(bytes.count()) / static_cast<double>(1 << 30)
       << " GiB";
  return text.str();
}

int print_table(const std::string& key, const cli::Table& table, cli::Format format) {
  if (format == cli::Format::json) {
    nlohmann::ordered_json j = cli::json_document("inspect");
    j[key] = cli::to_json(table);
    std::cout << cli::json_text(j);
    return 0;
  }
  if (format != cli::Format::table || key != "clusters") {
    std::cout << cli::render(table, format, cli::style_of(1));
    return 0;
  }
  // Their sources are whole sentences.
  cli::Table figures = table;
  figures.columns.pop_back();
  for (auto& row : figures.rows) row.pop_back();
  std::cout << cli::render(figures, format, cli::style_of(1))
            << "\nEach also with another number of devices (-x4). Where the figures are from:\n";
  for (const auto& row : table.rows)
    std::cout << "\n"
              << std::get<std::string>(row.front().value) << ": " << std::get<std::string>(row.back().value) << "\n";
  return 0;
}

}  // namespace

int list_models(cli::Format format) {
  cli::Table table{.columns = {{"name", "name", cli::Align::left},
                               {"class", "class", cli::Align::left},
                               {"parameter_count", "parameters", cli::Align::right},
                               {"layers", "layers", cli::Align::right},
                               {"usable_for", "for", cli::Align::left},
                               {"source", "source", cli::Align::left}},
                   .rows = {}};
  for (const std::string& name : model::model_names()) {
    const Result<model::Model> read = model::read_model(name);
    if (!read) return failed(read.error());
    const std::string source = model::find_example_model(name) ? "examples/models/" + name + ".json"
                                                               : "huggingface.co/" + model::known_model_source(name);
    const std::int64_t elements = read->parameter_elements();
    table.rows.push_back({name, read->class_name.empty() ? std::string("mlp") : read->class_name,
                          cli::Cell{elements, with_commas(elements)}, read->layers, usable_for(*read), source});
  }
  return print_table("models", table, format);
}

int list_clusters(cli::Format format) {
  cli::Table table{.columns = {{"name", "name", cli::Align::left},
                               {"device", "device", cli::Align::left},
                               {"devices_per_host", "devices", cli::Align::right},
                               {"device_memory_bytes", "memory", cli::Align::right},
                               {"memory_bandwidth_bytes_per_second", "bandwidth", cli::Align::right},
                               {"peak_fp32_flops_per_second", "fp32", cli::Align::right},
                               {"peak_bf16_flops_per_second", "bf16", cli::Align::right},
                               {"source", "source", cli::Align::left}},
                   .rows = {}};
  for (const std::string& name : cluster::cluster_names()) {
    const Result<cluster::Cluster> c = cluster::read_cluster(name);
    if (!c) return failed(c.error());
    const cli::Cell memory =
        c->device_memory ? cli::Cell{c->device_memory->count(), in_gib(*c->device_memory)} : cli::Cell();
    const cli::Cell bf16 = c->peak_bf16 ? figure(c->peak_bf16->count(), 1e12, " TFLOP/s") : cli::Cell();
    table.rows.push_back({name, cluster::to_string(c->device), c->devices_per_host, memory,
                          figure(c->memory_bandwidth.count(), 1e9, " GB/s"),
                          figure(c->peak_fp32.count(), 1e12, " TFLOP/s"), bf16, c->source});
  }
  return print_table("clusters", table, format);
}

}  // namespace shard::commands
