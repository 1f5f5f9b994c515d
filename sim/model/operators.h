// The table of operators: a row for each kind says what it reads and makes in each direction, and what is known of it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "sim/model/direction.h"

namespace shard::model {

/// T = B x S tokens (mlp: T = B samples), C = hidden size. Row-major, last dimension contiguous.
enum class OperatorKind : std::uint8_t {
  embedding,     ///< in: tokens i32 [B,S]; params: table [V,C]; out: y [B,S,C]
  add_position,  ///< in: x [B,S,C]; params: table [P,C]; out: y = x + table[s]
  layer_norm,    ///< in: x [B,S,C]; params: weight [C], bias [C]; out: y, mean [T], rstd [T]
  rms_norm,      ///< in: x [B,S,C]; params: weight [C]; out: y, rstd [T]
  linear,  ///< in: x [..,I]; params: weight, optional bias [O]; out: y [..,O]; weight [O,I], or [I,O] if weight_in_out
  rotary,  ///< in: x [B,S,H*D]; out: y; rotate-half pairs (i, i + D/2) as Hugging Face llama; RotaryTurn says what
           ///< else there is
  attention,      ///< causal; in: qkv [B,S,3C] packed q|k|v, or q [B,S,H*D], k and v [B,S,K*D]; out: y [B,S,H*D], lse
                  ///< [B,H,S]; drops shares of v as dropout does elements
  gelu,           ///< tanh approximation; in: x; out: y
  swiglu,         ///< in: gate, up, or one that packs them gate|up; out: y = silu(gate) * up
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
  // Of some families:
  scale,         ///< in: x; out: y = a x, in x's place
  relu,          ///< in: x; out: y
  gelu_erf,      ///< in: x; out: y = x P(x), P the normal distribution's function
  geglu,         ///< in: gate, up; out: y = gelu(gate) * up
  split_groups,  ///< in: x [B,S,(H+2K)*D], of each key head its H/K queries, its key, its value; out: y, all queries,
                 ///< keys, values
  last = split_groups
};

enum class Access : std::uint8_t { read, write, update };

/// What an operand of an operator's op is.
enum class Role : std::uint8_t {
  none,
  x,           ///< an input
  p,           ///< a parameter
  y,           ///< the result
  statistic,   ///< what backward needs beside inputs: written forward, read backward
  dy,          ///< the gradient of the result
  dx,          ///< that of an input
  dp,          ///< that of a parameter
  loss_scale,  ///< f32[1]
  workspace,   ///< dead before and after
};

/// How much of its value an operand is, where N ranks share a model.
enum class Extent : std::uint8_t { whole, own_columns, all_columns };

/// One operand of a row, or one for each input, parameter or statistic. Gradients are updated instead of written where
/// they are added to, and absent where nothing needs them (signature.h).
struct Term {
  enum class When : std::uint8_t {
    always,
    in_place,        ///< where dy becomes dx
    apart,           ///< where it does not
    weight_trained,  ///< where parameter 0 is not frozen
  };
  static constexpr std::int8_t kEach = -1;

