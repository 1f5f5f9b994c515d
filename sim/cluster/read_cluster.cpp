// Cluster descriptions by name, from files and from text.
#include "sim/cluster/read_cluster.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/examples.h"
#include "sim/cluster/json_object.h"
#include "sim/cluster/read_kernel_laws.h"
#include "sim/cluster/read_measured.h"
#include "sim/model/closest_name.h"
#include "traces/base/read_file.h"

namespace shard::cluster {
namespace {

namespace fs = std::filesystem;

/// A description is about a kilobyte; far more means that the argument is something else.
constexpr Bytes kLargestDescription{1 << 20};
constexpr std::int64_t kMostBytes = std::int64_t{1} << 60;
constexpr std::int64_t kMostDevices = 1 << 20;

Link read_link(JsonObject json) {
  const Link link{Seconds{json.non_negative("base_seconds")}, Seconds{json.non_negative("latency_seconds")},
                  BytesPerSecond{json.positive("bus_bandwidth_bytes_per_second")}};
  json.refuse_unknown_keys();
  return link;
}

HostLink read_host_link(JsonObject json) {
  const HostLink link{Seconds{json.non_negative("latency_seconds")},
                      BytesPerSecond{json.positive("bandwidth_bytes_per_second")}};
  json.refuse_unknown_keys();
  return link;
}

Card read_card(JsonObject& json) {
  constexpr double kNewest = 99;
  const double capability = json.positive("compute_capability");
  if (capability > kNewest) json.fail("compute_capability", "is no compute capability", "a number such as 9.0");
  return {.compute_capability = static_cast<std::int32_t>(std::lround(10 * std::min(capability, kNewest))),
          .multiprocessors = static_cast<std::int32_t>(json.count("multiprocessors", 65'536)),
          .threads_per_multiprocessor = static_cast<std::int32_t>(json.count("threads_per_multiprocessor", 65'536))};
}

Cluster read_fields(JsonObject& json) {
  Cluster c;
  if (const std::int64_t version = json.count("schema_version", std::numeric_limits<std::int32_t>::max());
      version > kSchemaVersion) {
    json.fail("schema_version",
              "is " + std::to_string(version) + ", this program reads up to " + std::to_string(kSchemaVersion),
              "use a newer program", Errc::contradiction);
  }
  c.name = json.text("name");
  c.source = json.text("source", "");
  const std::string device = json.text("device");
  if (device != "cpu" && device != "cuda") json.fail("device", "must be \"cpu\" or \"cuda\"");
  c.device = device == "cpu" ? DeviceKind::cpu : DeviceKind::cuda;
  c.devices_per_host = static_cast<std::int32_t>(json.count("devices_per_host", kMostDevices));
  if (json.has("hosts")) c.hosts = static_cast<std::int32_t>(json.count("hosts", kMostDevices));
  c.ranks_share_device = json.boolean("ranks_share_device", false);
  c.streams_overlap = json.boolean("streams_overlap", true);
  if (c.device == DeviceKind::cpu) c.cores = static_cast<std::int32_t>(json.count("cores", 65'536));

  if (json.has("compute_capability")) c.card = read_card(json);
  if (json.has("device_memory_bytes")) c.device_memory = Bytes{json.count("device_memory_bytes", kMostBytes)};
  if (json.has("device_overhead_bytes")) c.device_overhead = Bytes{json.count("device_overhead_bytes", kMostBytes)};
  c.memory_bandwidth = BytesPerSecond{json.positive("memory_bandwidth_bytes_per_second")};
  c.memory_efficiency = json.share("memory_efficiency");
  c.peak_fp32 = FlopsPerSecond{json.positive("peak_fp32_flops_per_second")};
  for (const auto& [key, peak] :
       {std::pair{"peak_tf32_flops_per_second", &c.peak_tf32}, std::pair{"peak_bf16_flops_per_second", &c.peak_bf16},
        std::pair{"peak_fp16_flops_per_second", &c.peak_fp16}})
    if (json.has(key)) *peak = FlopsPerSecond{json.positive(key)};
  c.matrix_efficiency = json.share("matrix_efficiency");
  c.attention_efficiency = json.share("attention_efficiency");
  c.launch = Seconds{json.non_negative("launch_seconds")};

  if (json.has("host_memory_bytes")) c.host_memory = Bytes{json.count("host_memory_bytes", kMostBytes)};
  if (json.has("host_memory_bandwidth_bytes_per_second"))
    c.host_memory_bandwidth = BytesPerSecond{json.positive("host_memory_bandwidth_bytes_per_second")};
  if (json.has("host_link") || c.device == DeviceKind::cuda) c.host_link = read_host_link(json.object("host_link"));
  c.intra_host = read_link(json.object("intra_host_link"));
  if (json.has("inter_host_link")) c.inter_host = read_link(json.object("inter_host_link"));
  if (json.has("measured")) c.measured = read_measured(json.object("measured"));
  if (json.has("kernel_laws")) c.kernel_laws = read_kernel_laws(json.object("kernel_laws"));
  json.refuse_unknown_keys();
  return c;
}

/// "did you mean 'a100-40gb-x8' or 'a100-80gb-x8'?" of "A100"; empty where no name begins so.
std::string cards_named(std::string_view argument, const std::vector<std::string_view>& names) {
  std::string text;
  for (const std::string_view name : names)
    if (!argument.empty() && model::begins_with(name, std::string(argument) + "-"))
      text += (text.empty() ? "did you mean '" : "' or '") + std::string(name);
  return text.empty() ? text : text + "'?";
}

Error unknown_name(std::string_view argument) {
  std::vector<std::string_view> names;
  for (const ExampleCluster& example : example_clusters()) names.push_back(example.name);
  std::string what{argument};
  what += " is neither a known cluster nor a file";
  std::string help = cards_named(argument, names);
  if (help.empty()) help = model::did_you_mean(argument, names);
  if (!help.empty()) help += " ";
  help += "known: " + example_names() +
          ", each with another number of devices too (-x4); or give the path of a description "
          "(shardscope help machines)";
  return Error{Errc::usage, std::move(what), "--cluster", std::move(help)};
}

/// "a100-80gb-x4": a host of four of the devices that an example has another number of. A link inside a host is as the
/// example's: of GPUs behind NVLink switches, or of PCIe, as each has.
std::optional<Cluster> resized_example(std::string_view argument) {
  constexpr std::int32_t kMostInAHost = 64;
  const std::size_t x = argument.rfind("-x");
  if (x == std::string_view::npos) return std::nullopt;
  const std::string_view stem = argument.substr(0, x + 2);
  std::int32_t devices = 0;
  const char* const end = argument.data() + argument.size();
  const auto [at, fault] = std::from_chars(argument.data() + stem.size(), end, devices);
  if (fault != std::errc{} || at != end || devices < 1 || devices > kMostInAHost) return std::nullopt;
  for (const ExampleCluster& example : example_clusters()) {
    if (example.name.substr(0, example.name.rfind("-x") + 2) != stem) continue;
    Result<Cluster> cluster = parse_cluster(example.json, example.name);
    if (!cluster) return std::nullopt;
    cluster->name = argument;
    cluster->devices_per_host = devices;
    return *std::move(cluster);
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> cluster_names() {
  std::vector<std::string> names;
  for (const ExampleCluster& example : example_clusters()) names.emplace_back(example.name);
  return names;
}

std::string example_names() {
  std::string list;
  for (const std::string& name : cluster_names()) list.append(list.empty() ? "" : ", ").append(name);
  return list;
}

Result<Cluster> parse_cluster(std::string_view text, std::string_view file) {
  nlohmann::json json;
  try {
    json = nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& fault) {  // only parse() throws it here: parse_error or out_of_range
    return Error{Errc::malformed, std::string("is not JSON: ") + fault.what(), std::string(file), ""};
  }
  std::optional<Error> fault;
  JsonObject root(json, std::string(file), "", fault);
  Cluster cluster = read_fields(root);
  if (fault) return *std::move(fault);
  return cluster;
}

std::optional<fs::path> cluster_file(std::string_view argument) {
  for (const ExampleCluster& example : example_clusters())
    if (example.name == argument) return std::nullopt;
  return fs::path(argument);
}

Result<Cluster> read_cluster(std::string_view argument) {
  for (const ExampleCluster& example : example_clusters()) {
    if (example.name == argument) return parse_cluster(example.json, example.name);
  }
  if (std::optional<Cluster> resized = resized_example(argument)) return *std::move(resized);
  const fs::path path{argument};
  std::error_code fault;
  if (!fs::exists(path, fault) && !fault && argument.find('/') == std::string_view::npos &&
      !argument.ends_with(".json")) {
    return unknown_name(argument);
  }
  const Result<std::string> text = read_file(path, "cluster description", kLargestDescription);
  if (!text) return text.error();
  return parse_cluster(*text, path.string());
}

}  // namespace shard::cluster
