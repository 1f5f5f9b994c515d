// What is the step's to know of a model, a strategy and a framework's options.
#include "sim/like/like_step.h"

#include <cmath>
#include <string>
#include <utility>

namespace shard::like {
namespace {

Error no_laws(std::string of, std::string help) {
  return {.code = Errc::contradiction,
          .what = "no laws are known of " + std::move(of),
          .where = "the step's time",
          .help = std::move(help)};
}

/// Two products in the feed-forward or three, as the model's number of parameters has it.
Result<step::ModelSizes> sizes_of(const model::Model& m) {
  constexpr double kNormsAndBiases = 0.03;
  step::ModelSizes sizes{.layers = m.layers,
                         .hidden = m.hidden,
                         .heads = m.heads,
                         .kv_heads = m.kv_heads,
                         .head_size = m.head_dim,
                         .ffn = m.intermediate,
                         .vocabulary = m.vocabulary,
                         .tied = m.tied_embeddings};
  const auto all = static_cast<double>(m.parameter_elements());
  if (m.layers > 0 && m.heads > 0)
    for (const bool gated : {true, false}) {
      sizes.gated = gated;
      if (std::abs(sizes.parameters() / all - 1) < kNormsAndBiases) return sizes;
    }
  return no_laws(
      "blocks like those of '" + m.name + "': its parameters are not those of a decoder's attention and feed-forward",
      "a dense decoder, such as llama, mistral, qwen or gpt2");
}

step::Spread spread_of(const plan::Strategy& s, const EagerOptions& o) {
  step::Spread spread{.ranks = s.world_size,
                      .tensor = s.tensor_parallel,
                      .stage = s.stage,
                      .shard_ranks = s.shard_degree(),
                      .sequence_parallel = o.sequence_parallel,
                      .gathers_again = !s.keep_gathered};
  // FSDP of stage 2 gathers as 3 does and keeps what it has gathered until backward is done.
  const bool fsdp = o.framework == eager::Framework::fsdp1 || o.framework == eager::Framework::fsdp2;
  if (fsdp && s.stage == 2) spread.stage = 3, spread.gathers_again = false;
  return spread;
}

cluster::AttentionKernel kernel_of(const EagerOptions& o, const cluster::Cluster& cluster) {
  constexpr std::int32_t kBlackwell = 100;
  const bool newest = o.code == eager::Code::torchtitan || o.framework == eager::Framework::megatron ||
                      (cluster.card && cluster.card->compute_capability >= kBlackwell);
  return newest ? cluster::AttentionKernel::newest : cluster::AttentionKernel::flash_2;
}

step::Recompute recompute_of(plan::Recompute recompute) {
  switch (recompute) {
    case plan::Recompute::none: return step::Recompute::none;
    case plan::Recompute::block: return step::Recompute::block;
    case plan::Recompute::selective: return step::Recompute::selective;
  }
  return step::Recompute::none;
}

step::Values values_of(const plan::Strategy& s, const EagerOptions& o) {
  if (o.autocast || s.precision == plan::Precision::bf16 || s.precision == plan::Precision::fp16)
    return step::Values::bits_16;
  return s.precision == plan::Precision::tf32 ? step::Values::tf32 : step::Values::fp32;
}

double reduced_bytes(const EagerOptions& o, step::Values values) {
  if (values != step::Values::bits_16) return 4;
  if (o.framework == eager::Framework::megatron) return 4;
  if (o.framework == eager::Framework::deepspeed) return 2;
  return o.masters || o.autocast ? 4 : 2;
}

/// Bytes that an update moves for a parameter; what is not fused moves each value several times.
double optimizer_bytes(const EagerOptions& o, step::Values values) {
  const bool fp32 = o.masters || o.autocast || values != step::Values::bits_16;
  if (o.framework == eager::Framework::megatron || o.framework == eager::Framework::deepspeed) return 30;
  if (o.update == eager::Update::fused) return fp32 ? 28 : 14;
  return fp32 ? 92 : 46;
}

}  // namespace

Result<step::StepTime> eager_step_time(const model::Model& model, const plan::Strategy& s, const EagerOptions& o,
                                       const cluster::Cluster& cluster) {
  if (s.placement != plan::Placement{})
    return no_laws("what rests in host memory", "a run whose states rest on the device");
  const Result<step::ModelSizes> sizes = sizes_of(model);
  if (!sizes) return sizes.error();
  const bool torchtitan = o.code == eager::Code::torchtitan, megatron = o.framework == eager::Framework::megatron;
  step::TrainingStep step;
  step.model = *sizes;
  step.values = values_of(s, o);
  step.spread = spread_of(s, o);
  step.code = megatron ? step::Code::megatron : step::Code::written_out;
  step.compiled = torchtitan && o.torchtitan.compiled;
  step.fused_norms = !sizes->gated || (torchtitan && o.torchtitan.fused_norms);
  step.flash = o.attention != eager::Attention::eager;
  step.attention = kernel_of(o, cluster);
  step.recompute = recompute_of(s.recompute);
  step.loss = megatron || (torchtitan && o.torchtitan.compiled_loss) ? step::Loss::fused : step::Loss::eager;
  step.micro_batch = s.micro_batch;
  step.sequence = s.sequence;
  step.accumulation = std::max<std::int64_t>(1, s.global_batch / (s.micro_batch * s.data_parallel()));
  step.gathered_bytes = o.autocast && o.masters ? 4 : step.value_bytes();
  step.reduced_bytes = reduced_bytes(o, step.values);
  step.optimizer_bytes = optimizer_bytes(o, step.values);
  step.copies_around_gathers = o.framework == eager::Framework::fsdp2;
  return step::step_time(step, cluster);
}

}  // namespace shard::like
