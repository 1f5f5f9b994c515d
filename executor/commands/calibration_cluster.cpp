// Samples to a cluster: of this machine's cores, or of its GPUs.
#include <algorithm>
#include <functional>

#include "executor/commands/calibration_result.h"

namespace shard::commands {
namespace {

/// Smaller ops lie in caches, and their calls cost more than their bytes.
constexpr double kLargeBytes = 4 << 20;

/// Of all cores busy, else of what there is most of.
const OccupancySamples& fullest(std::span<const OccupancySamples> samples) {
  return *std::ranges::max_element(
      samples, {}, [](const OccupancySamples& o) { return std::pair(std::int64_t{o.ranks} * o.threads, o.ranks); });
}

/// The best rate of `amount` over the samples that it is positive for; `otherwise` where there is none.
double best_rate(const OccupancySamples& from, double otherwise,
                 const std::function<double(const cost::OpSample&)>& amount) {
  double best = 0;
  for (const cost::OpSample& s : from.ops)
    if (s.seconds > 0) best = std::max(best, from.ranks * amount(s) / s.seconds);
  return best > 0 ? best : otherwise;
}

bool begins(const cost::OpSample& s, const char* name) {
  return to_string(s.kind).starts_with(name);
}

/// Of the laws, on any device.
constexpr const char* kLaws =
    " Each kind of op has one law per type: t = (call + flops x flop + bytes of parameters x weight_byte + other bytes "
    "x byte), by least squares of relative errors without negative terms, times the median of measured over law at the "
    "op's size.";
constexpr const char* kCpuMethod =
    "Trainings of five small models, each by strategies that bring every kind of op, run as 'shardscope train' runs "
    "them, in turn and again as long as time was left. An op's time is the lower quartile over steady steps, "
    "repetitions and ranks of its traced span (of a collective: while data moved), since disturbances only add.";
constexpr const char* kCpuBeside =
    " between_seconds, meeting_seconds and waiting_share are what the median step took beside its ops: between two "
    "ops, at each collective until the others had come, and as a share of the ops, by least squares.";
constexpr const char* kGpuMethod =
    "Trainings of small models by one rank and by several, run as 'shardscope train --device cuda' "
    "runs them, in turn and again as long as time was left. An op's time is the lower quartile over steady steps, "
    "repetitions and ranks of the time between the events around it, in a run that is traced and so launches op by op. "
    "Ops on host memory alone, copies within a memory and products in tf32 have no law.";
constexpr const char* kGpuBeside =
    " between_seconds and waiting_share are what the median step of one rank took beside its ops, in a run that is not "
    "traced and so launches graphs: between two ops, and as a share of the ops, by least squares.";

constexpr const char* kMeansNothing =
    "Of an emulated GPU: these figures mean nothing, they only show that a calibration comes to its end. ";

cluster::Measured measured_of(std::span<const OccupancySamples> samples, std::string method) {
  cluster::Measured measured{.method = std::move(method), .figures = {}, .occupancies = {}};
  for (const OccupancySamples& o : samples) {
    const cost::BesideOps beside = cost::beside_ops(o.steps);
    measured.occupancies.push_back({.ranks = o.ranks,
                                    .threads = o.threads,
                                    .between_seconds = beside.between_seconds,
                                    .meeting_seconds = beside.meeting_seconds,
                                    .waiting_share = beside.waiting_share,
                                    .laws = cost::laws_of(o.ops)});
  }
  return measured;
}

std::function<double(const cost::OpSample&)> flops_of(const char* name, Dtype dtype) {
  return [name, dtype](const cost::OpSample& s) { return begins(s, name) && s.dtype == dtype ? s.work.flops : 0.0; };
}

/// What is divided by, or told to be more than nothing, must be so in a file.
double positive(double value) {
  constexpr double kNothing = 1;
  return value > 0 ? value : kNothing;
}

}  // namespace

cluster::Cluster cluster_of(std::span<const OccupancySamples> samples, const Machine& machine) {
  const OccupancySamples& all = fullest(samples);
  cluster::Cluster c;
  c.name = "calibrated-cpu";
  c.source = "measured by 'shardscope calibrate' on " + machine.date + ": " + std::to_string(machine.cores) +
             " cores of " + machine.processor +
             ". Peaks are the best that products, and memory bandwidth what optimizer "
             "steps of more than 4 MiB, reached with all cores busy; the link is what gathers reached.";
  c.device = cluster::DeviceKind::cpu;
  c.hosts = 1;
  c.ranks_share_device = true;
  c.streams_overlap = false;
  c.cores = machine.cores;
  const double product = best_rate(all, 1e9, flops_of("linear ", Dtype::f32));
  c.peak_fp32 = FlopsPerSecond{product};
  c.peak_bf16 = FlopsPerSecond{best_rate(all, product, flops_of("linear ", Dtype::bf16))};
  c.attention_efficiency = std::min(1.0, best_rate(all, product, flops_of("attention ", Dtype::f32)) / product);
  c.memory_bandwidth = BytesPerSecond{best_rate(all, 1e9, [](const cost::OpSample& s) {
    return begins(s, "adam") && s.work.bytes > kLargeBytes ? s.work.bytes : 0.0;
  })};
  const cost::BesideOps beside = cost::beside_ops(all.steps);
  c.launch = Seconds{beside.between_seconds};
  c.intra_host.base = Seconds{beside.meeting_seconds};
  c.intra_host.bus_bandwidth =
      BytesPerSecond{best_rate(all, c.memory_bandwidth.count() / 2,
                               [](const cost::OpSample& s) { return begins(s, "all_gather") ? s.work.bytes : 0.0; }) /
                     all.ranks};
  c.measured = measured_of(samples, std::string(kCpuMethod) + kLaws + kCpuBeside);
  return c;
}

cluster::Cluster cluster_of(std::span<const OccupancySamples> samples, const Machine& machine,
                            const DeviceFigures& device) {
  const bool emulated = device.facts.emulated;
  const std::string means = emulated ? kMeansNothing : "";
  cluster::Cluster c;
  c.name = emulated ? "calibrated-emulated-gpu" : "calibrated-gpu";
  c.source =
      means + "Measured by 'shardscope calibrate --device " + (emulated ? "emulated-cuda" : "cuda") + "' on " +
      machine.date + ": " + std::to_string(device.devices) + " x " + device.facts.name + ", host with " +
      std::to_string(machine.cores) + " cores of " + machine.processor +
      ". Peaks are the best products, memory bandwidth the best of kernels that move data, the host's link the "
      "slower way of pinned copies; intra_host_link is that " +
      (device.between ? "between GPUs, over NCCL. " : "of two ranks that share a device. ") +
      "device_memory_bytes "
      "is without the context and the matrix library, device_overhead_bytes what these take. 'figures' has each with "
      "its method.";
  c.device = cluster::DeviceKind::cuda;
  c.devices_per_host = device.devices;
  c.hosts = 1;
  c.ranks_share_device = !device.between;
  if (device.facts.threads_per_multiprocessor > 0)
    c.card = cluster::Card{.compute_capability = device.facts.compute_capability,
                           .multiprocessors = device.facts.multiprocessors,
                           .threads_per_multiprocessor = device.facts.threads_per_multiprocessor};
  c.device_memory = device.memory;
  c.device_overhead = device.facts.memory - device.memory;
  c.memory_bandwidth = BytesPerSecond{positive(device.memory_bandwidth)};
  const cuda::ProductRates& products = device.products;
  c.peak_fp32 = FlopsPerSecond{positive(products.f32)};
  c.peak_tf32 = FlopsPerSecond{positive(products.tf32)};
  c.peak_bf16 = FlopsPerSecond{positive(products.bf16)};
  c.peak_fp16 = FlopsPerSecond{positive(products.f16)};
  for (const OccupancySamples& o : samples)
    if (o.ranks == 1 && products.bf16 > 0)
      c.attention_efficiency =
          std::min(1.0, best_rate(o, products.bf16, flops_of("attention ", Dtype::bf16)) / products.bf16);
  c.launch = Seconds{device.launches.graph};
  c.host_memory = device.host_memory;
  c.host_memory_bandwidth = BytesPerSecond{positive(device.host_bandwidth)};
  c.host_link = cluster::HostLink{.latency = Seconds{device.copies.latency},
                                  .bandwidth = BytesPerSecond{positive(device.copies.each_way)}};
  c.intra_host = device.between.value_or(cluster::Link{.base = Seconds{device.collectives.latency},
                                                       .latency = Seconds{0},
                                                       .bus_bandwidth = BytesPerSecond{device.collectives.bandwidth}});
  c.intra_host.bus_bandwidth = BytesPerSecond{positive(c.intra_host.bus_bandwidth.count())};
  c.measured = measured_of(samples, means + kGpuMethod + kLaws + kGpuBeside);
  for (const cuda::Measurement& m : device.all)
    c.measured->figures.push_back({.name = m.name, .value = m.value, .unit = m.unit, .method = means + m.method});
  return c;
}

}  // namespace shard::commands
