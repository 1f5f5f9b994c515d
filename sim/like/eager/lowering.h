// The operators of a family's table as eager PyTorch runs them: what a framework's modules of a class call for each.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/like/eager/activations.h"
#include "sim/like/eager/decoder.h"
#include "sim/like/eager/lowering_table.h"
#include "sim/like/eager/sharding.h"

namespace shard::like::eager {

/// Operators of the graph that are lowered together, with the values that they read and those that are dead behind
/// them.
struct LoweredStep {
  /// The last is the one that the others lead to: an attention's output projection, a gated activation, a sum.
  std::vector<const model::Operator*> ops;
  std::vector<std::size_t> inputs;
  std::size_t output = 0;
  std::vector<std::size_t> done;
  [[nodiscard]] const model::Operator& op() const { return *ops.back(); }
  /// The first of the kind, if there is one.
  [[nodiscard]] const model::Operator* find(model::OperatorKind kind) const;
};

/// Steps in order, over values that are numbered from 0, which is the part's input.
struct LoweredPart {
  std::vector<LoweredStep> steps;
  std::size_t values = 1;
  /// The first that has an operator of the kind, if there is one; and the operator.
  [[nodiscard]] const LoweredStep* step_of(model::OperatorKind kind) const;
  [[nodiscard]] const model::Operator* find(model::OperatorKind kind) const {
    const LoweredStep* step = step_of(kind);
    return step == nullptr ? nullptr : step->find(kind);
  }
};

/// The graph's operators of the model's own part in front of the blocks, of each block, and behind the blocks up to
/// the last norm or product before the head.
struct LoweredGraph {
  LoweredPart before, behind;
  std::vector<LoweredPart> blocks;
  const model::Operator* head = nullptr;
};
/// Borrows `graph`.
[[nodiscard]] LoweredGraph lowered_graph(const model::Graph& graph, Names names, Together together);

/// Queries, keys and values on their way to attention. Names that the module's forward() has live as long.
struct Heads {
  Tensor q, k, v;
  Tensors names;
};

/// A decoder whose blocks run as its family's table says, each operator as the class' row has it. What derives from it
/// is how a framework's model begins and ends.
class LoweredDecoder : public Decoder {
 public:
  LoweredDecoder(Runtime& runtime, const model::Model& model, const ProgramOptions& options, const ClassRow& row);

 protected:
  using Values = std::vector<Tensor>;

  void make_buffers_before(std::size_t parameter) override;
  [[nodiscard]] std::string block_prefix() const override {
    return row_.modules.blocks.empty() ? prefix_ : std::string(row_.modules.blocks);
  }
  [[nodiscard]] bool caches() const override { return row_.caches; }
  /// The last hidden state.
  Tensor decoder();
  Tensor through_blocks(Tensor x);
  /// Of the head.
  Tensor scores(const Tensor& hidden);
  Tensor run(const LoweredPart& part, const Tensor& x);
  Tensor block(std::int64_t l, const Tensor& x) override;
  [[nodiscard]] std::function<Tensor(const Tensor&)> with_arguments(std::int64_t l) override;
  [[nodiscard]] const LoweredGraph& lowered() const { return lowered_; }

  // Those that a framework may have functions of its own for.
  virtual Tensor attention_of(const LoweredStep& step, const Values& values);
  virtual Tensor embedded(const LoweredStep& step, const Values& values);
  virtual Tensor gated(const LoweredStep& step, const Values& values);
  virtual Tensor summed(const LoweredStep& step, const Values& values);
  virtual Tensor product(const model::Operator& op, const Tensor& x);

  [[nodiscard]] const Tensor& weight(const model::Operator& op, std::size_t i = 0) const {
    return parameter(place_of(op, i));
  }
  [[nodiscard]] static std::size_t place_of(const model::Operator& op, std::size_t i = 0) {
    return static_cast<std::size_t>(op.params[i].value);
  }
  /// Before the parameter of this number; r_.buffers() has it last.
  void add_buffer(std::size_t before, std::string name, const Dims& sizes, Scalar scalar) {
    buffer_rows_.push_back({before, std::move(name), sizes, scalar});
  }

 private:
  /// What a block's call has beside x.
  struct Arguments {
    Tensor mask, cosine, sine, ids, alibi;
  };

  void list_buffers();
  void list_buffers_of_attention();
  [[nodiscard]] std::size_t place_of_head() const;
  [[nodiscard]] std::int64_t rotary_columns() const;
  [[nodiscard]] bool turns_pairs() const {
    return row_.rotation == Rotation::pairs_by_gather || row_.rotation == Rotation::pairs_by_index;
  }
  [[nodiscard]] std::string_view own_part() const {
    return std::string_view(prefix_).substr(0, prefix_.rfind('.', prefix_.size() - 2));
  }
  /// Of `kinds_of_layers`: 1 for a layer with a window, else 0.
  [[nodiscard]] std::size_t kind_of(std::int64_t l) const;
  [[nodiscard]] bool has_kind(std::size_t kind) const;
  [[nodiscard]] std::string_view name_of(const model::Operator& op) const;
  /// Number of the unit behind the blocks and the embedding, where a framework has units of the model's ends.
  [[nodiscard]] std::size_t unit_of_end() const { return static_cast<std::size_t>(model_.layers) + 1; }
  /// Whether there are such units, and the embedding is not in that one, which is entered there if it is.
  [[nodiscard]] bool enters_end_behind_blocks() const { return ends_apart(r_) && !model_.tied_embeddings; }
  void run_step(const LoweredStep& step, Values& values);
  Tensor run(const LoweredStep& step, const Values& values);

