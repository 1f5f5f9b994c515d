// A run as a strategy of our own executor, simulated.
#include "sim/validate/throughput.h"

#include <memory>
#include <string>

#include "sim/compile/compile.h"
#include "sim/engine/simulate.h"
#include "sim/model/config.h"

namespace shard::validate {
namespace {

std::string config_of(const Architecture& m) {
  const auto field = [](const char* key, std::int64_t value) {
    return std::string(",\"") + key + "\":" + std::to_string(value);
  };
  if (m.gated)
    return R"({"model_type":"llama")" + field("num_hidden_layers", m.layers) + field("hidden_size", m.hidden) +
           field("num_attention_heads", m.heads) + field("num_key_value_heads", m.kv_heads) +
           field("intermediate_size", m.ffn) + field("vocab_size", m.vocab) +
           field("max_position_embeddings", m.sequence) + R"(,"tie_word_embeddings":)" + (m.tied ? "true" : "false") +
           "}";
  return R"({"model_type":"gpt2")" + field("n_layer", m.layers) + field("n_embd", m.hidden) + field("n_head", m.heads) +
         field("n_inner", m.ffn) + field("vocab_size", m.vocab) + field("n_positions", m.sequence) + "}";
}

plan::Strategy strategy_of(const RunDescription& run, std::int64_t accumulation) {
  plan::Strategy s;
  s.world_size = static_cast<std::int32_t>(run.ranks);
  s.tensor_parallel = static_cast<std::int32_t>(run.tensor);
  s.stage = run.stage;
  s.device = plan::Device::cuda;
  s.micro_batch = run.micro_batch;
  s.global_batch = run.micro_batch * s.data_parallel() * accumulation;
  s.sequence = run.model.sequence;
  s.precision = run.precision == Precision::fp32 ? plan::Precision::fp32
                : run.fp16                       ? plan::Precision::fp16
                                                 : plan::Precision::bf16;
  s.reproducible = false;
  s.transport = plan::Transport::messages;
  switch (run.recompute) {
    case Recompute::none:
    case Recompute::attention: s.recompute = plan::Recompute::none; break;
    case Recompute::every_other_block:
    case Recompute::block: s.recompute = plan::Recompute::block; break;
    case Recompute::every_other_product: s.recompute = plan::Recompute::selective; break;
  }
  if (run.shard_degree > 0 && run.shard_degree < s.data_parallel() && s.data_parallel() % run.shard_degree == 0)
    s.shard_group = static_cast<std::int32_t>(run.shard_degree);
  return s;
}

Result<double> step_seconds(const RunDescription& run, const cluster::Cluster& machine, std::int64_t accumulation) {
  const auto parsed = model::parse_config(config_of(run.model), run.model.name, "row");
  if (!parsed) return parsed.error();
  const auto plans = plan::compile(std::make_shared<const model::Model>(parsed->model), strategy_of(run, accumulation),
                                   plan::MicroSteps::folded);
  if (!plans) return plans.error();
  const auto simulation =
      engine::simulate(*plans, machine, {.steps = 2, .device_capacity = Bytes{INT64_C(1) << 60}, .series = false});
  if (!simulation) return simulation.error();
  return simulation->step_seconds.count();
}

}  // namespace

Result<double> predict_throughput(const RunDescription& run, const cluster::Cluster& machine) {
  if (run.float8 != Float8::none || !run.trains_all || run.offload_parameters || run.offload_optimizer)
    return Error{.code = Errc::contradiction,
                 .what = "the simulator prices no 8-bit products, adapters or offloading of this kind",
                 .where = {},
                 .help = "a run in 16 bits whose states rest on the device"};
  if (machine.inter_host == std::nullopt && run.ranks > machine.devices_per_host)
    return Error{.code = Errc::contradiction,
                 .what = "'" + machine.name + "' is one host",
                 .where = {},
                 .help = "a cluster with a link between hosts"};
  const Result<double> one = step_seconds(run, machine, 1);
  if (!one) return one.error();
  double seconds = *one;
  if (run.accumulation > 1) {
    const Result<double> two = step_seconds(run, machine, 2);
    if (!two) return two.error();
    seconds += static_cast<double>(run.accumulation - 1) * (*two - *one);
  }
  return static_cast<double>(run.micro_batch * run.model.sequence * run.accumulation) /
         static_cast<double>(run.tensor) / seconds;
}

}  // namespace shard::validate
