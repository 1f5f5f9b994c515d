// The rows, and what a compiler makes of them.
#include "sim/step/code_style.h"

namespace shard::step {
namespace {

CodeStyle eager_style(const TrainingStep& step) {
  const bool grouped = step.model.kv_heads != step.model.heads;
  switch (step.code) {
    case Code::written_out:
      return {
          .norm = step.fused_norms ? Norm::rms_norm : Norm::written_out, .repeats_keys = grouped, .gradient_sums = 3};
    case Code::llm_foundry:
      return {.norm = Norm::layer_norm, .one_product_for_qkv = true, .takes_padding_out = true, .metrics = true};
    case Code::internevo:
      return {.norm = Norm::in_fp32,
              .one_product_for_qkv = true,
              .one_product_for_gates = true,
              .rotary_in_one_kernel = true};
    case Code::nanotron:
      return {.norm = Norm::written_out,
              .one_product_for_qkv = true,
              .one_product_for_gates = true,
              .rotary_in_one_kernel = true};
    case Code::megatron:
      return {.norm = Norm::one_kernel,
              .one_product_for_qkv = true,
              .one_product_for_gates = true,
              .rotary_in_one_kernel = true,
              .activation_in_one_kernel = true,
              .accumulates_in_products = true};
  }
  return {};
}

}  // namespace

CodeStyle style_of(const TrainingStep& step) {
  CodeStyle style = eager_style(step);
  if (!step.compiled) return style;
  style.norm = Norm::one_kernel;
  style.rotary_in_one_kernel = style.activation_in_one_kernel = style.residuals_in_norms = true;
  style.gradient_sums = 1;
  return style;
}

}  // namespace shard::step
