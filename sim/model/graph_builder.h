// Appends operators to a Graph: works out shapes and attributes, and finds parameters by module name.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "sim/model/graph.h"

namespace shard::model {

/// Used by the families' graph functions. `module` is the operator's name; its parameters are the model's
/// `module`.weight and `module`.bias. A parameter that the model lacks is a broken invariant and asserts.
class GraphBuilder {
 public:
  GraphBuilder(const Model& model, std::int64_t batch, std::int64_t sequence);

  /// Operators added from now on belong to this block (-1: none).
  void set_block(std::int32_t block) { block_ = block; }

  /// Sets Graph::input and Graph::target.
  ValueId input(std::vector<std::int64_t> shape, Dtype dtype);
  ValueId target(std::vector<std::int64_t> shape, Dtype dtype);

  [[nodiscard]] ValueId embedding(std::string_view module, ValueId tokens);
  /// `first_row`: the table's row of position 0.
  [[nodiscard]] ValueId add_position(std::string_view module, ValueId x, std::int64_t first_row = 0);
  [[nodiscard]] ValueId layer_norm(std::string_view module, ValueId x);
  /// `weight_offset` is added to each weight.
  [[nodiscard]] ValueId rms_norm(std::string_view module, ValueId x, float weight_offset = 0);
  /// A bias is used if the model has one for `module`.
  [[nodiscard]] ValueId linear(std::string_view module, ValueId x, bool weight_in_out);
  /// The same with a weight [O, I] that may belong to another module.
  [[nodiscard]] ValueId linear_with(std::string_view module, std::string_view weight, ValueId x);
  /// `out_columns` of the product with a weight that several of these share, and its bias if there is one: the queries
  /// of a weight of queries, keys and values, or the experts that a token goes to of all experts' weights.
  [[nodiscard]] ValueId part(std::string_view module, std::string_view weight, ValueId x, std::int64_t out_columns);
  /// x + the parameter, whatever its shape, in x's place.
  [[nodiscard]] ValueId add_bias(std::string_view module, std::string_view bias, ValueId x);
  /// rms_norm of each part of x that is as wide as the norm's weight.
  [[nodiscard]] ValueId head_norm(std::string_view module, ValueId x);
  /// `heads` of the model's head_dim each turn, `passed` behind them do not.
  [[nodiscard]] ValueId rotary(std::string_view module, ValueId x, std::int64_t heads, std::int64_t passed = 0);
  /// Queries, keys and values of all heads out of those of each key head.
  [[nodiscard]] ValueId split_groups(std::string_view module, ValueId x);
  /// `inputs` is {qkv} or {q, k, v}; probabilities are dropped as dropout() drops.
  [[nodiscard]] ValueId attention(std::string_view module, std::vector<ValueId> inputs);
  /// gelu, gelu_erf or relu.
  [[nodiscard]] ValueId activation(OperatorKind kind, std::string_view module, ValueId x);
  /// swiglu or geglu.
  [[nodiscard]] ValueId gated(OperatorKind kind, std::string_view module, ValueId gate, ValueId up);
  /// Of gates and ups in one value.
  [[nodiscard]] ValueId swiglu_packed(std::string_view module, ValueId x);
  /// x times `factor`, in x's place.
  [[nodiscard]] ValueId scale(std::string_view module, ValueId x, float factor);
  [[nodiscard]] ValueId add(std::string_view module, ValueId a, ValueId b);
  /// x itself where the model drops nothing.
  ValueId dropout(std::string_view module, ValueId x);
  /// Sets Graph::loss.
  void cross_entropy(std::string_view module, ValueId logits, ValueId targets);
  void mse(std::string_view module, ValueId prediction, ValueId targets);

  [[nodiscard]] Graph finish() && { return std::move(graph_); }

 private:
  [[nodiscard]] const Value& value(ValueId id) const { return graph_.values[static_cast<std::size_t>(id.value)]; }
  [[nodiscard]] ParamId parameter(const std::string& name) const;
  ValueId add_value(std::string name, std::vector<std::int64_t> shape, Dtype dtype = Dtype::f32);
  /// An operator with inputs, rows, columns, batch, sequence and block filled.
  [[nodiscard]] Operator start(OperatorKind kind, std::string_view module, std::vector<ValueId> inputs) const;
  /// An output beside the result: the value "OPERATOR" + suffix.
  struct Statistic {
    const char* suffix;
    std::vector<std::int64_t> shape;
  };
  /// Appends it with a result of `shape`, which it returns.
  ValueId append(Operator op, std::vector<std::int64_t> shape, std::vector<Statistic> statistics = {});
  ValueId norm(OperatorKind kind, std::string_view module, ValueId x, float weight_offset);

  // Tensor parallelism.
  [[nodiscard]] std::int64_t degree() const { return model_.split.degree; }
  [[nodiscard]] bool megatron() const { return model_.split.layout == TensorLayout::megatron; }
  /// The axis that a parameter is cut along, -1: none.
  [[nodiscard]] std::int32_t cut_axis(ParamId id) const;
  [[nodiscard]] bool parted(ValueId id) const { return parted_.contains(id.value); }
  ValueId mark_parted(ValueId id, bool is = true);
  /// All columns of x.
  ValueId whole(ValueId x);
  /// x as the input of products with this rank's columns: its gradient is summed over the ranks.
  ValueId shared_input(ValueId x);
  /// This rank's columns of x.
  ValueId own_columns(ValueId x);
  /// An operator of one input that keeps its shape.
  ValueId same_shape(OperatorKind kind, std::string name, ValueId x);
  ValueId product(std::string_view module, ParamId weight, ValueId x, bool weight_in_out);
  void cross_entropy_of_parts(std::string_view module, ValueId logits, ValueId targets);

  const Model& model_;
  std::int64_t batch_;
  std::int64_t sequence_;
  std::int32_t block_ = -1;
  std::int32_t masks_ = 0;
  std::unordered_map<std::string_view, std::int32_t> parameter_index_;
  Graph graph_;
  std::unordered_set<std::int32_t> parted_;                 ///< values of which this rank has its columns
  std::unordered_map<std::int32_t, ValueId> whole_;         ///< by parted value: all its columns
  std::unordered_map<std::int32_t, ValueId> shared_input_;  ///< by value
};

}  // namespace shard::model
