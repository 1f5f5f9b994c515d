// torchtitan's decoders: torchtitan/models/llama3/model.py and qwen3/model.py, distributed/activation_checkpoint.py,
// components/loss.py, train.py.
#include <utility>

#include "sim/like/eager/compiled_block.h"
#include "sim/like/eager/lowering.h"

namespace shard::like::eager {
namespace {

using model::OperatorKind;

Tensor silu(Runtime& r, const Tensor& x) {
  return activation(r, x, "silu", Kept::input);
}

/// As it is in both of them.
constexpr ClassRow kBoth{.class_name = {},
                         .projections = Projections::all_first,
                         .norm = Norm::fused,
                         .scores = Scores::sdpa,
                         .inputs = Inputs::none,
                         .modules = {"tok_embeddings", "layers.", "norm", "output"},
                         .function = silu,
                         .caches = false};

bool is_qwen3(const model::Model& model) {
  return model.class_name == "Qwen3ForCausalLM";
}

ClassRow row_of(const model::Model& model, const Torchtitan& changed) {
  ClassRow row = kBoth;
  row.rotation = is_qwen3(model) ? Rotation::whole_by_new_table : Rotation::pairs_as_complex;
  if (!changed.fused_norms) row.norm = Norm::by_product;
  return row;
}

class TorchtitanDecoder final : public LoweredDecoder {
 public:
  TorchtitanDecoder(Runtime& runtime, const model::Model& model, const ProgramOptions& options)
      : LoweredDecoder(runtime, model, options, row_of(model, options.torchtitan)), changed_(options.torchtitan) {
    // Of each pair a complex number, or of each element its cosine and sine.
    const std::int64_t columns = is_qwen3(model) ? 2 * model.head_dim : model.head_dim;
    add_buffer(model.parameters.size(), is_qwen3(model) ? "rope_cache" : "freqs_cis", {1, options.sequence, 1, columns},
               Scalar::f32);
  }

  void create() override {
    LoweredDecoder::create();
    labels_ = named("labels", Category::input, {options_.batch, options_.sequence}, Scalar::i64);
  }

  Tensor loss() override {
    r_.tape().set_part(Part::forward, Category::activation);
    const Tensor pred = forward();
    r_.tape().set_module("loss", -1);
    const Tensor rows = reshape(r_, pred, {tokens_.elements(), model_.vocabulary});
    if (changed_.compiled_loss) return compiled_cross_entropy(r_, rows);
    return cross_entropy(r_, to(r_, rows, Scalar::f32), labels_);  // pred is deleted before backward
  }

 protected:
  Tensor block(std::int64_t l, const Tensor& x) override {
    return changed_.compiled ? compiled(lowered().blocks[static_cast<std::size_t>(l)], x) : LoweredDecoder::block(l, x);
  }
  Tensor checkpointed(const Tensor& x, std::function<Tensor(const Tensor&)> run) override {
    if (changed_.compiled) return run(x);
    if (!options_.selective) return r_.checkpoint(x, std::move(run));
    return r_.checkpoint_selectively(x, std::move(run), changed_.keeps_attention);
  }

 private:
  Tensor forward() {
    enter_model(r_);
    r_.tape().set_module(kBoth.modules.embedding, -1);  // whose unit is gathered first
    Tensor h = through_blocks(run(lowered().before, tokens_));
    const Tensor output = scores(run(lowered().behind, std::exchange(h, {})));
    leave_model(r_, output, output);
    return output;
  }

  [[nodiscard]] CompiledKeep kept() const {
    if (!options_.checkpoint) return CompiledKeep::all;
    if (!options_.selective) return CompiledKeep::input;
    return changed_.keeps_attention ? CompiledKeep::selected : CompiledKeep::selected_alone;
  }

  Tensor compiled(const LoweredPart& part, const Tensor& x) {
    const LoweredStep &attention = *part.step_of(OperatorKind::attention), &gated = *part.step_of(OperatorKind::swiglu);
    const auto of = [this](const model::Operator* op) { return weight(*op); };
    BlockWeights weights{.q = of(attention.ops[0]),
                         .k = of(attention.ops[1]),
                         .v = of(attention.ops[2]),
                         .o = of(attention.ops.back()),
                         .gate = of(gated.ops[0]),
                         .up = of(gated.ops[1]),
                         .down = of((&gated + 1)->ops.back()),
                         .norms = {}};
    for (const LoweredStep& step : part.steps)
      if (step.op().kind == OperatorKind::rms_norm) weights.norms.push_back(of(&step.op()));
    for (const model::Operator* op : attention.ops)
      if (op->kind == OperatorKind::rms_norm) weights.norms.push_back(of(op));
    const CompiledBlock shape{.tokens = options_.batch * options_.sequence,
                              .hidden = model_.hidden,
                              .heads = model_.heads,
                              .kv_heads = model_.kv_heads,
                              .head_dim = model_.head_dim,
                              .ffn = weights.gate.size(0),
                              .keep = kept()};
    return compiled_block(r_, shape, weights, x);
  }

  Torchtitan changed_;
  Tensor labels_;
};

}  // namespace

std::unique_ptr<Program> torchtitan_program(Runtime& runtime, const model::Model& model,
                                            const ProgramOptions& options) {
  return std::make_unique<TorchtitanDecoder>(runtime, model, options);
}

}  // namespace shard::like::eager
