// A run as a training step, and its machine as a cluster.
#include "sim/validate/throughput.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace shard::validate {
namespace {

Error without(std::string what, std::string help) {
  return {.code = Errc::contradiction, .what = std::move(what), .where = {}, .help = std::move(help)};
}

step::Code code_of(const PublishedRun& run) {
  switch (run.code) {
    case Code::llm_foundry: return step::Code::llm_foundry;
    case Code::internevo: return step::Code::internevo;
    case Code::nanotron: return step::Code::nanotron;
    case Code::megatron:
    case Code::llm_c: return step::Code::megatron;
    case Code::hugging_face:
    case Code::torchtitan:
    case Code::litgpt:
    case Code::torchtune:
    case Code::fms:
    case Code::patrickstar:
    case Code::bmtrain:
    case Code::atorch: return step::Code::written_out;
  }
  return step::Code::written_out;
}

step::Float8 float8_of(const PublishedRun& run) {
  if (run.float8 == Float8::none) return step::Float8::none;
  if (run.float8 == Float8::four_bits) return step::Float8::four_bits;
  switch (run.float8_scales) {
    case Float8Scales::row: return step::Float8::per_row;
    case Float8Scales::block: return step::Float8::per_block;
    case Float8Scales::none:
    case Float8Scales::tensor: return step::Float8::per_tensor;
  }
  return step::Float8::per_tensor;
}

step::Recompute recompute_of(Recompute recompute) {
  switch (recompute) {
    case Recompute::none:
    case Recompute::other:
    case Recompute::attention: return step::Recompute::none;
    case Recompute::every_other_block: return step::Recompute::every_other_block;
    case Recompute::block: return step::Recompute::block;
    case Recompute::selective: return step::Recompute::selective;
  }
  return step::Recompute::none;
}

step::Loss loss_of(Loss loss) {
  switch (loss) {
    case Loss::eager: return step::Loss::eager;
    case Loss::one_pass: return step::Loss::one_pass;
    case Loss::compiled:
    case Loss::chunked:
    case Loss::fused: return step::Loss::fused;
  }
  return step::Loss::eager;
}

/// Bytes that an update moves for a parameter: parameter, gradient and two moments read, three written.
double optimizer_bytes(const PublishedRun& run) {
  if (run.precision == Precision::all_16_bit) return 14;
  if (run.code == Code::megatron) return 30;                     // and the parameter in 16 bits
  return run.optimizer_step == OptimizerStep::single ? 92 : 28;  // written out: each operator by itself
}

step::TrainingStep step_of(const PublishedRun& run) {
  step::TrainingStep s;
  const bool gated = run.family == Family::llama || run.family == Family::mistral || run.family == Family::qwen2 ||
                     run.family == Family::qwen3;
  s.model = {.layers = run.layers,
             .hidden = run.hidden,
             .heads = run.heads,
             .kv_heads = run.kv_heads,
             .head_size = run.head_dim,
             .ffn = run.ffn,
             .vocabulary = run.vocab,
             .tied = run.tied,
             .gated = gated,
             .query_key_norms = run.family == Family::qwen3};
  s.spread = {.ranks = run.ranks,
              .tensor = run.tensor,
              .pipeline = run.pipeline,
              .chunks = run.pipeline_chunks,
              .stage = static_cast<std::int32_t>(run.stage),
              .shard_ranks = run.shard_degree,
              .sequence_parallel = run.sequence_parallel,
              .gathers_again = run.reshard_after_forward,
              .asynchronous_tensor = run.asynchronous_tensor,
              .no_exchange = run.host_link == HostLink::none};
  s.code = code_of(run);
  s.compiled = run.fused_kernels;
  s.fused_norms = run.norms == Norms::fused;
  s.flash = run.attention == Attention::flash;
  s.attention = run.attention_kernel;
  if (run.compute_type == ComputeType::fp32 && !run.autocast) s.values = step::Values::fp32;
  s.float8 = float8_of(run);
  s.gathers_8_bits = run.float8 == Float8::gathered;
  s.recompute = recompute_of(run.recompute);
  s.loss = loss_of(run.loss);
  s.micro_batch = run.micro_batch, s.sequence = run.sequence, s.accumulation = run.accumulation;
  s.gathered_bytes = run.precision == Precision::fp32 ? 4 : 2;
  s.reduced_bytes = static_cast<double>(run.reduced_bits) / 8;
  s.optimizer_bytes = optimizer_bytes(run);
  s.copies_around_gathers = run.framework == Framework::fsdp2 || run.framework == Framework::graph_fsdp;
  return s;
}

/// Clocks under another power limit than the laws were measured at: by the cube root on an A100 in a PCIe slot
/// (products of SimuMax), nearly in proportion on later cards, whose products draw all that they may.
double clocks_at(std::int64_t watts, const cluster::Card& card) {
  const double usual = card.compute_capability >= 100 ? 1000 : card.compute_capability >= 90 ? 700 : 400;
  const double power = card.compute_capability >= 90 ? 0.8 : 1.0 / 3;
  return std::min(1.0, std::pow(static_cast<double>(watts) / usual, power));
}

}  // namespace

