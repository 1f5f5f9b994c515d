// transformers 5: how a model's forward() ends, loss_utils.py, and what of its classes is known.
#include <cassert>

#include "sim/like/eager/lowering.h"

namespace shard::like::eager {
namespace {

/// ...ForCausalLM, called with labels.
class HuggingFace final : public LoweredDecoder {
 public:
  using LoweredDecoder::LoweredDecoder;

  Tensor loss() override;

 private:
  Tensor forward();
  [[nodiscard]] Tensor capped(Tensor logits);
  /// ForCausalLMLoss.
  Tensor causal_loss(const Tensor& logits);
  Tensor loss_of_shifted_logits(const Tensor& logits);
};

Tensor HuggingFace::loss() {
  r_.tape().set_part(Part::forward, Category::activation);
  r_.begin_autocast(options_.autocast);
  Tensor loss = forward();
  r_.end_autocast();
  return loss;
}

Tensor HuggingFace::forward() {
  enter_model(r_);
  const Tensor hidden =
      in_module(r_, {.name = "decoder", .positional = false}, {}, [this](const Tensor&) { return decoder(); });
  const Tensor logits = capped(scores(hidden));
  Tensor loss = causal_loss(logits);
  leave_model(r_, loss, logits);
  cache_.clear();  // the model's output ends with the statement
  return loss;
}

Tensor HuggingFace::capped(Tensor logits) {
  if (described_value(model_, "final_logit_softcapping", 0) == 0) return logits;
  logits = div_number(r_, logits);
  logits = activation(r_, logits, "tanh", Kept::result);
  return mul_number(r_, logits);
}

/// transformers 4, modeling_gpt_bigcode.py and others: logits but the last, which are copied, and labels but the first.
Tensor HuggingFace::loss_of_shifted_logits(const Tensor& logits) {
  const std::int64_t rows = options_.batch * (options_.sequence - 1);
  const Tensor shifted = contiguous(r_, slice(r_, logits, 1, options_.sequence - 1));
  r_.tape().begin_op("labels");
  const Tensor labels = r_.empty({options_.batch, options_.sequence - 1}, Scalar::i64);
  return cross_entropy(r_, reshape(r_, shifted, {rows, model_.vocabulary}), labels);
}

Tensor HuggingFace::causal_loss(const Tensor& logits) {
  r_.tape().set_module("loss", -1);
  const bool wide =
      options_.logits == Logits::usual ? kCastsLogits.holds(options_.transformers) : options_.logits == Logits::fp32;
  if (!wide) return loss_of_shifted_logits(logits);
  const Tensor scores = to(r_, logits, Scalar::f32);
  r_.tape().begin_op("labels");
  const Tensor labels = r_.empty({options_.batch, options_.sequence + 1}, Scalar::i64);
  Tensor shifted = labels.view({1, options_.sequence}, {1, 1});
  if (options_.batch > 1) shifted = r_.empty({options_.batch, options_.sequence}, Scalar::i64);
  const Tensor rows = reshape(r_, scores, {tokens_.elements(), model_.vocabulary});
  return cross_entropy(r_, rows, shifted);
}

}  // namespace

bool is_known_decoder(const model::Model& model) {
  return class_row(model.class_name) != nullptr;
}

Releases transformers_of(const model::Model& model) {
  const ClassRow& row = *class_row(model.class_name);
  return {.oldest = row.oldest, .newest = row.newest};
}

bool lacks_sdpa(const model::Model& model) {
  return !class_row(model.class_name)->has_sdpa;
}

std::int64_t window_of(const model::Model& model) {
  if (model.window > 0) return model.window;
  return described_value(model, "use_sliding_window", 1) == 0 ? 0 : described_value(model, "sliding_window", 0);
}

std::string unknown_detail(const model::Model& model, Attention attention) {
  const ClassRow& row = *class_row(model.class_name);
  const std::string_view word = word_of_activation(model, row);
  if (activation_function(word) == nullptr) return "the activation function " + std::string(word);
  if (described_value(model, "alibi", 0) != 0) return "alibi of " + model.class_name;
  if (row.scores == Scores::masked && attention == Attention::eager) return "--attention eager of " + model.class_name;
  return {};
}

std::unique_ptr<Program> hugging_face_program(Runtime& runtime, const model::Model& model,
                                              const ProgramOptions& options) {
  const ClassRow* row = class_row(model.class_name);
  assert(row != nullptr);
  return std::make_unique<HuggingFace>(runtime, model, options, *row);
}

}  // namespace shard::like::eager
