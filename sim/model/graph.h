// The forward graph of one micro-batch: operators over values and parameters, shapes fixed, nothing differentiated yet.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/model/parameters.h"
#include "sim/model/split.h"
#include "traces/base/dtype.h"
#include "traces/base/ids.h"
#include "traces/base/units.h"

namespace shard::model {

/// Index into Graph::values.
using ValueId = Id<struct ValueTag>;
/// Index into Model::parameters.
using ParamId = Id<struct ParamTag>;

/// T = B x S tokens (mlp: T = B samples), C = hidden size. Row-major, last dimension contiguous.
enum class OperatorKind : std::uint8_t {
  embedding,     ///< in: tokens i32 [B,S]; params: table [V,C]; out: y [B,S,C]
  add_position,  ///< in: x [B,S,C]; params: table [P,C]; out: y = x + table[s]
  layer_norm,    ///< in: x [B,S,C]; params: weight [C], bias [C]; out: y, mean [T], rstd [T]
  rms_norm,      ///< in: x [B,S,C]; params: weight [C]; out: y, rstd [T]
  linear,  ///< in: x [..,I]; params: weight, optional bias [O]; out: y [..,O]; weight [O,I], or [I,O] if weight_in_out
  rotary,  ///< in: x [B,S,H*D]; out: y; rotate-half pairs (i, i + D/2) as Hugging Face llama
  attention,      ///< causal; in: qkv [B,S,3C] packed q|k|v, or q [B,S,H*D], k and v [B,S,K*D]; out: y [B,S,H*D], lse
                  ///< [B,H,S]; drops shares of v as dropout does elements
  gelu,           ///< tanh approximation; in: x; out: y
  swiglu,         ///< in: gate, up; out: y = silu(gate) * up
  add,            ///< in: a, b; out: y = a + b
  dropout,        ///< in: x; out: y, in x's place: 0 with a probability, else x / (1 - probability)
  cross_entropy,  ///< in: logits [B,S,V], targets i32 [B,S]; out: loss [1] (mean over T), lse [T]
  mse,            ///< in: prediction [B,O], target [B,O]; out: loss [1] (mean over all elements)
  // Tensor parallelism (split.h): N ranks, of which each has its own part of some values. Four only exchange:
  tensor_sum,  ///< in: x, to be summed over the ranks; out: y = the sum, in x's place; backward passes the gradient on
  tensor_input,    ///< in: x, the same on all ranks; out: y = x; backward sums the gradient over the ranks
  tensor_gather,   ///< in: x; out: y [N, shape of x] of all ranks; backward is that of the join_columns behind it
  tensor_part,     ///< in: x, this rank's columns; out: y = x; backward gathers the gradient, [N, shape of x]
  join_columns,    ///< in: x [N,B,S,C/N]; out: y [B,S,C]
  take_columns,    ///< in: x [B,S,C]; out: y [B,S,C/N], this rank's
  add_bias,        ///< in: x [..,O]; params: bias [O]; out: y = x + bias, in x's place
  embedding_part,  ///< in: tokens; params: this rank's rows of the table [V/N,C]; out: y, zero where a token is not
                   ///< here
  vocabulary_statistics,  ///< in: this rank's logits [B,S,V/N], targets; out: [3,T]: maximum, sum of exponentials,
                          ///< target
  cross_entropy_part,     ///< in: logits, targets, statistics of all ranks [N,3,T]; out: loss [1], lse [T]
};

[[nodiscard]] constexpr const char* to_string(OperatorKind kind) {
  switch (kind) {
    case OperatorKind::embedding: return "embedding";
    case OperatorKind::add_position: return "add_position";
    case OperatorKind::layer_norm: return "layer_norm";
    case OperatorKind::rms_norm: return "rms_norm";
    case OperatorKind::linear: return "linear";
    case OperatorKind::rotary: return "rotary";
    case OperatorKind::attention: return "attention";
    case OperatorKind::gelu: return "gelu";
    case OperatorKind::swiglu: return "swiglu";
    case OperatorKind::add: return "add";
    case OperatorKind::dropout: return "dropout";
    case OperatorKind::cross_entropy: return "cross_entropy";
    case OperatorKind::mse: return "mse";
    case OperatorKind::tensor_sum: return "tensor_sum";
    case OperatorKind::tensor_input: return "tensor_input";
    case OperatorKind::tensor_gather: return "tensor_gather";
    case OperatorKind::tensor_part: return "tensor_part";
    case OperatorKind::join_columns: return "join_columns";
    case OperatorKind::take_columns: return "take_columns";
    case OperatorKind::add_bias: return "add_bias";
    case OperatorKind::embedding_part: return "embedding_part";
    case OperatorKind::vocabulary_statistics: return "vocabulary_statistics";
    case OperatorKind::cross_entropy_part: return "cross_entropy_part";
  }
  return "?";
}

/// Operators that compute nothing: tensor-parallel ranks exchange their parts of a value, or of its gradient.
[[nodiscard]] constexpr bool exchanges(OperatorKind kind) {
  return kind == OperatorKind::tensor_sum || kind == OperatorKind::tensor_input ||
         kind == OperatorKind::tensor_gather || kind == OperatorKind::tensor_part;
}

/// A tensor that flows between operators.
struct Value {
  std::string name;
  std::vector<std::int64_t> shape;
  Dtype dtype = Dtype::f32;
  bool statistic = false;  ///< fp32 in every precision: a loss, or what backward reads beside results
  [[nodiscard]] std::int64_t elements() const {
    std::int64_t n = 1;
    for (std::int64_t d : shape) n *= d;
    return n;
  }
  [[nodiscard]] Bytes bytes() const { return Bytes{elements() * bytes_per_element(dtype)}; }
};

/// Attributes of an operator; a kind reads only its own.
struct Attributes {
  std::int64_t rows = 0;         ///< T: rows of the matrix view of the first input (all kinds)
  std::int64_t columns = 0;      ///< last dimension of the first input
  std::int64_t out_columns = 0;  ///< linear: O; embedding: C
  std::int64_t batch = 0;        ///< B
  std::int64_t sequence = 0;     ///< S (1 for mlp)
  std::int64_t heads = 0;        ///< attention, rotary: H of this operator's input
  std::int64_t kv_heads = 0;     ///< attention: K
  std::int64_t head_dim = 0;     ///< D
  float epsilon = 0;             ///< norms
  float rotary_base = 0;         ///< rotary: theta
  bool weight_in_out = false;    ///< linear: weight is [I,O] (gpt2's Conv1D)
  bool has_bias = false;         ///< linear
  float probability = 0;         ///< dropout, attention: of an element, of a score's share, to become 0
  std::int32_t mask = 0;         ///< dropout, attention that drops: number of its mask in the graph
  std::int64_t parts = 0;        ///< N: ranks that share columns, a vocabulary or dropped heads; 0 where none do
  std::int64_t vocabulary = 0;   ///< operators on a part of a vocabulary: V of the whole
  std::uint32_t frozen = 0;      ///< bit i: parameter i of the operator is frozen
  [[nodiscard]] constexpr bool freezes(std::size_t i) const { return (frozen >> i & 1U) != 0; }
};

/// One forward operator.
struct Operator {
  OperatorKind kind{};
  std::string name;         ///< module path, e.g. "transformer.h.0.attn.c_attn"
  std::int32_t block = -1;  ///< transformer block (mlp: layer) it belongs to, -1 outside of blocks
  std::vector<ValueId> inputs;
  std::vector<ParamId> params;
  std::vector<ValueId> outputs;  ///< outputs[0] is the result, the rest are statistics that backward reads
  Attributes attributes;
};

/// The operators in order of execution. inputs and targets come from the data loader.
struct Graph {
  std::vector<Value> values;
  std::vector<Operator> operators;
  ValueId input;   ///< tokens i32 [B,S], or mlp samples f32 [B,I]
  ValueId target;  ///< targets i32 [B,S], or mlp targets f32 [B,O], or i32 [B] for mlp with cross-entropy
  ValueId loss;    ///< f32 [1]
};

/// How a parameter is born; creation is keyed by (seed, parameter, element), so shards create themselves.
struct Initialization {
  enum class Kind : std::uint8_t { zeros, ones, normal, uniform } kind = Kind::zeros;
  float scale = 0;  ///< normal: standard deviation; uniform: half width
};

enum class Family : std::uint8_t { gpt2, llama, mlp };

/// A model description: parameters in registration order, and what is needed to build its graph.
struct Model {
  std::string name;
  Family family{};
  ParameterList parameters;                    ///< registration order, tied weights once
  std::vector<Initialization> initialization;  ///< one per parameter
  std::vector<std::int32_t> parameter_block;   ///< one per parameter: its transformer block (mlp: layer), or -1
  std::int64_t vocabulary = 0;                 ///< 0 for mlp without classes
  std::int64_t hidden = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t intermediate = 0;
  std::int64_t max_sequence = 0;  ///< longest sequence (0: no limit)
  float epsilon = 0;
  float rotary_base = 0;
  bool tied_embeddings = false;
  bool attention_bias = false;      ///< llama: biases on q, k, v, o projections
  bool mlp_bias = false;            ///< llama: biases on gate, up, down
  std::vector<std::int64_t> sizes;  ///< mlp: widths, input first
  bool bias = true;                 ///< mlp
  bool cross_entropy = false;       ///< mlp: cross-entropy instead of mse
  float dropout = 0;                ///< of embeddings, attention and what residuals add; mlp: of hidden values
  TensorSplit split;                ///< of which model this is a tensor-parallel rank's part
  std::vector<bool> frozen;         ///< one per parameter, or none: it keeps its first values (freeze.h)
  std::vector<std::string> notes;   ///< for stderr, e.g. "dropout 0.1 read and not applied"
  [[nodiscard]] bool is_frozen(ParamId p) const { return !frozen.empty() && frozen[static_cast<std::size_t>(p.value)]; }
  [[nodiscard]] std::int64_t parameter_elements() const {
    std::int64_t n = 0;
    for (const Parameter& p : parameters) n += p.elems.count();
    return n;
  }
};

/// The forward graph for `batch` sequences of `sequence` tokens (mlp: samples; sequence is 1).
/// sequence must be in 1..max_sequence; the caller checks.
[[nodiscard]] Graph build_graph(const Model& model, std::int64_t batch, std::int64_t sequence);

}  // namespace shard::model
