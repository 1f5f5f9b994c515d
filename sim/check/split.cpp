// Follows through the graph which columns of each value a tensor rank has.
#include "sim/check/split.h"

#include <array>
#include <numeric>
#include <string>
#include <vector>

namespace shard::plan::verification {
namespace {

using model::OperatorKind;

/// What a rank has of a value.
struct Has {
  enum class What : std::uint8_t { whole, addend, columns, all_columns } what = What::whole;
  std::vector<std::int64_t> columns{};  ///< columns: of the whole value, by own column; -1: padding
};

class SplitGraph {
 public:
  SplitGraph(const Plan& plan, std::int32_t rank, Faults& faults)
      : graph_(*plan.graph),
        model_(*plan.model),
        degree_(plan.strategy.tensor_parallel),
        rank_(position(plan.topology, rank).tensor),
        faults_(faults),
        has_(graph_.values.size()),
        summed_(graph_.values.size(), false) {}

  void check() {
    faults_.at(nullptr, nullptr);
    if (model_.split.degree != degree_ || model_.split.parameters.size() != model_.parameters.size())
      return faults_.fail("P28", "the model is not cut for the ranks that share it");
    for (std::size_t p = 0; p < model_.parameters.size() && !faults_.failed(); ++p) check_parameter(p);
    for (const model::Operator& op : graph_.operators) {
      if (faults_.failed()) return;
      follow(op);
    }
  }

 private:
  [[nodiscard]] Has& of(model::ValueId v) { return has_[static_cast<std::size_t>(v.value)]; }
  [[nodiscard]] static std::size_t index(model::ParamId p) { return static_cast<std::size_t>(p.value); }
  [[nodiscard]] const model::ParameterSplit& cut(model::ParamId p) const { return model_.split.parameters[index(p)]; }
  void fail(const model::Operator& op, const std::string& what) {
    faults_.fail("P28", "operator '" + op.name + "' " + what);
  }

  /// All ranks together hold every element once.
  void check_parameter(std::size_t p) {
    const model::ParameterSplit& split = model_.split.parameters[p];
    const Parameter& own = model_.parameters[p];
    std::vector<std::int64_t> shape = own.shape;
    if (!split.cut()) {
      if (shape != split.whole)
        faults_.fail("P28", "parameter '" + own.name + "' is smaller than the whole, and not cut");
      return;
    }
    const auto axis = static_cast<std::size_t>(split.axis);
    if (axis >= shape.size()) return faults_.fail("P28", "parameter '" + own.name + "' is cut along no axis");
    std::vector<int> holders(static_cast<std::size_t>(split.whole[axis]), 0);
    for (std::int32_t r = 0; r < degree_; ++r)
      for (std::int64_t i = 0; i < shape[axis]; ++i)
        if (const std::int64_t w = model::whole_index(split, degree_, r, i); w >= 0)
          ++holders[static_cast<std::size_t>(w)];
    shape[axis] = split.whole[axis];
    if (shape != split.whole || std::ranges::any_of(holders, [](int n) { return n != 1; }))
      faults_.fail("P28", "the ranks' parts of parameter '" + own.name + "' are not the whole");
  }

  /// Rows or columns of the whole that this rank has along the cut axis.
  [[nodiscard]] std::vector<std::int64_t> held(model::ParamId p) const {
    const model::ParameterSplit& split = cut(p);
    std::vector<std::int64_t> result;
    const std::int64_t own = model_.parameters[index(p)].shape[static_cast<std::size_t>(split.axis)];
    for (std::int64_t i = 0; i < own; ++i) result.push_back(model::whole_index(split, degree_, rank_, i));
    return result;
  }
  /// Columns [rank * n, (rank + 1) * n), from `first` on.
  [[nodiscard]] std::vector<std::int64_t> run(std::int64_t n, std::int64_t first = 0) const {
    std::vector<std::int64_t> result(static_cast<std::size_t>(n));
    std::iota(result.begin(), result.end(), first + rank_ * n);
    return result;
  }

  bool needs(const model::Operator& op, model::ValueId v, Has::What what) {
    if (of(v).what == what) return true;
    const auto words = [](Has::What w) {
      switch (w) {
        case Has::What::whole: return "all of";
        case Has::What::addend: return "an addend of";
        case Has::What::columns: return "some columns of";
        case Has::What::all_columns: return "the gathered columns of";
      }
      return "?";
    };
    fail(op, std::string("has ") + words(of(v).what) + " '" + graph_.values[static_cast<std::size_t>(v.value)].name +
                 "'; needs " + words(what) + " it");
    return false;
  }

