// The operators of a family's table as eager PyTorch runs them: what transformers' modules of a class call for each.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/like/eager/activations.h"
#include "sim/like/eager/hugging_face.h"

namespace shard::like::eager {

/// How queries, keys and values come out of their product.
enum class Projections : std::uint8_t {
  apart,            ///< a product each
  apart_by_turns,   ///< the same, each seen as heads before the next one is made
  packed,           ///< behind one another, sliced apart
  split,            ///< behind one another, split()
  chunked_by_head,  ///< each head's three together, chunk()
  multi_query,      ///< gpt_bigcode: split(), one head of keys and values; or each head's three together
};

/// How rotary positions are applied.
enum class Rotation : std::uint8_t {
  none,
  whole,          ///< apply_rotary_pos_emb of whole heads
  part_by_names,  ///< parts that turn and that do not have names until attention returns
  part_within,    ///< apply_rotary_pos_emb cuts heads, and joins both of them behind both
  part_at_once,   ///< the same, one behind the other
};

/// What rms_norm multiplies with.
enum class Norm : std::uint8_t {
  by_weight,
  by_one_more,  ///< 1 + weight, in fp32 throughout
};

/// In which order a block that runs attention and mlp side by side sums them up with its input x.
enum class Sum : std::uint8_t { attention_mlp_x, mlp_attention_x, x_attention_mlp };

/// How long names of a block's forward() hold values: those of norms, and of attention's result.
enum class Names : std::uint8_t {
  rebound,          ///< a norm's until the module that it is for returns
  passed,           ///< the same; attention's until the block returns
  until_sum,        ///< a norm's until the next sum; attention's until the block returns
  first_until_end,  ///< the first norm's and attention's until the block returns, else as rebound
  until_end,        ///< both until the block returns
};

/// Where the mask is made.
enum class MaskAt : std::uint8_t { behind_ids, behind_position_embeddings };

/// What transformers' code of a class does that the family's table does not say.
struct ClassRow {
  std::string_view class_name;
  Projections projections = Projections::apart;
  Rotation rotation = Rotation::none;
  Norm norm = Norm::by_weight;
  Sum sum = Sum::attention_mlp_x;
  Names names = Names::rebound;
  MaskAt mask = MaskAt::behind_ids;
  std::string_view activation = "silu";  ///< where the configuration's word is not known
  std::string_view rotary_before{};      ///< the module that is registered behind rotary_emb; empty: the head
  bool softmax_in_fp32 = true;           ///< of attention written out
  bool scaled_embedding = false;         ///< a buffer of one number behind the embedding's table
  bool mask_buffer = false;              ///< a mask of all positions behind the parameters of the model's own part
};

/// None where transformers' code of the class is not known.
[[nodiscard]] const ClassRow* class_row(std::string_view class_name);
/// The configuration's, else the class's own.
[[nodiscard]] std::string_view word_of_activation(const model::Model& model, const ClassRow& row);

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
};

/// The graph's operators of the model's own part in front of the blocks, of each block, and behind the blocks up to
/// the last norm or product before the head.
struct LoweredGraph {
  LoweredPart before, behind;
  std::vector<LoweredPart> blocks;
  const model::Operator* head = nullptr;
};
/// Borrows `graph`.
[[nodiscard]] LoweredGraph lowered_graph(const model::Graph& graph, Names names);

/// Queries, keys and values on their way to attention. Names that the module's forward() has live as long.
struct Heads {
  Tensor q, k, v;
  Tensors names;
};

/// A decoder that is run as its family's table says.
class LoweredDecoder final : public HuggingFace {
 public:
  LoweredDecoder(Runtime& runtime, const model::Model& model, const ProgramOptions& options, const ClassRow& row);

 protected:
  void make_buffers_before(std::size_t parameter) override;
  [[nodiscard]] std::string block_prefix() const override { return prefix_; }
  [[nodiscard]] Scalar softmax_type() const override { return row_.softmax_in_fp32 ? Scalar::f32 : options_.precision; }
  [[nodiscard]] const Tensor& head() const override { return weight(*lowered_.head); }
  [[nodiscard]] Tensor head_bias() const override {
    return lowered_.head->params.size() > 1 ? weight(*lowered_.head, 1) : Tensor{};
  }
  Tensor decoder() override;
  Tensor block(std::int64_t l, const Tensor& x) override;
  [[nodiscard]] std::function<Tensor(const Tensor&)> with_arguments(std::int64_t l) override;

 private:
  using Values = std::vector<Tensor>;
  /// What a block's call has beside x and the mask.
  struct Arguments {
    Tensor cosine, sine, ids;
  };

  void list_buffers();
  [[nodiscard]] std::size_t place_of_head() const;
  [[nodiscard]] std::int64_t rotary_columns() const;
  [[nodiscard]] std::string_view own_part() const {
    return std::string_view(prefix_).substr(0, prefix_.rfind('.', prefix_.size() - 2));
  }
  Tensor run(const LoweredPart& part, const Tensor& x);
  Tensor run(const LoweredStep& step, const Values& values);

  // Each of a kind of operator.
  Tensor attention_of(const LoweredStep& step, const Values& values);
  Tensor embedded(const LoweredStep& step, const Values& values);
  Tensor with_positions(const LoweredStep& step, const Values& values);
  Tensor layer_norm_of(const LoweredStep& step, const Values& values);
  Tensor rms_norm_of(const LoweredStep& step, const Values& values);
  Tensor gated(const LoweredStep& step, const Values& values);
  Tensor linear_of(const LoweredStep& step, const Values& values);
  Tensor activated(const LoweredStep& step, const Values& values);
  Tensor summed(const LoweredStep& step, const Values& values);
  Tensor dropped(const LoweredStep& step, const Values& values);
  Tensor passed(const LoweredStep& step, const Values& values);

  [[nodiscard]] const Tensor& weight(const model::Operator& op, std::size_t i = 0) const {
    return parameter(static_cast<std::size_t>(op.params[i].value));
  }
  void rotary_tables();
  Tensor product(const model::Operator& op, const Tensor& x);
  Tensor norm(const model::Operator& op, const Tensor& x);
  Tensor rms_norm(const Tensor& input, const Tensor& weight);
  Tensor rms_norm_by_one_more(const Tensor& input, const Tensor& weight);

  // Attention, from its input to the product behind it.
  Heads projected(const LoweredStep& step, const Tensor& x);
  Heads by_turns(const LoweredStep& step, const Tensor& x);
  Heads packed(const model::Operator& op, const Tensor& x);
  Heads multi_query(const model::Operator& op, const Tensor& x);
  void turn(Heads& heads);
  void turn_parts(Heads& heads);
  Tensor rotate_half(const Tensor& x);
  Tensor turned(const Tensor& x);

  ClassRow row_;
  Activation activation_;
  model::Graph graph_;
  LoweredGraph lowered_;
  std::string prefix_;
  struct BufferRow {
    std::size_t before;
    std::string name;
    Dims sizes;
    Scalar scalar;
  };
  std::vector<BufferRow> buffer_rows_;
  Tensors buffers_;
  Arguments arguments_;
  Tensors embedded_;  ///< names of the model's forward()
};

}  // namespace shard::like::eager
