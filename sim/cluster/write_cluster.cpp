// Every key that the reader knows, in the order of the table in examples/clusters/README.md.
#include "sim/cluster/write_cluster.h"

#include <nlohmann/json.hpp>

#include "sim/cluster/read_cluster.h"
#include "sim/cluster/read_kernel_laws.h"

namespace shard::cluster {
namespace {

using Json = nlohmann::ordered_json;

Json link_json(const Link& link) {
  return {{"base_seconds", link.base.count()},
          {"latency_seconds", link.latency.count()},
          {"bus_bandwidth_bytes_per_second", link.bus_bandwidth.count()}};
}

Json law_json(const OpLaw& law) {
  Json j{{"kind", law.kind},
         {"dtype", to_string(law.dtype)},
         {"call_seconds", law.call_seconds},
         {"flop_seconds", law.flop_seconds},
         {"weight_byte_seconds", law.weight_byte_seconds},
         {"byte_seconds", law.byte_seconds},
         {"samples", law.samples},
         {"median_error", law.median_error},
         {"corrections", Json::array()}};
  for (const Correction& c : law.corrections)
    j["corrections"].push_back({{"moved_bytes", c.moved_bytes}, {"factor", c.factor}});
  return j;
}

Json measured_json(const Measured& measured) {
  Json j{{"method", measured.method}};
  if (measured.step_error > 0) j["step_error"] = measured.step_error;
  for (const Figure& f : measured.figures)
    j["figures"].push_back({{"name", f.name}, {"value", f.value}, {"unit", f.unit}, {"method", f.method}});
  j["occupancies"] = Json::array();
  for (const Occupancy& o : measured.occupancies) {
    Json each{{"ranks", o.ranks},
              {"threads", o.threads},
              {"between_seconds", o.between_seconds},
              {"meeting_seconds", o.meeting_seconds},
              {"waiting_share", o.waiting_share},
              {"laws", Json::array()}};
    for (const OpLaw& law : o.laws) each["laws"].push_back(law_json(law));
    j["occupancies"].push_back(std::move(each));
  }
  return j;
}

void add_peaks(Json& j, const Cluster& c) {
  j["memory_bandwidth_bytes_per_second"] = c.memory_bandwidth.count();
  j["memory_efficiency"] = c.memory_efficiency;
  j["peak_fp32_flops_per_second"] = c.peak_fp32.count();
  if (c.peak_tf32) j["peak_tf32_flops_per_second"] = c.peak_tf32->count();
  if (c.peak_bf16) j["peak_bf16_flops_per_second"] = c.peak_bf16->count();
  if (c.peak_fp16) j["peak_fp16_flops_per_second"] = c.peak_fp16->count();
  j["matrix_efficiency"] = c.matrix_efficiency;
  j["attention_efficiency"] = c.attention_efficiency;
  j["launch_seconds"] = c.launch.count();
}

}  // namespace

std::string to_json(const Cluster& c) {
  Json j{{"schema_version", kSchemaVersion},
         {"name", c.name},
         {"source", c.source},
         {"device", to_string(c.device)},
         {"devices_per_host", c.devices_per_host}};
  if (c.hosts) j["hosts"] = *c.hosts;
  j["ranks_share_device"] = c.ranks_share_device;
  j["streams_overlap"] = c.streams_overlap;
  if (c.device == DeviceKind::cpu) j["cores"] = c.cores;
  if (c.card) {
    j["compute_capability"] = c.card->compute_capability / 10.0;
    j["multiprocessors"] = c.card->multiprocessors;
    j["threads_per_multiprocessor"] = c.card->threads_per_multiprocessor;
  }
  if (c.device_memory) j["device_memory_bytes"] = c.device_memory->count();
  if (c.device_overhead > Bytes{0}) j["device_overhead_bytes"] = c.device_overhead.count();
  add_peaks(j, c);
  if (c.host_memory) j["host_memory_bytes"] = c.host_memory->count();
  if (c.host_memory_bandwidth) j["host_memory_bandwidth_bytes_per_second"] = c.host_memory_bandwidth->count();
  if (c.host_link)
    j["host_link"] = {{"latency_seconds", c.host_link->latency.count()},
                      {"bandwidth_bytes_per_second", c.host_link->bandwidth.count()}};
  j["intra_host_link"] = link_json(c.intra_host);
  if (c.inter_host) j["inter_host_link"] = link_json(*c.inter_host);
  if (c.measured) j["measured"] = measured_json(*c.measured);
  if (c.kernel_laws) j["kernel_laws"] = kernel_laws_json(*c.kernel_laws);
  return j.dump(2) + '\n';
}

}  // namespace shard::cluster
