// Do graphs of random configurations keep the rules of graph.h?
#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <set>
#include <string>

#include "sim/model/graph.h"
#include "sim/model/graph_limits.h"
#include "tests/model/make_model.h"

namespace shard::model {
namespace {

using Shape = std::vector<std::int64_t>;

class RandomConfig {
 public:
  explicit RandomConfig(unsigned seed) : random_(seed) {}
  std::int64_t upto(std::int64_t most) { return std::uniform_int_distribution<std::int64_t>(1, most)(random_); }
  std::string flag() { return upto(2) == 1 ? "true" : "false"; }
  static std::string field(const std::string& key, std::int64_t value) {
    return ", \"" + key + "\": " + std::to_string(value);
  }
  std::string json() {
    const std::int64_t family = upto(3);
    if (family == 1) {
      const std::int64_t heads = upto(4);
      return R"({"model_type": "gpt2")" + field("n_head", heads) + field("n_embd", heads * upto(6)) +
             field("n_layer", upto(4)) + field("n_inner", upto(30)) + field("vocab_size", upto(40)) +
             field("n_positions", upto(9)) + ", \"tie_word_embeddings\": " + flag() + "}";
    }
    if (family == 2) {
      const std::int64_t kv = upto(3);
      return R"({"model_type": "llama")" + field("num_key_value_heads", kv) +
             field("num_attention_heads", kv * upto(3)) + field("head_dim", 2 * upto(4)) +
             field("hidden_size", upto(20)) + field("intermediate_size", upto(30)) +
             field("num_hidden_layers", upto(4)) + field("vocab_size", upto(40)) +
             field("max_position_embeddings", upto(9)) + ", \"tie_word_embeddings\": " + flag() +
             ", \"attention_bias\": " + flag() + ", \"mlp_bias\": " + flag() + "}";
    }
    std::string sizes = std::to_string(upto(20));
    for (std::int64_t i = upto(5); i > 0; --i) sizes += ", " + std::to_string(upto(20));
    return R"({"model_type": "mlp", "sizes": [)" + sizes + R"(], "bias": )" + flag() + R"(, "loss": ")" +
           (upto(2) == 1 ? "mse" : "cross_entropy") + "\"}";
  }

 private:
  std::mt19937 random_;
};

/// One model and its graph, with lookups by id.
struct Built {
  Model model;
  Graph graph;
  const Value& value(ValueId id) const { return graph.values.at(static_cast<std::size_t>(id.value)); }
  const Shape& parameter(ParamId id) const { return model.parameters.at(static_cast<std::size_t>(id.value)).shape; }
};

void expect_parameters_match_attributes(const Built& b, const Operator& op) {
  const Attributes& a = op.attributes;
  std::vector<Shape> shapes;
  for (ParamId id : op.params) shapes.push_back(b.parameter(id));
  std::vector<Shape> expected;
  switch (op.kind) {
    case OperatorKind::embedding: expected = {{b.model.vocabulary, a.out_columns}}; break;
    case OperatorKind::add_position: expected = {{b.model.max_sequence, a.columns}}; break;
    case OperatorKind::layer_norm: expected = {{a.columns}, {a.columns}}; break;
    case OperatorKind::rms_norm: expected = {{a.columns}}; break;
    case OperatorKind::linear:
      expected = {a.weight_in_out ? Shape{a.columns, a.out_columns} : Shape{a.out_columns, a.columns}};
      if (a.has_bias) expected.push_back({a.out_columns});
      break;
    case OperatorKind::rotary:
    case OperatorKind::attention:
    case OperatorKind::gelu:
    case OperatorKind::swiglu:
    case OperatorKind::add:
    case OperatorKind::dropout:
    case OperatorKind::scale:
    case OperatorKind::relu:
    case OperatorKind::gelu_erf:
    case OperatorKind::geglu:
    case OperatorKind::split_groups:
    case OperatorKind::cross_entropy:
    case OperatorKind::mse: break;
    case OperatorKind::tensor_sum:
    case OperatorKind::tensor_input:
    case OperatorKind::tensor_gather:
    case OperatorKind::tensor_part:
    case OperatorKind::join_columns:
    case OperatorKind::take_columns:
    case OperatorKind::add_bias:
    case OperatorKind::embedding_part:
    case OperatorKind::vocabulary_statistics:
    case OperatorKind::cross_entropy_part: ADD_FAILURE() << op.name << " belongs to ranks that share a model"; break;
  }
  EXPECT_EQ(shapes, expected) << op.name;
}

void expect_shapes_match_attributes(const Built& b, const Operator& op) {
  const Attributes& a = op.attributes;
  const Value& first = b.value(op.inputs.front());
  const Value& result = b.value(op.outputs.front());
  EXPECT_EQ(a.rows, a.batch * a.sequence) << op.name;
  EXPECT_EQ(a.rows * a.columns, first.elements()) << op.name;
  EXPECT_EQ(result.dtype, Dtype::f32) << op.name;
  switch (op.kind) {
    case OperatorKind::embedding:
    case OperatorKind::linear: EXPECT_EQ(result.elements(), a.rows * a.out_columns) << op.name; break;
    case OperatorKind::add_position:
    case OperatorKind::layer_norm:
    case OperatorKind::rms_norm:
    case OperatorKind::dropout:
    case OperatorKind::scale:
    case OperatorKind::relu:
    case OperatorKind::gelu_erf:
    case OperatorKind::split_groups:
    case OperatorKind::gelu: EXPECT_EQ(result.shape, first.shape) << op.name; break;
    case OperatorKind::rotary:
      EXPECT_EQ(result.shape, first.shape) << op.name;
      EXPECT_EQ(a.columns, a.heads * a.head_dim) << op.name;
      break;
    case OperatorKind::swiglu:
    case OperatorKind::geglu:
    case OperatorKind::add:
      EXPECT_EQ(result.shape, first.shape) << op.name;
      EXPECT_EQ(b.value(op.inputs.at(1)).shape, first.shape) << op.name;
      break;
    case OperatorKind::attention:
      EXPECT_EQ(result.shape, (Shape{a.batch, a.sequence, a.heads * a.head_dim})) << op.name;
      EXPECT_EQ(b.value(op.outputs.at(1)).shape, (Shape{a.batch, a.heads, a.sequence})) << op.name;
      EXPECT_EQ(a.heads % a.kv_heads, 0) << op.name;
      if (op.inputs.size() == 1) {
        EXPECT_EQ(a.columns, 3 * a.heads * a.head_dim) << op.name;
      } else {
        ASSERT_EQ(op.inputs.size(), 3U) << op.name;
        EXPECT_EQ(a.columns, a.heads * a.head_dim) << op.name;
        for (std::size_t i : {1U, 2U}) {
          EXPECT_EQ(b.value(op.inputs[i]).elements(), a.rows * a.kv_heads * a.head_dim) << op.name;
        }
      }
      break;
    case OperatorKind::cross_entropy:
    case OperatorKind::mse: EXPECT_EQ(result.shape, Shape{1}) << op.name; break;
    case OperatorKind::tensor_sum:
    case OperatorKind::tensor_input:
    case OperatorKind::tensor_gather:
    case OperatorKind::tensor_part:
    case OperatorKind::join_columns:
    case OperatorKind::take_columns:
    case OperatorKind::add_bias:
    case OperatorKind::embedding_part:
    case OperatorKind::vocabulary_statistics:
    case OperatorKind::cross_entropy_part: ADD_FAILURE() << op.name << " belongs to ranks that share a model"; break;
  }
}

TEST(GraphProperties, HoldForRandomConfigurations) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    RandomConfig random(seed);
    const std::string json = random.json();
    SCOPED_TRACE(json);
    Built b{make_model(json), {}};
    ASSERT_FALSE(b.model.parameters.empty());
    ASSERT_EQ(b.model.parameters.size(), b.model.initialization.size());
    ASSERT_EQ(b.model.parameters.size(), b.model.parameter_block.size());
    const std::int64_t batch = random.upto(3);
    const std::int64_t sequence = random.upto(b.model.max_sequence);
    ASSERT_TRUE(check_batch(b.model, batch, sequence));
    b.graph = build_graph(b.model, batch, sequence);