  Role role = Role::none;
  Role becomes = Role::none;  ///< what lies in its place afterwards, where that is something else
  std::int8_t index = kEach;  ///< of the input, parameter or statistic; 0 of the others
  Access access = Access::read;
  Extent extent = Extent::whole;
  When when = When::always;
};

/// Behind the last: Role::none. The loss scale and the workspace come behind what is listed.
using Terms = std::array<Term, 8>;
/// nullptr behind the last.
using Names = std::array<const char*, 3>;

/// Whence an operator's input has its gradient.
enum class Gradient : std::uint8_t {
  made,               ///< its backward makes it
  passed_on,          ///< it is that of the result
  of_what_is_joined,  ///< its backward makes that of what the ranks had before it was gathered
  summed,             ///< it is the sum of the ranks' gradients of the result
  gathered,           ///< it is what the ranks have of the gradient of the result
  elsewhere,          ///< another operator's backward makes it
};

/// Floating-point operations: `forward`, `inputs` and `parameters` (backward) for each element of the result or of
/// the first input, or those of a product or of attention, which do not grow with their elements (flops.h).
struct Work {
  enum class Of : std::uint8_t { result, input, product, attention };
  Of of = Of::result;
  double forward = 0;
  double inputs = 0;
  double parameters = 0;
};

/// What its CPU kernels need beside their operands (sim/target/workspace.h).
enum class WorkspaceKind : std::uint8_t { none, product, attention, table_gradient };

/// Where ranks share a model: which columns of values it takes (sim/check/split.cpp).
enum class Columns : std::uint8_t {
  any,  ///< those of its result are those of its inputs
  all,  ///< all, and whole parameters
  own_rule,
};

struct OperatorRow {
  OperatorKind kind{};
  const char* name = "";
  Names inputs{};
  Names parameters{};
  Names statistics{};
  Terms forward{};  ///< none: the result is the input
  Terms backward{};
  Terms backward_input{};
  Terms backward_weight{};
  Gradient gradient = Gradient::made;
  Work work{};
  WorkspaceKind workspace = WorkspaceKind::none;
  Columns columns = Columns::own_rule;
  bool cheap = false;  ///< its time is that of reading and writing, and its result is worth making again
  bool loss = false;
};

namespace operators {

// What operands are, to write rows with.
inline constexpr Term x{.role = Role::x};
inline constexpr Term p{.role = Role::p};
inline constexpr Term y{.role = Role::y, .access = Access::write};
inline constexpr Term keeps{.role = Role::statistic, .access = Access::write};
inline constexpr Term kept{.role = Role::statistic};
inline constexpr Term dy{.role = Role::dy};
inline constexpr Term dx{.role = Role::dx, .access = Access::write};
inline constexpr Term dp{.role = Role::dp, .access = Access::write};

[[nodiscard]] constexpr Term only(std::int8_t index, Term term) {
  term.index = index;
  return term;
}
[[nodiscard]] constexpr Term where(Term::When when, Term term) {
  term.when = when;
  return term;
}
[[nodiscard]] constexpr Term with(Extent extent, Term term) {
  term.extent = extent;
  return term;
}
[[nodiscard]] constexpr Term becomes(Role role, Term term) {
  term.becomes = role;
  term.access = Access::update;
  return term;
}
inline constexpr Term x_becomes_y = only(0, becomes(Role::y, x));
inline constexpr Term x_becomes_dx = only(0, becomes(Role::dx, x));
inline constexpr Term dy_becomes_dx = becomes(Role::dx, dy);
// dy becomes dx where nothing else reads it, and otherwise does not.
inline constexpr Term dy_in_place = where(Term::When::in_place, dy_becomes_dx);
inline constexpr Term dy_apart = where(Term::When::apart, dy);
inline constexpr Term dx_apart = where(Term::When::apart, dx);

/// In the order of OperatorKind. Gradients of several inputs stand in the order of the inputs.
inline constexpr std::array kTable = std::to_array<OperatorRow>({
    {.kind = OperatorKind::embedding,
     .name = "embedding",
     .inputs = {"tokens"},
     .parameters = {"table"},
     .forward = {x, p, y},
     .backward = {x, dy, dp},
     .work = {.parameters = 1},
     .workspace = WorkspaceKind::table_gradient},
    {.kind = OperatorKind::add_position,
     .name = "add_position",
     .inputs = {"x"},
     .parameters = {"table"},
     .forward = {x, p, y},
     .backward = {dy, dp},
     .gradient = Gradient::passed_on,
     .work = {.forward = 1, .parameters = 1}},
    {.kind = OperatorKind::layer_norm,
     .name = "layer_norm",
     .inputs = {"x"},
     .parameters = {"weight", "bias"},
     .statistics = {"mean", "rstd"},
     .forward = {x, p, y, keeps},
     .backward = {x, only(0, p), kept, dy, dx, dp},
     .work = {.forward = 8, .inputs = 9, .parameters = 3},
     .columns = Columns::all,
     .cheap = true},
    {.kind = OperatorKind::rms_norm,
     .name = "rms_norm",
     .inputs = {"x"},
     .parameters = {"weight"},
     .statistics = {"rstd"},
     .forward = {x, p, y, keeps},
     .backward = {x, only(0, p), kept, dy, dx, dp},
     .work = {.forward = 4, .inputs = 8, .parameters = 3},
     .columns = Columns::all,
     .cheap = true},
    {.kind = OperatorKind::linear,
     .name = "linear",
     .inputs = {"x"},
     .parameters = {"weight", "bias"},
     .forward = {x, p, y},
     .backward_input = {dy, only(0, p), dx},
     .backward_weight = {where(Term::When::weight_trained, x), dy, dp},
     .work = {.of = Work::Of::product},
     .workspace = WorkspaceKind::product},
    {.kind = OperatorKind::rotary,
     .name = "rotary",
     .inputs = {"x"},
     .forward = {x, y},
     .backward = {dy_in_place, dy_apart, dx_apart},
     .work = {.forward = 3, .inputs = 3},
     .cheap = true},
    {.kind = OperatorKind::attention,
     .name = "attention",
     .inputs = {"q", "k", "v"},
     .statistics = {"lse"},
     .forward = {x, y, keeps},
     .backward = {x, kept, dy, dx},
     .work = {.of = Work::Of::attention},
     .workspace = WorkspaceKind::attention},
    {.kind = OperatorKind::gelu,
     .name = "gelu",
     .inputs = {"x"},
     .forward = {x, y},
     .backward = {x, dy_in_place, dy_apart, dx_apart},
     .work = {.forward = 9, .inputs = 17},
     .columns = Columns::any,
     .cheap = true},
    {.kind = OperatorKind::swiglu,
     .name = "swiglu",
     .inputs = {"gate", "up"},
     .forward = {x, y},
     .backward = {x, dy, dx},
     .work = {.forward = 5, .inputs = 11},
     .columns = Columns::any,
     .cheap = true},
    {.kind = OperatorKind::add,
     .name = "add",
     .inputs = {"a", "b"},
     .forward = {x, y},
     .gradient = Gradient::passed_on,
     .work = {.forward = 1},
     .columns = Columns::all},
    {.kind = OperatorKind::dropout,
     .name = "dropout",
     .inputs = {"x"},
     .forward = {x_becomes_y},
     .backward = {dy_in_place, dy_apart, dx_apart},
     .work = {.forward = 2, .inputs = 2},
     .columns = Columns::all},
    {.kind = OperatorKind::cross_entropy,
     .name = "cross_entropy",
     .inputs = {"logits", "targets"},
     .statistics = {"lse"},
     .forward = {x, y, keeps},
     .backward = {x_becomes_dx, kept, only(1, x)},
     .work = {.of = Work::Of::input, .forward = 4, .inputs = 4},
     .columns = Columns::all,
     .loss = true},
    {.kind = OperatorKind::mse,
     .name = "mse",
     .inputs = {"prediction", "targets"},
     .forward = {x, y},
     .backward = {x, only(0, dx)},
     .work = {.of = Work::Of::input, .forward = 3, .inputs = 2},
     .columns = Columns::all,
     .loss = true},
    {.kind = OperatorKind::tensor_sum,
     .name = "tensor_sum",
     .inputs = {"x"},
     .forward = {x_becomes_y},
     .gradient = Gradient::passed_on},
    {.kind = OperatorKind::tensor_input,
     .name = "tensor_input",
     .inputs = {"x"},
     .backward = {dy_becomes_dx},
     .gradient = Gradient::summed},
    {.kind = OperatorKind::tensor_gather,
     .name = "tensor_gather",
     .inputs = {"x"},
     .forward = {x, y},
     .gradient = Gradient::elsewhere},
    {.kind = OperatorKind::tensor_part,
     .name = "tensor_part",
     .inputs = {"x"},
     .backward = {dy, with(Extent::all_columns, dx)},
     .gradient = Gradient::gathered},
    {.kind = OperatorKind::join_columns,
     .name = "join_columns",
     .inputs = {"columns of all ranks"},
     .forward = {x, y},
     .backward = {dy, with(Extent::own_columns, dx)},
     .gradient = Gradient::of_what_is_joined},
    {.kind = OperatorKind::take_columns,
     .name = "take_columns",
     .inputs = {"x"},
     .forward = {x, y},
     .backward = {with(Extent::all_columns, dy), dx}},
    {.kind = OperatorKind::add_bias,
     .name = "add_bias",
     .inputs = {"x"},
     .parameters = {"bias"},
     .forward = {x_becomes_y, p},
     .backward = {dy, dp},
     .gradient = Gradient::passed_on,
     .work = {.forward = 1, .parameters = 1},
     .columns = Columns::all},
    {.kind = OperatorKind::embedding_part,
     .name = "embedding_part",
     .inputs = {"tokens"},
     .parameters = {"table"},
     .forward = {x, p, y},
     .backward = {x, dy, dp},
     .work = {.parameters = 1},
     .workspace = WorkspaceKind::table_gradient},
    {.kind = OperatorKind::vocabulary_statistics,
     .name = "vocabulary_statistics",
     .inputs = {"logits", "targets"},
     .forward = {x, y},
     .gradient = Gradient::elsewhere,
     .work = {.of = Work::Of::input, .forward = 4}},
    // Logits and targets were read by the statistics.
    {.kind = OperatorKind::cross_entropy_part,
     .name = "cross_entropy_part",
     .inputs = {"logits", "targets", "statistics of all ranks"},
     .statistics = {"lse"},
     .forward = {only(2, x), y, keeps},
     .backward = {x_becomes_dx, kept, only(1, x)},
     .work = {.of = Work::Of::input, .inputs = 4},
     .loss = true},
    {.kind = OperatorKind::scale,
     .name = "scale",
     .inputs = {"x"},
     .forward = {x_becomes_y},
     .backward = {dy_in_place, dy_apart, dx_apart},
     .work = {.forward = 1, .inputs = 1},
     .columns = Columns::any},
    {.kind = OperatorKind::relu,
     .name = "relu",
     .inputs = {"x"},
     .forward = {x, y},
     .backward = {x, dy_in_place, dy_apart, dx_apart},
     .work = {.forward = 1, .inputs = 1},
     .columns = Columns::any,
     .cheap = true},
    {.kind = OperatorKind::gelu_erf,
     .name = "gelu_erf",
     .inputs = {"x"},
     .forward = {x, y},
     .backward = {x, dy_in_place, dy_apart, dx_apart},
     .work = {.forward = 26, .inputs = 34},
     .columns = Columns::any,
     .cheap = true},
    {.kind = OperatorKind::geglu,
     .name = "geglu",
     .inputs = {"gate", "up"},
     .forward = {x, y},
     .backward = {x, dy, dx},
     .work = {.forward = 10, .inputs = 19},
     .columns = Columns::any,
     .cheap = true},
    {.kind = OperatorKind::split_groups,
     .name = "split_groups",
     .inputs = {"x"},
     .forward = {x, y},
     .backward = {dy, dx},
     .columns = Columns::all,
     .cheap = true},
});

static_assert(kTable.size() == static_cast<std::size_t>(OperatorKind::last) + 1, "a row for every kind");
static_assert(
    [] {
      for (std::size_t i = 0; i < kTable.size(); ++i)
        if (kTable[i].kind != static_cast<OperatorKind>(i)) return false;
      return true;
    }(),
    "rows stand in the order of the kinds");

}  // namespace operators

[[nodiscard]] constexpr const OperatorRow& row(OperatorKind kind) {
  return operators::kTable[static_cast<std::size_t>(kind)];
}

[[nodiscard]] constexpr const char* to_string(OperatorKind kind) {
  return row(kind).name;
}

/// Operators that compute nothing: tensor-parallel ranks exchange their parts of a value, or of its gradient.
[[nodiscard]] constexpr bool exchanges(OperatorKind kind) {
  return kind == OperatorKind::tensor_sum || kind == OperatorKind::tensor_input ||
         kind == OperatorKind::tensor_gather || kind == OperatorKind::tensor_part;
}

/// Its result takes the place of its first input.
[[nodiscard]] constexpr bool in_place(OperatorKind kind) {
  const Term& first = row(kind).forward.front();
  return first.role == Role::none || first.becomes == Role::y;
}

}  // namespace shard::model
