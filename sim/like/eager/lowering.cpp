// transformers 5: how a decoder's modules run, operator by operator (modeling_llama.py and its relatives).
#include "sim/like/eager/lowering.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include "sim/like/eager/sharding.h"
#include "sim/model/family.h"

namespace shard::like::eager {

LoweredDecoder::LoweredDecoder(Runtime& runtime, const model::Model& model, const ProgramOptions& options,
                               const ClassRow& row)
    : Decoder(runtime, model, options),
      row_(row),
      activation_(row.function != nullptr ? row.function : activation_function(word_of_activation(model, row))),
      graph_(model::build_graph(model, options.batch, options.sequence)),
      lowered_(lowered_graph(graph_, row.names, row.together)) {
  for (const model::Operator& op : graph_.operators) {
    if (op.block < 0) continue;
    prefix_ = op.name.substr(0, op.name.find(".0.") + 1);
    break;
  }
  for (const LoweredStep& step : lowered_.behind.steps) {
    const model::OperatorKind kind = step.op().kind;
    const bool norm = kind == model::OperatorKind::layer_norm || kind == model::OperatorKind::rms_norm;
    if (norm && !step.op().params.empty() && is_behind_blocks(model_, place_of(step.op()))) norm_of_end_ = &step;
  }
  if (!row_.has_sdpa) options_.attention = Attention::eager;
  if (row_.inputs != Inputs::none) list_buffers();
  for (const LoweredPart& part : lowered_.blocks) {
    if (!row_.down_before_up) break;
    const LoweredStep* gated = part.step_of(model::OperatorKind::swiglu);
    swap_parameters(place_of(*gated->ops[1]), place_of((gated + 1)->op()));
  }
}

void LoweredDecoder::list_buffers() {
  if (row_.scaled_embedding) buffer_rows_.push_back({1, "embed_scale", {}, options_.precision});
  const bool mask_of_gpt2 = row_.mask_of_attention && kMaskOfGpt2.holds(options_.transformers);
  if (turns_pairs() || row_.scores == Scores::masked_twice || mask_of_gpt2) return list_buffers_of_attention();
  if (row_.rotation != Rotation::none) {
    const std::size_t before = row_.rotary_before.empty() ? place_of_head() : place(row_.rotary_before);
    for (std::size_t kind = 0; kind < 2; ++kind) {
      if (kind == 1 && !row_.rotary_of_kinds) continue;
      if (!has_kind(kind) && row_.rotary_of_kinds) continue;
      buffer_rows_.push_back({before, "rotary_emb.inv_freq", {rotary_columns() / 2}, Scalar::f32});
      if (kCopiesFrequencies.holds(options_.transformers))
        buffer_rows_.push_back({before, "rotary_emb.original_inv_freq", {rotary_columns() / 2}, Scalar::f32});
    }
  }
  if (row_.mask_buffer)
    buffer_rows_.push_back({place_of_head(), "bias", {model_.max_sequence, model_.max_sequence}, Scalar::boolean});
}

/// Of each block's, behind its parameters.
void LoweredDecoder::list_buffers_of_attention() {
  for (const LoweredPart& part : lowered_.blocks) {
    std::size_t behind = 0;
    const LoweredStep* step = part.step_of(model::OperatorKind::attention);
    for (const model::Operator* op : step->ops)
      for (const model::ParamId p : op->params) behind = std::max(behind, static_cast<std::size_t>(p.value) + 1);
    if (turns_pairs())
      buffer_rows_.push_back({behind, "embed_positions", {model_.max_sequence, rotary_columns()}, Scalar::f32});
    else
      buffer_rows_.push_back({behind, "bias", {model_.max_sequence, model_.max_sequence}, Scalar::boolean});
    if (row_.mask_of_attention && kMaskedBiasOfGpt2.holds(options_.transformers))
      buffer_rows_.push_back({behind, "masked_bias", {}, options_.precision});
  }
}

std::size_t LoweredDecoder::place_of_head() const {
  return model_.tied_embeddings ? model_.parameters.size() : static_cast<std::size_t>(lowered_.head->params[0].value);
}

void LoweredDecoder::make_buffers_before(std::size_t at) {
  for (const BufferRow& row : buffer_rows_)
    if (row.before == at) r_.buffers().push_back(named(row.name, Category::not_known, row.sizes, row.scalar));
}

std::int64_t LoweredDecoder::rotary_columns() const {
  constexpr std::int64_t kOfPairs = 64;
  if (turns_pairs()) return described_value(model_, "rotary_dim", kOfPairs);
  return model_.rotary.columns > 0 ? model_.rotary.columns : model_.head_dim;
}

std::size_t LoweredDecoder::kind_of(std::int64_t l) const {
  if (!row_.kinds_of_layers) return 0;
  constexpr std::int64_t kEveryOther = 2;
  return (l + 1) % described_value(model_, "sliding_window_pattern", kEveryOther) == 0 ? 0 : 1;
}

bool LoweredDecoder::has_kind(std::size_t kind) const {
  if (!row_.rotary_of_kinds) return kind == 0;
  for (std::int64_t l = 0; l < model_.layers; ++l)
    if (kind_of(l) == kind) return true;
  return false;
}

Tensor LoweredDecoder::decoder() {
  Tensor x = run(lowered_.before, tokens_);
  if (row_.inputs == Inputs::bloom_alibi || row_.inputs == Inputs::mpt_alibi) make_inputs();
  x = through_blocks(std::move(x));
  if (!lowered_.behind.steps.empty()) x = run(lowered_.behind, x);
  returned_ = {};
  names_of_forward_.clear();
  arguments_ = {};
  arguments_of_kind_ = {};
  positions_ = {};
  return x;
}

Tensor LoweredDecoder::through_blocks(Tensor x) {
  for (std::int64_t l = 0; l < model_.layers; ++l) {
    r_.tape().set_module(names_[static_cast<std::size_t>(l)], static_cast<std::int32_t>(l));
    arguments_ = arguments_of_kind_[kind_of(l)];
    x = in_unit(r_, l, x, [&](const Tensor& entered) { return layer(l, entered); });
    returned_ = std::exchange(shares_, {});
  }
  return x;
}

Tensor LoweredDecoder::scores(const Tensor& hidden) {
  const bool begins = enters_end_behind_blocks() && norm_of_end_ == nullptr;
  const Tensor entered = begins ? r_.sharding->enter(unit_of_end(), hidden) : hidden;
  r_.tape().set_module(row_.modules.head, -1);
  Tensor y = product(*lowered_.head, entered);
  if (ends_apart(r_)) r_.sharding->leave(unit_of_end(), y);
  return y;
}

Tensor LoweredDecoder::block(std::int64_t l, const Tensor& x) {
  Tensor y = run(lowered_.blocks[static_cast<std::size_t>(l)], x);
  if (!row_.returns_weights || r_.graph().in_second_run()) shares_ = {};
  return y;
}

std::function<Tensor(const Tensor&)> LoweredDecoder::with_arguments(std::int64_t l) {
  return [this, l, arguments = arguments_](const Tensor& x) {
    const Arguments before = std::exchange(arguments_, arguments);
    Tensor y = block(l, x);
    arguments_ = before;
    return y;
  };
}

Tensor LoweredDecoder::run(const LoweredPart& part, const Tensor& x) {
  if (r_.sharding != nullptr && r_.sharding->hooks_modules()) return run_in_modules(part, x);
  Values values(part.values);
  values[0] = x;
  for (const LoweredStep& step : part.steps) run_step(step, values);
  return std::move(values[part.steps.back().output]);
}

void LoweredDecoder::run_step(const LoweredStep& step, Values& values) {
  if (step.op().block < 0) r_.tape().set_module(r_.tape().keep(name_of(step.op())), -1);
  if (&step == norm_of_end_ && enters_end_behind_blocks()) {
    Tensor& x = values[step.inputs[0]];
    x = r_.sharding->enter(unit_of_end(), x);
  }
  values[step.output] = run(step, values);
  for (const std::size_t v : step.done) values[v] = {};
}

/// Of an operator of the model's own part.
std::string_view LoweredDecoder::name_of(const model::Operator& op) const {
  using Kind = model::OperatorKind;
  const bool norm = op.kind == Kind::layer_norm || op.kind == Kind::rms_norm;
  const std::string_view own = norm ? row_.modules.last_norm : row_.modules.embedding;
  return own.empty() ? std::string_view(op.name) : own;
}

Tensor LoweredDecoder::run(const LoweredStep& step, const Values& values) {
  using Kind = model::OperatorKind;
  struct Row {
    Kind kind;
    Tensor (LoweredDecoder::*lower)(const LoweredStep&, const Values&);
  };
  static constexpr std::array kRows{
      Row{Kind::attention, &LoweredDecoder::attention_of},  // with the product behind it
      Row{Kind::embedding, &LoweredDecoder::embedded},
      Row{Kind::add_position, &LoweredDecoder::with_positions},
      Row{Kind::swiglu, &LoweredDecoder::gated},
      Row{Kind::geglu, &LoweredDecoder::gated},
      Row{Kind::linear, &LoweredDecoder::linear_of},
      Row{Kind::layer_norm, &LoweredDecoder::layer_norm_of},  // one with products is theirs
      Row{Kind::rms_norm, &LoweredDecoder::rms_norm_of},
      Row{Kind::gelu, &LoweredDecoder::activated},
      Row{Kind::gelu_erf, &LoweredDecoder::activated},
      Row{Kind::relu, &LoweredDecoder::activated},
      Row{Kind::add, &LoweredDecoder::summed},
      Row{Kind::dropout, &LoweredDecoder::dropped},
      Row{Kind::scale, &LoweredDecoder::passed},
  };
  const auto* row =
      std::find_if(kRows.begin(), kRows.end(), [&](const Row& r) { return step.find(r.kind) != nullptr; });
  assert(row != kRows.end() && "an operator that no class of the table has");
  return (this->*row->lower)(step, values);
}

Tensor LoweredDecoder::layer_norm_of(const LoweredStep& step, const Values& values) {
  return in_module(r_, module_with(step.op()), values[step.inputs[0]],
                   [&](const Tensor& x) { return layer_norm(r_, x, weight(step.op()), weight(step.op(), 1)); });
}

Tensor LoweredDecoder::rms_norm_of(const LoweredStep& step, const Values& values) {
  return norm(step.op(), values[step.inputs[0]]);
}

Tensor LoweredDecoder::linear_of(const LoweredStep& step, const Values& values) {
  Tensor y = product(step.op(), values[step.inputs[0]]);
  if (&step == lowered_.before.step_of(model::OperatorKind::linear))
    names_of_forward_.front() = {};  // opt's project_in takes the name over
  return y;
}

Tensor LoweredDecoder::activated(const LoweredStep& step, const Values& values) {
  return in_module(r_, {.name = "act"}, values[step.inputs[0]], [this](const Tensor& x) { return activation_(r_, x); });
}

Tensor LoweredDecoder::dropped(const LoweredStep& step, const Values& values) {
  return in_module(r_, {.name = "dropout"}, values[step.inputs[0]],
                   [this](const Tensor& x) { return dropout(r_, x, model_.dropout); });
}

/// The factor of embeddings, which their own module multiplies with.
Tensor LoweredDecoder::passed(const LoweredStep& step, const Values& values) {
  return values[step.inputs[0]];
}

Tensor LoweredDecoder::embedded(const LoweredStep& step, const Values& values) {
  const std::size_t unit = model_.tied_embeddings ? unit_of_end() : unit_of_end() - 1;
  if (ends_apart(r_)) (void)r_.sharding->enter(unit, values[step.inputs[0]]);
  const Tensor x = in_module(r_, module_with(step.op()), values[step.inputs[0]], [&](const Tensor& tokens) {
    Tensor rows =
        row_.embedding_by_index ? index_rows(r_, weight(step.op()), tokens) : embedding(r_, weight(step.op()), tokens);
    return row_.scaled_embedding ? mul(r_, rows, r_.buffers()[0]) : rows;
  });
  if (enters_end_behind_blocks()) r_.sharding->leave(unit, x);
  if (row_.inputs == Inputs::none) return x;
  names_of_forward_.push_back(x);
  if (row_.inputs != Inputs::bloom_alibi && row_.inputs != Inputs::mpt_alibi) make_inputs();
  return x;
}

Tensor LoweredDecoder::with_positions(const LoweredStep& step, const Values& values) {
  if (!positions_)
    positions_ = in_module(r_, module_with(step.op()), arguments_of_kind_[0].ids,
                           [&](const Tensor& ids) { return embedding(r_, weight(step.op()), ids); });
  Tensor sum = add(r_, values[step.inputs[0]], positions_);
  if (row_.inputs == Inputs::mask_last) make_masks();
  return sum;
}

Tensor LoweredDecoder::product(const model::Operator& op, const Tensor& x) {
  return in_module(r_, module_with(op), x, [&](const Tensor& rows) {
    const Tensor bias = op.params.size() > 1 ? weight(op, 1) : Tensor{};
    if (row_.products_by_einsum) return einsum(r_, "abi,oi->abo", rows, weight(op));
    if (op.attributes.weight_in_out) return addmm(r_, bias, rows, weight(op));
    if (!row_.bias_apart) return linear(r_, rows, weight(op), bias);
    Tensor y = linear(r_, rows, weight(op), {});
    return bias ? add(r_, y, bias) : y;
  });
}

Tensor LoweredDecoder::norm(const model::Operator& op, const Tensor& input) {
  return in_module(r_, module_with(op), input, [&](const Tensor& x) -> Tensor {
    switch (row_.norm) {
      case Norm::by_weight: return rms_norm(x, weight(op));
      case Norm::by_one_more: return rms_norm_by_one_more(x, weight(op));
      case Norm::layer_without_bias: return layer_norm(r_, x, weight(op), {});
      case Norm::fused: return eager::rms_norm(r_, x, weight(op));
      case Norm::weight_in_fp32: return to(r_, mul(r_, weight(op), normalized_in_fp32(x)), x.scalar());
      case Norm::by_product: return rms_norm_by_product(x, weight(op));
    }
    return {};
  });
}

Tensor LoweredDecoder::rms_norm(const Tensor& input, const Tensor& weight) {
  Tensor x = to(r_, input, Scalar::f32);
  Tensor variance = pow_number(r_, x);
  variance = mean_last(r_, variance);
  Tensor root = add_number(r_, variance);
  root = rsqrt(r_, root);
  x = mul(r_, x, root);
  root = {};
  return mul(r_, weight, to(r_, x, input.scalar()));
}

/// torchtitan's, before norms were fused: x times itself, and the weight in x's own type.
Tensor LoweredDecoder::rms_norm_by_product(const Tensor& input, const Tensor& weight) {
  Tensor x;
  {
    const Tensor wide = to(r_, input, Scalar::f32);
    const Tensor root = rsqrt(r_, add_number(r_, mean_last(r_, mul(r_, wide, wide))));
    x = mul(r_, wide, root);
  }
  x = to(r_, std::exchange(x, {}), input.scalar());
  return mul(r_, x, weight);
}

Tensor LoweredDecoder::normalized_in_fp32(const Tensor& input) {
  const Tensor x = to(r_, input, Scalar::f32);
  Tensor root = pow_number(r_, x);
  root = mean_last(r_, root);
  root = add_number(r_, root);
  root = rsqrt(r_, root);
  return mul(r_, x, root);
}

/// Gemma's: the weight is of what is added to 1, and everything is in fp32.
Tensor LoweredDecoder::rms_norm_by_one_more(const Tensor& input, const Tensor& weight) {
  Tensor x = normalized_in_fp32(input);
  Tensor factor = to(r_, weight, Scalar::f32);
  factor = add_number(r_, factor);
  x = mul(r_, x, factor);
  factor = {};
  return to(r_, x, input.scalar());
}

Tensor LoweredDecoder::gated(const LoweredStep& step, const Values& values) {
  const Tensor& x = values[step.inputs[0]];
  const auto act = [this](const Tensor& in) { return activation_(r_, in); };
  if (step.ops.size() == 1) {
    const Tensors parts = split_last(r_, x, 2);
    return mul(r_, parts[1], in_module(r_, {.name = "act"}, parts[0], act));
  }
  const Tensor gate = in_module(r_, {.name = "act"}, product(*step.ops[0], x), act);
  return mul(r_, gate, product(*step.ops[1], x));
}

Tensor LoweredDecoder::summed(const LoweredStep& step, const Values& values) {
  const Tensor &x = values[step.inputs[0]], &a = values[step.inputs[1]];
  if (step.ops.size() == 1) {
    Tensor sum = add(r_, x, a);
    names_of_attention_.clear();
    return sum;
  }
  const Tensor& m = values[step.inputs[2]];
  switch (row_.sum) {
    case Sum::attention_mlp_x: return add(r_, add(r_, a, m), x);
    case Sum::mlp_attention_x: return add(r_, add(r_, m, a), x);
    case Sum::attention_into_mlp: return add(r_, x, add_into(r_, m, a));
    case Sum::x_attention_mlp: return add(r_, add(r_, x, a), m);
  }
  return {};
}

}  // namespace shard::like::eager
