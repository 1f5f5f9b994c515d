// What decoders have in common, whosever code they are: parameters, the batch, calls of blocks, transformers' cache.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/like/eager/operators.h"
#include "sim/like/eager/programs.h"

namespace shard::like::eager {

/// What they do between these is LoweredDecoder's.
class Decoder : public Program {
 public:
  Decoder(Runtime& runtime, const model::Model& model, const ProgramOptions& options)
      : r_(runtime), model_(model), options_(options) {}

  void create() override;

  void end_step() override {}

 protected:
  /// Of `before` the module's own buffers, which lie before the parameter of that number.
  virtual void make_buffers_before(std::size_t parameter) = 0;
  /// Of blocks' names, which their number follows.
  [[nodiscard]] virtual std::string block_prefix() const = 0;
  /// Whether keys and values go through a cache at all.
  [[nodiscard]] virtual bool caches() const { return true; }
  [[nodiscard]] bool asks_for_cache() const { return options_.cache && !options_.checkpoint; }
  /// A layer's forward().
  virtual Tensor block(std::int64_t l, const Tensor& x) = 0;
  /// The same, holding what the layer is called with beside x.
  [[nodiscard]] virtual std::function<Tensor(const Tensor&)> with_arguments(std::int64_t l) = 0;

  /// What a model with checkpoints runs of a block.
  virtual Tensor checkpointed(const Tensor& x, std::function<Tensor(const Tensor&)> run) {
    return r_.checkpoint(x, std::move(run));
  }

  /// What the model calls.
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

  /// Of the model's number.
  [[nodiscard]] const Tensor& parameter(std::size_t at) const { return r_.parameters()[registered(at)]; }
  /// Registers each of two of the model's parameters in the other's place.
  void swap_parameters(std::size_t a, std::size_t b) {
    register_at(a, b);
    register_at(b, a);
  }
  /// Where the framework has the model's parameter, or several of them as one.
  void register_at(std::size_t place, std::size_t of_model) { registered_[of_model] = place; }
  [[nodiscard]] std::size_t registered(std::size_t at) const {
    const auto found = registered_.find(at);
    return found == registered_.end() ? at : found->second;
  }

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

  std::map<std::size_t, std::size_t> registered_;
};

}  // namespace shard::like::eager