  void linear(const model::Operator& op) {
    const model::ParamId weight = op.params[0];
    const std::int32_t out_axis = op.attributes.weight_in_out ? 1 : 0;
    const model::ValueId x = op.inputs[0];
    Has& y = of(op.outputs[0]);
    const bool by_columns = cut(weight).axis == out_axis;
    for (std::size_t i = 1; i < op.params.size(); ++i)
      if (cut(op.params[i]).cut() != by_columns || (by_columns && held(op.params[i]) != held(weight)))
        return fail(op, "has a bias that is not cut as its result is");
    if (!cut(weight).cut()) {
      needs(op, x, Has::What::whole);
      return;
    }
    if (by_columns) {
      if (!needs(op, x, Has::What::whole)) return;
      if (x != graph_.input && !summed_[static_cast<std::size_t>(x.value)])
        return fail(op, "has an input whose gradient is not summed over the ranks");
      y = {Has::What::columns, held(weight)};
      return;
    }
    if (op.params.size() > 1) return fail(op, "adds its bias once on every rank");
    if (!needs(op, x, Has::What::columns)) return;
    if (of(x).columns != held(weight)) return fail(op, "multiplies columns with rows of other numbers");
    y = {Has::What::addend, {}};
  }

  /// Heads [rank * n, (rank + 1) * n) of D columns each, whose columns begin at `first` of the whole.
  bool has_heads(const model::Operator& op, const std::vector<std::int64_t>& columns, std::size_t from, std::int64_t n,
                 std::int64_t first) {
    const std::vector<std::int64_t> wanted = run(n * op.attributes.head_dim, first);
    if (columns.size() >= from + wanted.size() &&
        std::equal(wanted.begin(), wanted.end(), columns.begin() + static_cast<std::ptrdiff_t>(from)))
      return true;
    fail(op, "has other columns than those of its heads");
    return false;
  }

  void attention(const model::Operator& op) {
    // Which of the whole model's heads it has says which masks are theirs.
    const bool whole = of(op.inputs[0]).what == Has::What::whole;
    if (op.attributes.probability > 0 && op.attributes.parts != (whole ? 0 : degree_))
      return fail(op, "draws masks for other heads than it has");
    if (whole) {
      for (model::ValueId v : op.inputs) needs(op, v, Has::What::whole);
      return;
    }
    for (model::ValueId v : op.inputs)
      if (!needs(op, v, Has::What::columns)) return;
    const model::Attributes& a = op.attributes;
    const bool packed = op.inputs.size() == 1;
    const std::int64_t heads[] = {a.heads, a.kv_heads, a.kv_heads};
    std::size_t from = 0;
    std::int64_t first = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      const Has& x = of(op.inputs[packed ? 0 : i]);
      if (!has_heads(op, x.columns, packed ? from : 0, heads[i], packed ? first : 0)) return;
      from += static_cast<std::size_t>(heads[i] * a.head_dim);
      first += degree_ * heads[i] * a.head_dim;
    }
    of(op.outputs[0]) = {Has::What::columns, run(a.heads * a.head_dim)};
  }

  /// An operator on single columns: its inputs are all whole, or the same columns.
  void by_column(const model::Operator& op) {
    const Has& first = of(op.inputs[0]);
    for (model::ValueId v : op.inputs) {
      if (v == graph_.input || v == graph_.target) continue;
      if (!needs(op, v, first.what)) return;
      if (of(v).columns != first.columns) return fail(op, "has different columns of its inputs");
    }
    if (first.what != Has::What::whole && first.what != Has::What::columns)
      return fail(op, "reads what is not yet exchanged");
    of(op.outputs[0]) = first;
  }

  void table(const model::Operator& op) {
    const model::ParameterSplit& split = cut(op.params[0]);
    const bool position = op.kind == OperatorKind::add_position;
    if (split.axis == 0) return fail(op, "has not all rows of its table");
    if (position && !needs(op, op.inputs[0], split.cut() ? Has::What::columns : Has::What::whole)) return;
    if (!split.cut()) return;
    if (position && of(op.inputs[0]).columns != held(op.params[0])) return fail(op, "adds other columns");
    of(op.outputs[0]) = {Has::What::columns, held(op.params[0])};
  }

  void needs_uncut(const model::Operator& op) {
    for (model::ParamId p : op.params)
      if (cut(p).cut()) fail(op, "has a part of a parameter that it needs whole");
  }

  /// This rank's part of the vocabulary, padding at the end.
  void vocabulary(const model::Operator& op) {
    if (!needs(op, op.inputs[0], Has::What::columns)) return;
    std::vector<std::int64_t> wanted = run(op.attributes.columns);
    for (std::int64_t& w : wanted)
      if (w >= op.attributes.vocabulary) w = -1;
    if (of(op.inputs[0]).columns != wanted) fail(op, "has other logits than those of its part of the vocabulary");
  }

