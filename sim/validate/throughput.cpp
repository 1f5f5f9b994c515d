// A run as a strategy of our own executor, simulated.
#include "sim/validate/throughput.h"

#include <memory>
#include <string>
#include <utility>

#include "sim/compile/compile.h"
#include "sim/engine/simulate.h"
#include "sim/validate/model_of.h"

namespace shard::validate {
namespace {

Error without(std::string what, std::string help) {
  return {.code = Errc::contradiction, .what = std::move(what), .where = {}, .help = std::move(help)};
}

plan::Strategy timed_strategy_of(const PublishedRun& run, std::int64_t accumulation) {
  plan::Strategy s;
  s.world_size = static_cast<std::int32_t>(run.ranks);
  s.tensor_parallel = static_cast<std::int32_t>(run.tensor);
  s.stage = static_cast<std::int32_t>(run.stage);
  s.device = plan::Device::cuda;
  s.micro_batch = run.micro_batch;
  s.global_batch = run.micro_batch * s.data_parallel() * accumulation;
  s.sequence = run.sequence;
  switch (run.compute_type) {
    case ComputeType::fp32: s.precision = plan::Precision::fp32; break;
    case ComputeType::bf16: s.precision = plan::Precision::bf16; break;
    case ComputeType::fp16: s.precision = plan::Precision::fp16; break;
  }
  s.reproducible = false;
  s.transport = plan::Transport::messages;
  switch (run.recompute) {
    case Recompute::none:
    case Recompute::other:
    case Recompute::attention: s.recompute = plan::Recompute::none; break;
    case Recompute::every_other_block:
    case Recompute::block: s.recompute = plan::Recompute::block; break;
    case Recompute::selective: s.recompute = plan::Recompute::selective; break;
  }
  if (run.shard_degree > 0 && run.shard_degree < s.data_parallel() && s.data_parallel() % run.shard_degree == 0)
    s.shard_group = static_cast<std::int32_t>(run.shard_degree);
  return s;
}

Result<double> step_seconds(const PublishedRun& run, const cluster::Cluster& machine, std::int64_t accumulation) {
  PublishedRun timed = run;
  if (run.family == Family::qwen3) timed.family = Family::llama;  // of which --tensor-parallel knows the halves
  const auto model = model_of(timed);
  if (!model) return model.error();
  const auto plans = plan::compile(*model, timed_strategy_of(run, accumulation), plan::MicroSteps::folded);
  if (!plans) return plans.error();
  const auto simulation =
      engine::simulate(*plans, machine, {.steps = 2, .device_capacity = Bytes{INT64_C(1) << 60}, .series = false});
  if (!simulation) return simulation.error();
  return simulation->step_seconds.count();
}

}  // namespace

Result<double> predict_throughput(const PublishedRun& run, const cluster::Cluster& machine) {
  if (run.float8 != Float8::none || run.adapter != Adapter::none || run.offload_parameters || run.offload_optimizer)
    return without("the simulator prices no 8-bit products, adapters or offloading of this kind",
                   "a run in 16 bits whose states rest on the device");
  if (run.mixture || run.pipeline > 1 || run.context > 1)
    return without("no mixtures of experts, pipelines and context parallelism", "a dense run without them");
  if (run.layers == 0 || run.hidden == 0 || run.sequence == 0)
    return without("the model's sizes are not stated", "state them in their columns");
  if (machine.inter_host == std::nullopt && run.ranks > machine.devices_per_host)
    return without("'" + machine.name + "' is one host", "a cluster with a link between hosts");
  const Result<double> one = step_seconds(run, machine, 1);
  if (!one) return one.error();
  double seconds = *one;
  if (run.accumulation > 1) {
    const Result<double> two = step_seconds(run, machine, 2);
    if (!two) return two.error();
    seconds += static_cast<double>(run.accumulation - 1) * (*two - *one);
  }
  return static_cast<double>(run.micro_batch * run.sequence * run.accumulation) / static_cast<double>(run.tensor) /
         seconds;
}

}  // namespace shard::validate