  // For frameworks that hook the calls of modules (lowered_modules.cpp).
  /// A module that is being called: the value that it is given, which others may read too, and its last result.
  struct OpenModule {
    Module module{};
    std::size_t input = 0, output = 0;
    Tensor given{};
  };
  /// The module of a block that the step is in; empty for the block itself.
  [[nodiscard]] std::string_view module_around(const LoweredStep& step) const;
  void open_module(const LoweredStep& step, std::string_view name, Values& values, OpenModule& open);
  void close_module(Values& values, OpenModule& open);
  Tensor run_in_modules(const LoweredPart& part, const Tensor& x);
  [[nodiscard]] Module module_with(const model::Operator& op) const {
    return module_of(op.name, weight(op), static_cast<std::int32_t>(op.params.size()));
  }

  // Each of a kind of operator.
  Tensor with_positions(const LoweredStep& step, const Values& values);
  Tensor layer_norm_of(const LoweredStep& step, const Values& values);
  Tensor rms_norm_of(const LoweredStep& step, const Values& values);
  Tensor linear_of(const LoweredStep& step, const Values& values);
  Tensor activated(const LoweredStep& step, const Values& values);
  Tensor dropped(const LoweredStep& step, const Values& values);
  Tensor passed(const LoweredStep& step, const Values& values);

  Tensor norm(const model::Operator& op, const Tensor& x);
  Tensor rms_norm(const Tensor& input, const Tensor& weight);
  Tensor rms_norm_by_product(const Tensor& input, const Tensor& weight);
  Tensor normalized_in_fp32(const Tensor& input);
  Tensor rms_norm_by_one_more(const Tensor& input, const Tensor& weight);

  // What blocks are called with (lowered_inputs.cpp).
  void make_inputs();
  void make_masks();
  Tensor causal_mask(bool within_window);
  Tensor positions_of_ones();
  void rotary_tables(Arguments& arguments);
  void fill_rotary_tables(Arguments& arguments);
  Tensor bloom_alibi();
  Tensor mpt_alibi();

  // Attention up to its operands (lowered_attention.cpp).
  Heads projected(const LoweredStep& step, const Tensor& x);
  Heads all_first(const LoweredStep& step, const Tensor& x);
  Heads by_turns(const LoweredStep& step, const Tensor& x);
  Heads packed(const model::Operator& op, const Tensor& x);
  Heads by_index(const model::Operator& op, const Tensor& x);
  Heads of_falcon(const model::Operator& op, const Tensor& x);
  Heads in_four(const model::Operator& op, const Tensor& x);
  Heads multi_query(const model::Operator& op, const Tensor& x);
  Tensor apart(const Tensor& x, std::int64_t heads) {
    return reshape(r_, x, {options_.batch, options_.sequence, heads, model_.head_dim});
  }
  void turn(Heads& heads);
  void turn_parts(Heads& heads);
  void turn_pairs(Heads& heads);
  void turn_untransposed(Heads& heads);
  void turn_as_complex(Heads& heads);
  void turn_by_new_table(Heads& heads);
  Tensor rotate_half(const Tensor& x);
  Tensor turned(const Tensor& x);
  Tensor turned_pairs(const Tensor& x, Scalar table);
  Tensor turned_apart(const Tensor& x);

  // From its operands to its result (lowered_scores.cpp).
  Tensor attended(const Tensor& q, const Tensor& k, const Tensor& v);
  Tensor written_out(const Tensor& q, const Tensor& few_keys, const Tensor& few_values);
  Tensor written_out_in_fp32(const Tensor& q, const Tensor& k, const Tensor& v);
  Tensor by_einsum(const Tensor& q, const Tensor& k, const Tensor& v);
  Tensor softmax_written_out(const Tensor& x);
  Tensor onto_alibi(const Tensor& q, const Tensor& k, const Tensor& v);
  Tensor with_alibi(const Tensor& q, const Tensor& k, const Tensor& v);
  Tensor repeated(const Tensor& x, std::size_t heads_at);
  Tensor merged(const Tensor& y);

  ClassRow row_;
  Activation activation_;
  model::Graph graph_;
  LoweredGraph lowered_;
  const LoweredStep* norm_of_end_ = nullptr;  ///< the last norm, where it is registered behind the blocks
  std::string prefix_;
  struct BufferRow {
    std::size_t before;
    std::string name;
    Dims sizes;
    Scalar scalar;
  };
  std::vector<BufferRow> buffer_rows_;
  std::array<Arguments, 2> arguments_of_kind_;
  Arguments arguments_;         ///< of the block that runs
  Tensors names_of_forward_;    ///< of the model's own
  Tensor positions_;            ///< their embedding, where it is made before it is added
  Tensors names_of_attention_;  ///< of attention's forward()
  Tensor shares_;               ///< attention's, until the block returns
  Tensor returned_;             ///< and what the model still holds of the block before
};

}  // namespace shard::like::eager
