// The forward graph of one micro-batch: operators over values and parameters, shapes fixed, nothing differentiated yet.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/model/operators.h"
#include "sim/model/parameters.h"
#include "sim/model/split.h"
#include "traces/base/dtype.h"
#include "traces/base/ids.h"
#include "traces/base/result.h"
#include "traces/base/units.h"

namespace shard::model {

/// Index into Graph::values.
using ValueId = Id<struct ValueTag>;
/// Index into Model::parameters.
using ParamId = Id<struct ParamTag>;

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

/// Rotary positions that are not those of llama: which elements turn, and how fast (rope.h).
struct RotaryTurn {
  std::int64_t columns = 0;          ///< R: the first elements of each head that turn, even; 0: all
  std::int64_t passed_heads = 0;     ///< heads behind the first H, which do not turn
  float factor = 1;                  ///< of sine and cosine
  std::vector<float> frequencies{};  ///< of each pair, R/2 of them; none: theta^(-2i/R)
  friend bool operator==(const RotaryTurn&, const RotaryTurn&) = default;
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
  std::int64_t first_row = 0;    ///< add_position: the table's row of position 0
  float factor = 0;              ///< scale: a
  float weight_offset = 0;       ///< rms_norm: added to the weight
  RotaryTurn turn{};             ///< rotary
  [[nodiscard]] constexpr bool freezes(std::size_t i) const { return (frozen >> i & 1U) != 0; }
  friend bool operator==(const Attributes&, const Attributes&) = default;
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

/// What a configuration does to rotary positions beside theta.
struct RotaryScaling {
  std::int64_t columns = 0;               ///< RotaryTurn::columns
  float factor = 1;                       ///< of sine and cosine
  std::vector<float> frequencies{};       ///< of each pair; none: those of theta
  std::vector<float> long_frequencies{};  ///< of sequences longer than `long_above`, where they differ
  std::int64_t long_above = 0;
};

/// `other` is told apart by its table (family_table.h).
enum class Family : std::uint8_t { gpt2, llama, mlp, other };

struct FamilyValues;

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
  RotaryScaling rotary{};
  std::int64_t window = 0;  ///< tokens that attention looks back on in some layer, itself included (0: all)
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
  std::string class_name;           ///< Hugging Face's class whose parameters these are; empty for mlp
  std::shared_ptr<const FamilyValues> described;  ///< what the family's table says of this model; none for mlp
  /// What commands that need operators, or kernels for them, answer; none where they work.
  std::optional<Error> not_simulated;
  std::optional<Error> not_trained;
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
