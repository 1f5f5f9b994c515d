// Words of a row to a run.
#include "sim/validate/run_description.h"

#include <cstdlib>

#include "sim/validate/architecture.h"
#include "sim/validate/machine.h"
#include "sim/validate/text.h"

namespace shard::validate {
namespace {

Error no_model(std::string why, std::string help) {
  return {.code = Errc::contradiction, .what = std::move(why), .where = {}, .help = std::move(help)};
}

Result<Framework> framework_of(const PublishedRun& run) {
  const std::string_view f = run.framework;
  if (holds(f, "graph_trainer") || holds(f, "simplefsdp") || holds(f, "compiler_toolkit")) return Framework::graph_fsdp;
  if (holds(f, "fsdp2") || holds(run.sharding, "fsdp2") || holds(run.sharding, "megatron-fsdp"))
    return Framework::fsdp2;
  if (holds(f, "patrickstar") || holds(run.sharding, "gemini") || holds(run.sharding, "chunk"))
    return Framework::gemini;
  if (holds(f, "colossalai")) return Framework::colossal;
  if (holds(f, "deepspeed") || holds(f, "bmtrain")) return Framework::deepspeed;
  if (holds(f, "megatron") || holds(f, "nanotron") || holds(f, "llm.c")) return Framework::megatron;
  if (holds(f, "internevo") && !holds(run.sharding, "fsdp")) return Framework::megatron;
  if (holds(f, "fsdp") || holds(run.sharding, "fsdp")) return Framework::fsdp1;
  if (holds(f, "torchtune") || holds(f, "ddp") || run.gpus == 1) return Framework::single;
  return no_model("no rules for the framework '" + run.framework + "'", "see the frameworks in docs/validation.md");
}

void settle_parallel(RunDescription& d, const PublishedRun& run) {
  d.tensor = std::max<std::int64_t>(run.tensor, 1);
  d.pipeline = std::max<std::int64_t>(run.pipeline, 1);
  d.context = std::max<std::int64_t>(run.context, 1);
  d.ranks = std::max<std::int64_t>(run.gpus, 1);
  const std::int64_t data = std::max<std::int64_t>(d.ranks / (d.tensor * d.pipeline * d.context), 1);
  d.shard_degree = run.shard_degree > 0 ? run.shard_degree : data;
  d.stage = static_cast<std::int32_t>(run.stage);
  if (!run.stage_stated) d.stage = d.framework == Framework::fsdp1 || d.framework == Framework::fsdp2 ? 3 : 0;
  d.reshard_after_forward = !holds(run.sharding, "never") && !holds(run.sharding, "grad_op");
  // torchtitan and Megatron cut the sequence wherever they cut the model, unless a row says otherwise; Korthikanti et
  // al. compare with and without, and name what has it.
  const std::string_view f = run.framework;
  d.sequence_parallel =
      d.tensor > 1 && (d.framework == Framework::fsdp2 || d.framework == Framework::graph_fsdp || holds(f, "core") ||
                       holds(f, "nanotron") || holds(f, "bridge") || holds(run.recompute, "seq"));
}

void settle_precision(RunDescription& d, const PublishedRun& run) {
  const std::string_view p = run.precision;
  d.fp16 = holds(p, "fp16");
  d.autocast = holds(p, "amp");
  const bool sixteen = d.fp16 || holds(p, "bf16") || holds(p, "fp8") || holds(p, "float8") || holds(p, "fp4");
  const bool fsdp =
      d.framework == Framework::fsdp1 || d.framework == Framework::fsdp2 || d.framework == Framework::graph_fsdp;
  if (holds(p, "pure") || holds(p, "true") || holds(p, "lora") || holds(p, "adamw bf16"))
    d.precision = Precision::all_16_bit;
  else if (holds(p, "fp32 grad") && !fsdp)
    d.precision = Precision::fp32_gradients;
  else if (fsdp)
    d.precision = has_word(p, "fp32") && !sixteen ? Precision::fp32 : Precision::master_shards;
  else if (d.framework == Framework::megatron && holds(run.framework, "megatron"))
    d.precision = Precision::fp32_gradients;
  else if (d.framework == Framework::single)
    d.precision = sixteen ? Precision::all_16_bit : Precision::fp32;
  else
    d.precision = Precision::beside_masters;
  if (holds(p, "float8") || holds(p, "fp8") || holds(p, "mxfp8") || holds(p, "fp4"))
    d.float8 = holds(p, "all-gather") && !holds(p, "no fp8") ? Float8::gathered : Float8::inputs_kept;
  // Composer's DecoupledAdamW steps parameter by parameter (composer/optim/decoupled_weight_decay.py).
  const bool one_by_one = holds(run.framework, "composer");
  d.foreach_optimizer =
      holds(p, "not fused") || (!one_by_one && (d.framework == Framework::fsdp1 || d.framework == Framework::single));
}

Recompute recompute_of(const PublishedRun& run, Framework framework) {
  const std::string_view r = run.recompute;
  if (holds(r, "every-2nd")) return Recompute::every_other_block;
  if (holds(r, "full") || holds(r, "per-block")) return Recompute::block;
  if (holds(r, "attn")) return Recompute::attention;
  if (holds(r, "selective") || holds(r, "sac") || holds(r, "ilp")) return Recompute::every_other_product;
  // llama-recipes, configs/fsdp.py: fsdp_activation_checkpointing is on.
  if (r.empty() && holds(run.framework, "llama-recipes")) return Recompute::block;
  if (holds(r, "unspecified") && (framework == Framework::fsdp2 || framework == Framework::graph_fsdp))
    return Recompute::every_other_product;  // torchtitan's default in its configurations
  return Recompute::none;
}

/// When torchtitan compiles its loss: since 20 February 2025 (commit d1f62be73); by pieces by default since 27 April
/// 2026 (commit 786e26f8e).
Loss loss_of(const RunDescription& d, const PublishedRun& run) {
  if (holds(run.notes, "chunked")) return Loss::chunked;
  if (d.framework == Framework::megatron) return Loss::fused;
  const bool torchtitan = holds(run.framework, "torchtitan");
  const std::int32_t months = 12 * d.year + d.month;
  if (torchtitan && months >= 12 * 2026 + 5) return Loss::chunked;
  if (d.compiled && (!torchtitan || months >= 12 * 2025 + 3)) return Loss::one_pass;
  // llm-foundry, modeling_mpt.py: loss_fn is flash-attention's cross-entropy unless a configuration says otherwise.
  if (holds(run.framework, "composer") && holds(run.model, "mpt")) return Loss::one_pass;
  return Loss::eager;
}

void settle_levers(RunDescription& d, const PublishedRun& run) {
  d.recompute = recompute_of(run, d.framework);
  d.compiled = begins(run.compile, "yes") || holds(run.compile, "graph") || holds(run.compile, "inductor") ||
               holds(run.compile, "toolkit") || holds(run.compile, "deepcompile");
  // Where nothing is said, a model of transformers has taken PyTorch's fused attention since 4.36 (December 2023).
  const bool fused_by_default = 12 * d.year + d.month >= 12 * 2024 + 1;
  d.flash = !begins(run.attention, "no") &&
            !(run.attention.empty() && d.framework == Framework::deepspeed && !fused_by_default);
  d.loss = loss_of(d, run);
  d.eight_bit_optimizer = holds(run.notes, "8-bit adam");
  d.step_in_backward = holds(run.notes, "optimizer in backward") || d.eight_bit_optimizer;
  const std::string_view o = run.offload;
  d.offload_activations = holds(o, "activation");
  d.offload_parameters = holds(o, "param") || (holds(o, "fsdp") && holds(o, "cpu"));
  d.offload_optimizer = holds(o, "optimizer") || d.offload_parameters;
  d.trains_all = !holds(run.precision, "lora") && !holds(run.framework, "lora") && !begins(run.notes, "lora");
  // Answer.AI's fsdp_qlora wraps what is trained by itself; Lightning wraps blocks, adapters with what they adapt.
  d.adapters_apart = !holds(run.framework, "litgpt");
  d.quantised = holds(run.precision, "qlora") || holds(run.precision, "nf4");
  d.expandable_segments = holds(run.notes, "expandable_segments") && !holds(run.notes, "without expandable");
}

void assume(RunDescription& d, std::string what) {
  d.extrapolated = true;
  d.assumed += (d.assumed.empty() ? "" : "; ") + std::move(what);
}

}  // namespace

const char* to_string(Framework framework) {
  switch (framework) {
    case Framework::fsdp2: return "FSDP2";
    case Framework::graph_fsdp: return "SimpleFSDP";
    case Framework::fsdp1: return "FSDP1";
    case Framework::deepspeed: return "DeepSpeed";
    case Framework::megatron: return "Megatron";
    case Framework::colossal: return "Colossal-AI LowLevelZero";
    case Framework::gemini: return "Gemini";
    case Framework::single: return "PyTorch";
  }
  return "?";
}

Result<RunDescription> describe(const PublishedRun& run) {
  RunDescription d;
  const Result<Framework> framework = framework_of(run);
  if (!framework) return framework.error();
  d.framework = *framework;
  Result<Architecture> model = architecture_of(run);
  if (!model) return model.error();
  d.model = std::move(*model);
  d.year = static_cast<std::int32_t>(number(run.date));
  if (run.date.size() >= 7) d.month = static_cast<std::int32_t>(number(std::string_view(run.date).substr(5)));
  settle_parallel(d, run);
  if (d.pipeline > 1) return no_model("pipeline parallelism is not predicted", "a run without stages");
  if (d.context > 1) return no_model("context parallelism is not predicted", "a run without it");
  settle_precision(d, run);
  settle_levers(d, run);
  if (run.micro_batch == 0) {
    assume(d, "one sequence per rank");
    d.micro_batch = 1;
  } else {
    d.micro_batch = run.micro_batch;
  }
  // The chosen and the rejected answer go through the model as one batch (ColossalChat, coati/trainer: torch.cat).
  for (const std::string_view method : {"dpo", "simpo", "orpo"})
    if (has_word(run.notes, method)) d.micro_batch *= 2;
  d.accumulation = std::max<std::int64_t>(run.accumulation, 1);
  if (run.gpus == 0) assume(d, "one rank");
  settle_machine(d, run);
  if (run.vocab == 0 && run.parameters <= 0) assume(d, "a vocabulary of " + std::to_string(d.model.vocab));
  return d;
}

}  // namespace shard::validate
