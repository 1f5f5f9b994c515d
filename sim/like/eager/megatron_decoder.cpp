// Parameters of a family's table as Megatron has them, and cuts of a sequence.
#include "sim/like/eager/megatron_decoder.h"

#include <algorithm>

namespace shard::like::eager {

using model::Operator;
using model::OperatorKind;

MegatronDecoder::MegatronDecoder(Runtime& runtime, const model::Model& model, const ProgramOptions& options,
                                 const MegatronOptions& megatron, const ClassRow& row,
                                 std::span<const MegatronRow> rows)
    : LoweredDecoder(runtime, model, options, row), megatron_(megatron) {
  list("embedding.word_embeddings.weight", Cut::columns, {lowered().before.find(OperatorKind::embedding)});
  if (const Operator* positions = lowered().before.find(OperatorKind::add_position))
    list("embedding.position_embeddings.weight", Cut::none, {positions});
  std::int64_t l = 0;
  for (const LoweredPart& layer : lowered().blocks) list_layer(layer, block_prefix() + std::to_string(l++) + ".", rows);
  list("decoder.final_layernorm.weight", Cut::none, {&lowered().behind.steps[0].op()});
  if (!model.tied_embeddings) list("output_layer.weight", Cut::columns, {lowered().head});
}

void MegatronDecoder::list_layer(const LoweredPart& layer, const std::string& prefix,
                                 std::span<const MegatronRow> rows) {
  for (const MegatronRow& row : rows) {
    Operators of;
    for (const LoweredStep& step : layer.steps)
      for (const Operator* op : step.ops)
        if (std::any_of(row.of.begin(), row.of.end(),
                        [op](std::string_view name) { return !name.empty() && op->name.ends_with(name); }))
          of.push_back(op);
    list(prefix + std::string(row.name), row.cut, of);
  }
}

/// A weight, and a bias behind it.
void MegatronDecoder::list(const std::string& name, Cut cut, const Operators& of) {
  for (std::size_t i = 0; i < of[0]->params.size() && i < 2; ++i) {
    for (const Operator* op : of) register_at(listed_.size(), place_of(*op, i));
    const std::string stem = name.substr(0, name.size() - std::string_view("weight").size());
    listed_.push_back({i == 0 ? name : stem + "bias", sizes_of(cut, of, i), cut});
  }
}

Dims MegatronDecoder::sizes_of(Cut cut, const Operators& of, std::size_t i) const {
  if (of[0]->kind == OperatorKind::embedding || of[0] == lowered().head) return {vocabulary(), model_.hidden};
  if (of[0]->kind != OperatorKind::linear) {
    Dims whole;
    for (const std::int64_t n : model_.parameters[place_of(*of[0], i)].shape) whole.push(n);
    return whole;
  }
  const std::int64_t t = megatron_.tensor;
  std::int64_t in = of[0]->attributes.columns, out = 0;
  for (const Operator* op : of) out += op->attributes.out_columns;
  (cut == Cut::columns ? out : in) /= t;
  return i == 0 ? Dims{out, in} : Dims{out};
}

void MegatronDecoder::create() {
  r_.parameters().resize(listed_.size());
  make_all();
  for (std::int64_t l = 0; l < model_.layers; ++l) names_.push_back(r_.tape().keep(block_prefix() + std::to_string(l)));
}

void MegatronDecoder::make_all() {
  for (std::size_t p = 0; p < listed_.size(); ++p) make(p);
}

void MegatronDecoder::make(std::size_t number) {
  const MegatronParameter& row = listed_[number];
  Tensor t = named(row.name, Category::parameter, row.sizes, options_.precision);
  t.set_parameter(static_cast<std::int32_t>(number));
  r_.parameters()[number] = std::move(t);
}

Tensor MegatronDecoder::parted(const Tensor& x, const char* collective) {
  r_.tape().begin_op(collective);
  Tensor y = r_.empty({part(), options_.batch, model_.hidden}, x.scalar());
  r_.graph().record(y, {r_.graph().edge(x)}, [this, from = x.sizes()](const Tensors& g) -> Tensors {
    r_.tape().begin_op("all-gather");
    return {r_.empty(from, g[0].scalar())};
  });
  return y;
}

}  // namespace shard::like::eager
