// transformers 5: integrations/sdpa_attention.py, cache_utils.py, masking_utils.py, loss_utils.py.
#include "sim/like/eager/hugging_face.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "sim/like/eager/lowering.h"
#include "sim/like/eager/sharding.h"

namespace shard::like::eager {

void HuggingFace::create() {
  make_parameters();
  for (std::int64_t l = 0; l < model_.layers; ++l) names_.push_back(r_.tape().keep(block_prefix() + std::to_string(l)));
  tokens_ = named("input", Category::input, {options_.batch, options_.sequence}, Scalar::i64);
}

Tensor HuggingFace::loss() {
  r_.tape().set_part(Part::forward, Category::activation);
  r_.begin_autocast(options_.autocast);
  Tensor loss = forward();
  r_.end_autocast();
  return loss;
}

Tensor HuggingFace::layer(std::int64_t l, const Tensor& x) {
  const auto named = [this, l, run = options_.checkpoint ? with_arguments(l) : nullptr](const Tensor& input) {
    r_.tape().set_module(names_[static_cast<std::size_t>(l)], static_cast<std::int32_t>(l));
    return run ? run(input) : block(l, input);
  };
  return in_module(r_, {.name = "layer"}, x, [&](const Tensor& entered) {
    return options_.checkpoint ? r_.checkpoint(entered, named) : named(entered);
  });
}

Tensor HuggingFace::named(std::string_view name, Category category, const Dims& sizes, Scalar scalar) {
  return model_tensor(r_, name, category, sizes, scalar);
}

Tensor HuggingFace::cached(const Tensor& x, Scalar of_keys) {
  if (options_.checkpoint || !caches()) return x;
  constexpr std::size_t kOfLayer = 3;  // of a layer with a window: its length so far, keys, values
  if (model_.window > 0 && cache_.size() % kOfLayer == 0) cache_.push_back(r_.empty({}, Scalar::i64));
  Tensor copy = cat(r_, {x}, 2, of_keys);
  cache_.push_back(copy);
  return copy;
}

Tensor HuggingFace::attend(const Tensor& q, const Tensor& k, const Tensor& v) {
  Tensor y = attention(r_, q, k, v);
  y = contiguous(r_, transpose(r_, y, 1, 2));
  return reshape(r_, y, {options_.batch, options_.sequence, model_.heads * model_.head_dim});
}

void HuggingFace::look_for_packed_sequences() {
  const std::int64_t b = options_.batch, s = options_.sequence;
  r_.tape().begin_op("packed sequences");
  const Tensor before_first = r_.empty({b, 1}, Scalar::i64);
  Tensor prepended = r_.empty({b, s + 1}, Scalar::i64);
  const Tensor difference = r_.empty({b, s}, Scalar::i64);
  prepended = {};
  Tensor begins = r_.empty({b, s}, Scalar::boolean);
  const Tensor sum = r_.empty({b, s}, Scalar::i64);
  { const Tensor cast = r_.empty({b, s}, Scalar::i64); }
  begins = {};
  const Tensor none = r_.empty({b}, Scalar::boolean), all = r_.empty({}, Scalar::boolean);
}

void HuggingFace::make_parameters() {
  const bool wrapped = r_.sharding != nullptr && r_.sharding->wraps_placed_module();
  if (r_.sharding != nullptr && !wrapped) {
    r_.sharding->create(model_, [this, next = std::size_t{0}]() mutable {
      for (; next <= r_.parameters().size(); ++next) make_buffers_before(next);
    });
    return;
  }
  for (std::size_t p = 0; p < model_.parameters.size(); ++p) {
    make_buffers_before(p);
    Dims sizes;
    for (const std::int64_t s : model_.parameters[p].shape) sizes.push(s);
    Tensor t = named(model_.parameters[p].name, Category::parameter, sizes, options_.precision);
    t.set_parameter(static_cast<std::int32_t>(p));
    r_.parameters().push_back(t);
  }
  make_buffers_before(model_.parameters.size());
  if (wrapped) r_.sharding->create(model_, {});
}

Tensor HuggingFace::forward() {
  enter_model(r_);
  const Tensor hidden =
      in_module(r_, {.name = "decoder", .positional = false}, {}, [this](const Tensor&) { return decoder(); });
  r_.tape().set_module("lm_head", -1);
  const Tensor bias = head_bias();
  const Tensor logits = capped(in_module(r_, module_of("lm_head", head(), bias ? 2 : 1), hidden,
                                         [&](const Tensor& x) { return linear(r_, x, head(), bias); }));
  Tensor loss = causal_loss(logits);
  leave_model(r_, loss, logits);
  cache_.clear();  // the model's output ends with the statement
  return loss;
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

std::size_t HuggingFace::place(std::string_view name) const {
  const auto found =
      std::find_if(model_.parameters.begin(), model_.parameters.end(), [&](const auto& p) { return p.name == name; });
  assert(found != model_.parameters.end());
  return static_cast<std::size_t>(found - model_.parameters.begin());
}

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
  return std::make_unique<LoweredDecoder>(runtime, model, options, *row);
}

}  // namespace shard::like::eager
