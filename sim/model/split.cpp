// The cuts of each family's parameters, per layout.
#include "sim/model/split.h"

#include <initializer_list>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "sim/model/graph.h"
#include "traces/base/division.h"
#include "traces/base/mentions.h"

namespace shard::model {
namespace {

bool ends_with_any(std::string_view name, std::initializer_list<std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(), [&](std::string_view e) { return name.ends_with(e); });
}

struct Cut {
  std::int32_t axis = -1;
  std::int64_t pieces = 1;
};

/// A linear layer's weight or bias; `in_out`: its weight is [in, out].
Cut by_columns(bool bias, bool in_out, std::int64_t pieces = 1) {
  return {.axis = bias || !in_out ? 0 : 1, .pieces = pieces};
}
Cut by_rows(bool bias, bool in_out) {
  if (bias) return {};
  return {.axis = in_out ? 0 : 1};
}

Cut cut_transformer(const Model& model, std::string_view parameter, TensorLayout layout) {
  const bool bias = parameter.ends_with(".bias");
  const std::string_view module = module_name(parameter);
  const bool in_out = model.family == Family::gpt2 && module != "lm_head";
  const bool megatron = layout == TensorLayout::megatron;
  if (ends_with_any(module, {"wte", "embed_tokens"})) return {.axis = megatron ? 0 : 1};
  if (module.ends_with("wpe")) return {.axis = megatron ? -1 : 1};
  if (module == "lm_head") return {.axis = megatron ? 0 : -1};
  if (module.ends_with("attn.c_attn")) return by_columns(bias, in_out, megatron ? 3 : 1);
  if (ends_with_any(module, {"q_proj", "k_proj", "v_proj", "mlp.c_fc", "gate_proj", "up_proj"}))
    return by_columns(bias, in_out);
  if (ends_with_any(module, {"attn.c_proj", "o_proj"}))
    return megatron ? by_rows(bias, in_out) : by_columns(bias, in_out);
  if (ends_with_any(module, {"mlp.c_proj", "down_proj"})) return by_rows(bias, in_out);
  return {};
}

/// Layers in pairs: the first by columns, the second by rows; one that is left over is on every rank.
Cut cut_mlp(const Model& model, std::string_view parameter) {
  const bool bias = parameter.ends_with(".bias");
  const std::int64_t layer = std::stoll(std::string(module_name(parameter)));
  if (layer % 2 == 1) return by_rows(bias, false);
  return layer + 1 < model.layers ? by_columns(bias, false) : Cut{};
}

Cut cut_of(const Model& model, std::string_view parameter, TensorLayout layout) {
  return model.family == Family::mlp ? cut_mlp(model, parameter) : cut_transformer(model, parameter, layout);
}

/// Something that T must divide.
struct Divided {
  std::string what;
  std::int64_t size;
};

std::vector<Divided> divided(const Model& m, TensorLayout layout) {
  std::vector<Divided> result;
  if (m.family == Family::mlp) {
    for (std::size_t i = 1; i + 1 < m.sizes.size(); i += 2)
      result.push_back({"width " + std::to_string(m.sizes[i]) + " of layer " + std::to_string(i - 1), m.sizes[i]});
    return result;
  }
  if (layout == TensorLayout::megatron) {
    result.push_back({std::to_string(m.heads) + " attention heads", m.heads});
    result.push_back({std::to_string(m.kv_heads) + " key and value heads", m.kv_heads});
  } else {
    const std::int64_t q = m.heads * m.head_dim;
    const std::int64_t kv = m.kv_heads * m.head_dim;
    result.push_back({"hidden size " + std::to_string(m.hidden), m.hidden});
    result.push_back({std::to_string(q) + " columns of the queries", q});
    result.push_back({std::to_string(kv) + " columns of the keys", kv});
  }
  result.push_back({"intermediate size " + std::to_string(m.intermediate), m.intermediate});
  return result;
}

}  // namespace

Result<void> check_split(const Model& whole, std::int32_t degree, TensorLayout layout) {
  if (degree == 1) return {};
  const auto refuse = [](std::initializer_list<Piece> what, std::string help) {
    Error error = contradiction_of(what, "model", std::move(help));
    error.mentions.push_back({.option = "model", .end = Mention::kWhere});
    return error;
  };
  const Piece option = option_piece("tensor-parallel", std::to_string(degree));
  if (whole.family == Family::other)
    return refuse({option, " splits gpt2, llama and mlp models, and " + whole.name + " is a " + whole.class_name},
                  "--tensor-parallel 1");
  if (whole.family == Family::mlp && layout != TensorLayout::megatron)
    return refuse({option_piece("tensor-parallel-layout", to_string(layout)),
                   " names layers of transformers, and " + whole.name + " is an mlp"},
                  "--tensor-parallel-layout megatron");
  const std::vector<Divided> parts = divided(whole, layout);
  if (parts.empty())
    return refuse({option, " splits pairs of layers, and " + whole.name + " has only one layer"},
                  "--tensor-parallel 1");
  std::int64_t common = 0;
  for (const Divided& part : parts) common = std::gcd(common, part.size);
  for (const Divided& part : parts)
    if (part.size % degree != 0)
      return refuse({option, std::string(" does not divide the ") + part.what + " of " + whole.name},
                    "--tensor-parallel " + std::to_string(std::gcd<std::int64_t>(common, degree)));
  return {};
}

Model split_model(const Model& whole, std::int32_t degree, TensorLayout layout) {
  Model part = whole;
  if (degree == 1) return part;
  part.split = {.degree = degree, .layout = layout, .parameters = {}};
  for (Parameter& p : part.parameters) {
    const Cut cut = cut_of(whole, p.name, layout);
    part.split.parameters.push_back({.whole = p.shape, .axis = cut.axis, .pieces = cut.pieces});
    if (cut.axis < 0) continue;
    std::int64_t& size = p.shape[static_cast<std::size_t>(cut.axis)];
    size = cut.pieces * divide_up(size / cut.pieces, degree);
    p.elems = Elems{1};
    for (std::int64_t d : p.shape) p.elems = p.elems * d;
  }
  if (whole.family != Family::mlp && layout == TensorLayout::megatron) {
    part.heads /= degree;
    part.kv_heads /= degree;
    part.intermediate /= degree;
  }
  return part;
}

std::int64_t whole_index(const ParameterSplit& split, std::int32_t degree, std::int32_t rank, std::int64_t local) {
  if (!split.cut()) return local;
  const std::int64_t piece = split.whole[static_cast<std::size_t>(split.axis)] / split.pieces;
  const std::int64_t own = divide_up(piece, degree);
  const std::int64_t inside = rank * own + local % own;
  return inside < piece ? local / own * piece + inside : -1;
}

}  // namespace shard::model