  void rotary(const model::Operator& op) {
    by_column(op);
    const Has& x = of(op.inputs[0]);
    if (x.what == Has::What::columns) has_heads(op, x.columns, 0, op.attributes.heads, 0);
  }

  void table_part(const model::Operator& op) {
    if (cut(op.params[0]).axis != 0) return fail(op, "has a table that is not cut by rows");
    if (const std::vector<std::int64_t> rows = held(op.params[0]);
        rows.front() >= 0 && rows.front() != rank_ * static_cast<std::int64_t>(rows.size()))
      return fail(op, "has other rows than those that it looks up");
    of(op.outputs[0]) = {Has::What::addend, {}};
  }

  void sum(const model::Operator& op) { needs(op, op.inputs[0], Has::What::addend); }

  void input(const model::Operator& op) {
    summed_[static_cast<std::size_t>(op.outputs[0].value)] = true;
    needs(op, op.inputs[0], Has::What::whole);
  }

  void gather(const model::Operator& op) {
    const model::ValueId x = op.inputs[0];
    of(op.outputs[0]) = {Has::What::all_columns, {}};
    if (graph_.values[static_cast<std::size_t>(x.value)].statistic) return;
    if (needs(op, x, Has::What::columns) && of(x).columns != run(static_cast<std::int64_t>(of(x).columns.size())))
      fail(op, "gathers columns that do not lie in rank order");
  }

  void join(const model::Operator& op) { needs(op, op.inputs[0], Has::What::all_columns); }

  void take(const model::Operator& op) {
    of(op.outputs[0]) = {Has::What::columns, run(op.attributes.columns / degree_)};
    needs(op, op.inputs[0], Has::What::whole);
  }

  void part(const model::Operator& op) {
    of(op.outputs[0]) = of(op.inputs[0]);
    needs(op, op.inputs[0], Has::What::columns);
  }

  void vocabulary_loss(const model::Operator& op) {
    vocabulary(op);
    needs(op, op.inputs[2], Has::What::all_columns);
  }

  struct Rule {
    OperatorKind kind;
    void (SplitGraph::*check)(const model::Operator& op);
  };
  static constexpr std::array kRules = std::to_array<Rule>({
      {OperatorKind::linear, &SplitGraph::linear},
      {OperatorKind::attention, &SplitGraph::attention},
      {OperatorKind::rotary, &SplitGraph::rotary},
      {OperatorKind::embedding, &SplitGraph::table},
      {OperatorKind::add_position, &SplitGraph::table},
      {OperatorKind::embedding_part, &SplitGraph::table_part},
      {OperatorKind::tensor_sum, &SplitGraph::sum},
      {OperatorKind::tensor_input, &SplitGraph::input},
      {OperatorKind::tensor_gather, &SplitGraph::gather},
      {OperatorKind::tensor_part, &SplitGraph::part},
      {OperatorKind::join_columns, &SplitGraph::join},
      {OperatorKind::take_columns, &SplitGraph::take},
      {OperatorKind::vocabulary_statistics, &SplitGraph::vocabulary},
      {OperatorKind::cross_entropy_part, &SplitGraph::vocabulary_loss},
  });

  static constexpr bool complete() {
    for (const model::OperatorRow& row : model::operators::kTable) {
      std::size_t rules = 0;
      for (const Rule& rule : kRules) rules += rule.kind == row.kind ? 1U : 0U;
      if (rules != (row.columns == model::Columns::own_rule ? 1U : 0U)) return false;
    }
    return true;
  }

  void follow(const model::Operator& op) {
    static_assert(complete(), "a rule for each operator that the table gives its own");
    switch (model::row(op.kind).columns) {
      case model::Columns::any: return by_column(op);
      case model::Columns::all:
        needs_uncut(op);
        for (model::ValueId v : op.inputs) needs(op, v, Has::What::whole);
        return;
      case model::Columns::own_rule: break;
    }
    for (const Rule& rule : kRules)
      if (rule.kind == op.kind) return (this->*rule.check)(op);
  }

  const model::Graph& graph_;
  const model::Model& model_;
  std::int32_t degree_;
  std::int32_t rank_;
  Faults& faults_;
  std::vector<Has> has_;      // by value
  std::vector<bool> summed_;  // by value: its gradient is summed over the ranks
};

}  // namespace

void check_split(const Plan& plan, std::int32_t rank, Faults& faults) {
  if (plan.strategy.tensor_parallel > 1) SplitGraph(plan, rank, faults).check();
}

}  // namespace shard::plan::verification
