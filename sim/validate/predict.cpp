// Typed settings to the options of `simulate --like`, whose answer is the prediction.
#include "sim/validate/predict.h"

#include <algorithm>
#include <utility>

#include "sim/like/simulate_eager.h"
#include "sim/validate/model_of.h"

namespace shard::validate {
namespace {

std::optional<like::eager::Framework> rules_of(Framework framework) {
  switch (framework) {
    case Framework::pytorch: return like::eager::Framework::none;
    case Framework::fsdp1: return like::eager::Framework::fsdp1;
    case Framework::fsdp2: return like::eager::Framework::fsdp2;
    case Framework::deepspeed: return like::eager::Framework::deepspeed;
    case Framework::megatron: return like::eager::Framework::megatron;
    case Framework::ddp:
    case Framework::graph_fsdp:
    case Framework::low_level_zero:
    case Framework::gemini:
    case Framework::other: return std::nullopt;
  }
  return std::nullopt;
}

/// Whether somebody's model code is that of the rules.
bool is_known_code(const PublishedRun& run) {
  if (run.framework == Framework::megatron) return run.code == Code::megatron;
  return run.code == Code::hugging_face || run.code == Code::torchtitan;
}

/// What the options have no word for.
std::optional<NotPredicted> without_words(const PublishedRun& r) {
  if (r.mixture) return NotPredicted::mixture;
  if (r.family == Family::vision || r.family == Family::bert || r.family == Family::mlp)
    return NotPredicted::no_decoder;
  if (r.layers == 0 || r.hidden == 0 || r.sequence == 0) return NotPredicted::sizes;
  if (r.pipeline > 1) return NotPredicted::pipeline;
  if (r.context > 1) return NotPredicted::context;
  if (!rules_of(r.framework)) return NotPredicted::framework;
  if (!is_known_code(r)) return NotPredicted::code;
  const bool torchtitan = r.code == Code::torchtitan;
  if (r.compile == Compile::model || (r.compile == Compile::block && !torchtitan)) return NotPredicted::compile;
  if (r.recompute != Recompute::none && r.recompute != Recompute::block && r.recompute != Recompute::selective)
    return NotPredicted::recompute;
  // A compiled block's copies in 8 bits live within its graphs: what it keeps is what it keeps in 16.
  const bool within_graphs = r.compile == Compile::block && r.float8 != Float8::four_bits;
  if (r.float8 != Float8::none && !within_graphs) return NotPredicted::float8;
  if (r.adapter != Adapter::none || r.weight_bits == 4) return NotPredicted::adapter;
  if (r.optimizer_bits != 32 || r.optimizer_step == OptimizerStep::in_backward) return NotPredicted::optimizer;
  if (r.offload_activations || r.offload_optimizer || r.offload_parameters) return NotPredicted::offload;
  if (r.loss != Loss::eager && !(torchtitan && r.loss == Loss::compiled) && r.framework != Framework::megatron)
    return NotPredicted::loss;
  return std::nullopt;
}

plan::Precision computed_in(const PublishedRun& run) {
  switch (run.compute_type) {
    case ComputeType::fp32: return plan::Precision::fp32;
    case ComputeType::bf16: return plan::Precision::bf16;
    case ComputeType::fp16: return plan::Precision::fp16;
  }
  return plan::Precision::fp32;
}

plan::Strategy strategy_of(const PublishedRun& run) {
  plan::Strategy s;
  s.world_size = static_cast<std::int32_t>(run.ranks);
  s.tensor_parallel = static_cast<std::int32_t>(run.tensor);
  s.stage = static_cast<std::int32_t>(run.stage);
  if (s.stage == 3 && !run.reshard_after_forward) s.stage = 2;
  s.device = plan::Device::cuda;
  s.micro_batch = run.micro_batch;
  s.global_batch = run.micro_batch * s.data_parallel() * run.accumulation;
  s.sequence = run.sequence;
  s.precision = run.autocast ? plan::Precision::fp32 : computed_in(run);
  s.optimizer = run.optimizer == Optimizer::adam ? plan::OptimizerKind::adam : plan::OptimizerKind::adamw;
  if (run.recompute == Recompute::block) s.recompute = plan::Recompute::block;
  if (run.recompute == Recompute::selective) s.recompute = plan::Recompute::selective;
  if (run.shard_degree < s.data_parallel() && s.data_parallel() % run.shard_degree == 0)
    s.shard_group = static_cast<std::int32_t>(run.shard_degree);
  return s;
}

like::EagerOptions options_of(const PublishedRun& run, const RunMachine& machine, Bytes outside) {
  like::EagerOptions o{.framework = *rules_of(run.framework)};
  if (run.code == Code::torchtitan) o.code = like::eager::Code::torchtitan;
  o.torchtitan = {.fused_norms = run.norms == Norms::fused,
                  .ends_apart = run.wrapping == Wrapping::block_and_ends,
                  .compiled = run.compile == Compile::block,
                  .compiled_loss = run.loss == Loss::compiled,
                  .keeps_attention = run.recompute_keeps_attention};
  o.masters = run.precision != Precision::all_16_bit;
  o.autocast = run.autocast;
  o.attention = run.attention == Attention::eager ? like::eager::Attention::eager : like::eager::Attention::sdpa;
  o.sequence_parallel = run.sequence_parallel;
  if (run.optimizer_step == OptimizerStep::fused) o.update = like::eager::Update::fused;
  if (run.optimizer_step == OptimizerStep::single) o.update = like::eager::Update::for_loop;
  if (machine.card)
    o.machine = {.compute_capability = machine.card->compute_capability,
                 .multiprocessors = machine.card->multiprocessors,
                 .threads_per_multiprocessor = machine.card->threads_per_multiprocessor};
  if (machine.device_memory) o.device_capacity = *machine.device_memory - outside;
  o.allocator.expandable = run.expandable_segments;
  return o;
}

}  // namespace

Word word(NotPredicted v) {
  switch (v) {
    case NotPredicted::mixture: return {"mixture", "a mixture of experts"};
    case NotPredicted::no_decoder: return {"no_decoder", "a model that is no decoder"};
    case NotPredicted::sizes: return {"sizes", "sizes that are not stated"};
    case NotPredicted::pipeline: return {"pipeline", "pipeline parallelism"};
    case NotPredicted::context: return {"context", "context parallelism"};
    case NotPredicted::framework: return {"framework", "a framework without rules"};
    case NotPredicted::code: return {"code", "model code without rules"};
    case NotPredicted::compile: return {"compile", "compiled code"};
    case NotPredicted::recompute: return {"recompute", "a policy of recomputation without rules"};
    case NotPredicted::float8: return {"float8", "products in 8 or 4 bits"};
    case NotPredicted::adapter: return {"adapter", "adapters of low rank"};
    case NotPredicted::optimizer: return {"optimizer", "an optimizer in 8 bits or in backward"};
    case NotPredicted::offload: return {"offload", "what rests in host memory"};
    case NotPredicted::loss: return {"loss", "a loss without rules"};
    case NotPredicted::rules: return {"rules", "an option that the framework's rules lack"};
  }
  return {};
}

Bytes Prediction::of(MemoryKind kind) const {
  switch (kind) {
    case MemoryKind::allocated: return allocated;
    case MemoryKind::active: return active;
    case MemoryKind::reserved: return reserved;
    case MemoryKind::nvidia_smi: return reserved + outside;
    case MemoryKind::states: return states;
    case MemoryKind::not_stated: return allocated;
  }
  return allocated;
}

Predicted predict(const PublishedRun& run, const RunMachine& machine) {
  if (const auto reason = without_words(run)) return {.memory = std::nullopt, .reason = *reason, .detail = {}};
  const auto model = model_of(run);
  if (!model) return {.memory = std::nullopt, .reason = NotPredicted::sizes, .detail = model.error().what};
  const Bytes outside = outside_allocator(run, machine);
  const Result<like::LikeResult> like =
      like::simulate_eager(*model, strategy_of(run), options_of(run, machine, outside));
  if (!like) return {.memory = std::nullopt, .reason = NotPredicted::rules, .detail = like.error().what};
  return {.memory = Prediction{.states = like->statistics.allocated.current,
                               .allocated = like->peak_allocated(),
                               .active = std::max(like->statistics.active.peak, like->peak_allocated()),
                               .reserved = like->peak_reserved(),
                               .outside = outside,
                               .fits = like->fits},
          .reason = NotPredicted::rules,
          .detail = {}};
}

}  // namespace shard::validate
