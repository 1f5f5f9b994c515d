// What transformers' decoders have in common: parameters, cache, attention, loss. A family is what it does between
// them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/like/eager/operators.h"
#include "sim/like/eager/programs.h"

namespace shard::like::eager {

/// The batch, the parameters, the cache, the loss. One file a kind of decoder.
class HuggingFace : public Program {
 public:
  HuggingFace(Runtime& runtime, const model::Model& model, const ProgramOptions& options)
      : r_(runtime), model_(model), options_(options) {}

  void create() override;

  Tensor loss() override;

  void end_step() override {}

 protected:
  /// Of `before` the module's own buffers, which lie before the parameter of that number.
  virtual void make_buffers_before(std::size_t parameter) = 0;
  [[nodiscard]] virtual std::string block_prefix() const = 0;
  /// The last hidden state.
  virtual Tensor decoder() = 0;
  [[nodiscard]] virtual const Tensor& head() const = 0;
  [[nodiscard]] virtual Tensor head_bias() const { return {}; }
  /// use_cache, which checkpoints turn off.
  [[nodiscard]] virtual bool caches() const { return true; }
  /// What becomes of the logits before the loss.
  [[nodiscard]] virtual Tensor capped(Tensor logits) { return logits; }
  /// A layer's forward().
  virtual Tensor block(std::int64_t l, const Tensor& x) = 0;
  /// The same, holding what the layer is called with beside x.
  [[nodiscard]] virtual std::function<Tensor(const Tensor&)> with_arguments(std::int64_t l) = 0;

  /// What the model calls: GradientCheckpointingLayer.
  Tensor layer(std::int64_t l, const Tensor& x);

  Tensor named(std::string_view name, Category category, const Dims& sizes, Scalar scalar);

  /// past_key_values.update(): the first keys, and values, are put behind nothing of the keys' type, which copies them.
  Tensor cached(const Tensor& x, Scalar of_keys);

  /// sdpa_attention_forward, and the reshape behind it.
  Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v);

  /// find_packed_sequence_indices: whether positions begin again, which is looked for where no cache is used.
  void look_for_packed_sequences();

  Tensor heads_of(const Tensor& x, std::int64_t heads) {
    return transpose(r_, reshape(r_, x, {options_.batch, options_.sequence, heads, model_.head_dim}), 1, 2);
  }

  Tensor positions() {
    r_.tape().begin_op("positions");
    const Tensor range = r_.empty({options_.sequence}, Scalar::i64);
    return r_.empty({1, options_.sequence}, Scalar::i64);
  }

  [[nodiscard]] const Tensor& parameter(std::size_t at) const { return r_.parameters()[at]; }

  Runtime& r_;
  const model::Model& model_;
  ProgramOptions options_;
  std::vector<std::string_view> names_;
  Tensor tokens_;
  Tensors cache_;

  /// Where the parameter of this name is.
  [[nodiscard]] std::size_t place(std::string_view name) const;

 private:
  void make_parameters();

  Tensor forward();

  /// ForCausalLMLoss.
  Tensor causal_loss(const Tensor& logits);
  Tensor loss_of_shifted_logits(const Tensor& logits);
};

}  // namespace shard::like::eager
