// The operators of a family, row by row: RESULT OPERATOR MODULE INPUT... , with names for values in between.
#include <cassert>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "sim/model/family.h"
#include "sim/model/graph_builder.h"

namespace shard::model {
namespace {

class OperatorWriter {
 public:
  OperatorWriter(const Model& model, std::int64_t batch, std::int64_t sequence)
      : model_(model), family_(*model.described), values_(family_.values), graph_(model, batch, sequence) {
    named_["tokens"] = graph_.input({batch, sequence}, Dtype::i32);
    named_["targets"] = graph_.target({batch, sequence}, Dtype::i32);
  }

  void write(const std::vector<TableRow>& rows, const std::string& prefix) {
    for (const TableRow& row : rows) {
      if (!row.only.empty() && evaluate(row.only, values_) == 0) continue;
      if (row.word == "when") {
        if (evaluate(row.arguments.front(), values_) != 0) write(row.rows, prefix);
      } else if (row.word == "under") {
        write(row.rows, prefix + std::string(row.arguments.front()) + ".");
      } else if (row.word == "blocks") {
        blocks(row, prefix);
      } else if (row.word == "loss") {
        graph_.cross_entropy("loss", value(row.arguments[0]), named_.at("targets"));
      } else {
        named_[row.word] = result(row, prefix + std::string(row.arguments.at(1)), prefix);
      }
    }
  }
  [[nodiscard]] Graph finish() && { return std::move(graph_).finish(); }

 private:
  void blocks(const TableRow& row, const std::string& prefix) {
    const std::int64_t count = evaluate(row.arguments[0], values_);
    for (std::int64_t i = 0; i < count; ++i) {
      enter_layer(family_, i, values_);
      graph_.set_block(static_cast<std::int32_t>(i));
      write(row.rows, prefix + std::string(row.arguments[1]) + "." + std::to_string(i) + ".");
    }
    graph_.set_block(-1);
  }
  [[nodiscard]] ValueId value(std::string_view name) const {
    const auto found = named_.find(name);
    assert(found != named_.end() && "a family's table names a value before it is made");
    return found->second;
  }
  /// Arguments: operator, module, inputs, and what else the operator needs.
  ValueId result(const TableRow& row, const std::string& module, const std::string& prefix) {
    const std::string_view kind = row.arguments[0];
    const auto input = [&](std::size_t i) { return value(row.arguments.at(2 + i)); };
    const auto size = [&](std::size_t i) { return evaluate(row.arguments.at(2 + i), values_); };
    if (kind == "embedding") return graph_.embedding(module, input(0));
    if (kind == "add_position") return graph_.add_position(module, input(0), optional_size(row, 1));
    if (kind == "layer_norm") return graph_.layer_norm(module, input(0));
    if (kind == "rms_norm") return graph_.rms_norm(module, input(0), static_cast<float>(optional_size(row, 1)));
    if (kind == "head_norm") return graph_.head_norm(module, input(0));
    if (kind == "linear") return graph_.linear(module, input(0), false);
    if (kind == "conv1d") return graph_.linear(module, input(0), true);
    if (kind == "part") return graph_.part(module, prefix + std::string(row.arguments.at(4)), input(0), size(1));
    if (kind == "add_bias") return graph_.add_bias(module, prefix + std::string(row.arguments.at(3)), input(0));
    if (kind == "head") {
      const std::string shared(row.arguments.at(3));
      return graph_.linear_with(module, model_.tied_embeddings ? shared : module + ".weight", input(0));
    }
    if (kind == "rotary") return rotary(module, input(0), row.arguments.at(3));
    if (kind == "split_groups") return graph_.split_groups(module, input(0));
    if (kind == "attention") {
      std::vector<ValueId> inputs;
      for (std::size_t i = 2; i < row.arguments.size(); ++i) inputs.push_back(value(row.arguments[i]));
      return graph_.attention(module, std::move(inputs));
    }
    if (kind == "gelu") return graph_.activation(OperatorKind::gelu, module, input(0));
    if (kind == "gelu_erf") return graph_.activation(OperatorKind::gelu_erf, module, input(0));
    if (kind == "relu") return graph_.activation(OperatorKind::relu, module, input(0));
    if (kind == "swiglu" && row.arguments.size() == 3) return graph_.swiglu_packed(module, input(0));
    if (kind == "swiglu") return graph_.gated(OperatorKind::swiglu, module, input(0), input(1));
    if (kind == "geglu") return graph_.gated(OperatorKind::geglu, module, input(0), input(1));
    if (kind == "times_root")
      return graph_.scale(module, input(0), static_cast<float>(std::sqrt(static_cast<double>(size(1)))));
    if (kind == "dropout") return graph_.dropout(module, input(0));
    assert(kind == "add" && "a family's table has an operator that is none");
    return graph_.add(module, input(0), input(1));
  }
  /// 0 where the row has none.
  [[nodiscard]] std::int64_t optional_size(const TableRow& row, std::size_t i) const {
    return row.arguments.size() > 2 + i ? evaluate(row.arguments[2 + i], values_) : 0;
  }
  /// Of the heads of a rank's part where ranks share the model. "packed": queries, keys and values in one.
  ValueId rotary(const std::string& module, ValueId x, std::string_view which) {
    if (which == "packed") return graph_.rotary(module, x, model_.heads + model_.kv_heads, model_.kv_heads);
    return graph_.rotary(module, x, which == "kv_heads" ? model_.kv_heads : model_.heads);
  }

  const Model& model_;
  const FamilyValues& family_;
  Values values_;
  GraphBuilder graph_;
  std::map<std::string_view, ValueId> named_;
};

}  // namespace

Graph family_graph(const Model& model, std::int64_t batch, std::int64_t sequence) {
  assert(model.described && !model.not_simulated);
  OperatorWriter writer(model, batch, sequence);
  writer.write(model.described->table->operators, "");
  return std::move(writer).finish();
}

}  // namespace shard::model