cluster::Cluster cluster_of(const PublishedRun& run, cluster::Cluster c) {
  if (run.ranks_per_host > 0) c.devices_per_host = static_cast<std::int32_t>(run.ranks_per_host);
  if (run.gpu == "h100-sxm-96") c.memory_bandwidth = BytesPerSecond{2.4e12};
  if (!c.kernel_laws) return c;
  cluster::ExchangeLaw& exchange = c.kernel_laws->exchange;
  const auto slow_down = [&](double share) {
    for (auto* list : {&exchange.gather, &exchange.all_reduce})
      for (cluster::NcclProtocol& p : *list) p.bandwidth = BytesPerSecond{p.bandwidth.count() * share};
  };
  if (run.gpu == "h800") slow_down(400.0 / 900);
  if (run.host_link_bytes_per_second > 0) slow_down(static_cast<double>(run.host_link_bytes_per_second) / 900e9);
  if (run.host_link == HostLink::pcie) {
    exchange = {};
    c.intra_host = {.base = Seconds{10e-6}, .latency = Seconds{3e-6}, .bus_bandwidth = BytesPerSecond{18e9}};
  }
  if (run.network_bytes_per_second > 0)
    c.inter_host = cluster::Link{
        .base = Seconds{20e-6},
        .latency = Seconds{4.5e-6},
        .bus_bandwidth = BytesPerSecond{static_cast<double>(run.network_bytes_per_second) * c.devices_per_host}};
  if (run.power_watts > 0 && c.card) c.kernel_laws->clock_share *= clocks_at(run.power_watts, *c.card);
  return c;
}

Result<Throughput> predict_throughput(const PublishedRun& run, const cluster::Cluster& machine) {
  if (run.adapter != Adapter::none || run.weight_bits == 4)
    return without("no laws of adapters of low rank", "a run that trains all parameters");
  if (run.offload_parameters || run.offload_optimizer || run.offload_activations)
    return without("no laws of what rests in host memory", "a run whose states rest on the device");
  if (run.mixture || run.context > 1)
    return without("no mixtures of experts and context parallelism", "a dense run without them");
  if (run.layers == 0 || run.hidden == 0 || run.sequence == 0 || run.heads == 0)
    return without("the model's sizes are not stated", "state them in their columns");
  if (run.family == Family::vision || run.family == Family::bert || run.family == Family::mlp)
    return without("no laws of a model that is no decoder", "a decoder");
  const step::TrainingStep step = step_of(run);
  const Result<step::StepTime> time = step::step_time(step, machine);
  if (!time) return time.error();
  return Throughput{.tokens_per_second = time->tokens_per_second,
                    .low = time->tokens_per_second_in(time->high),
                    .high = time->tokens_per_second_in(time->low),
                    .launch_bound = step::launch_bound(step)};
}

}  // namespace shard::validate