    std::set<ValueId> produced{b.graph.input, b.graph.target};
    std::set<ParamId> used;
    std::set<std::string> names;
    for (const Operator& op : b.graph.operators) {
      EXPECT_TRUE(names.insert(op.name).second) << op.name << " is not unique";
      for (ValueId id : op.inputs) EXPECT_TRUE(produced.contains(id)) << op.name << " reads what nobody produced";
      for (ValueId id : op.outputs) EXPECT_TRUE(produced.insert(id).second) << op.name << " overwrites a value";
      for (ParamId id : op.params) {
        used.insert(id);
        const std::int32_t block = b.model.parameter_block.at(static_cast<std::size_t>(id.value));
        EXPECT_EQ(block, op.block) << op.name;
      }
      expect_parameters_match_attributes(b, op);
      expect_shapes_match_attributes(b, op);
    }
    EXPECT_EQ(produced.size(), b.graph.values.size());
    EXPECT_EQ(used.size(), b.model.parameters.size());
    EXPECT_EQ(b.graph.loss, b.graph.operators.back().outputs.front());
    for (const Parameter& p : b.model.parameters) {
      EXPECT_EQ(p.elems.count(), std::accumulate(p.shape.begin(), p.shape.end(), std::int64_t{1}, std::multiplies<>()));
    }
  }
}

TEST(GraphProperties, BlocksAreContiguousInParametersAndOperators) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    RandomConfig random(seed);
    const Model model = make_model(random.json());
    const auto count_changes = [](const std::vector<std::int32_t>& blocks) {
      std::set<std::int32_t> seen;
      std::int64_t changes = 0;
      for (std::size_t i = 0; i < blocks.size(); ++i) {
        if (blocks[i] < 0) continue;
        seen.insert(blocks[i]);
        if (i == 0 || blocks[i] != blocks[i - 1]) ++changes;
      }
      return std::pair{changes, static_cast<std::int64_t>(seen.size())};
    };
    std::vector<std::int32_t> operators;
    for (const Operator& op : build_graph(model, 1, 1).operators) operators.push_back(op.block);
    EXPECT_EQ(count_changes(model.parameter_block), (std::pair{model.layers, model.layers}));
    EXPECT_EQ(count_changes(operators), (std::pair{model.layers, model.layers}));
  }
}

}  // namespace
}  // namespace shard::model
