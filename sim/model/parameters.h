// A model as nothing but its ordered parameter list: what chunk layout and chunk search need to know of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "traces/base/result.h"
#include "traces/base/units.h"

namespace shard {

/// One trainable tensor. `elems` is the product of `shape` (1 for a scalar, whose shape is empty) and at least 1.
struct Parameter {
  std::string name;
  std::vector<std::int64_t> shape;
  Elems elems;
};

/// Parameters in registration order (module.parameters()), each tensor once even where weights are tied.
using ParameterList = std::vector<Parameter>;

/// No list may hold more elements than this, so that no sum made of one overflows.
inline constexpr Elems kMaxTotalElems{std::int64_t{1} << 60};

/// The module that owns a parameter: its name without the last component ("h.0.ln_1.weight" -> "h.0.ln_1").
/// A name without a dot belongs to the root module, whose name is empty.
[[nodiscard]] std::string_view module_name(std::string_view parameter_name);

[[nodiscard]] Elems total_elems(const ParameterList& parameters);

/// Parses the JSON list [{"name": string, "shape": [integers], "numel": integer}, ...]; "numel" may be absent, other
/// keys are ignored. `where` names the source in errors.
/// Errc::malformed with a JSON pointer for anything else: no parameters, a repeated or empty name, a dimension below 1,
/// a product that differs from "numel", more than kMaxTotalElems elements in all.
[[nodiscard]] Result<ParameterList> parse_parameter_list(std::string_view json, std::string_view where);

/// Reads a file of that form. Errc::no_input when it is absent or unreadable.
[[nodiscard]] Result<ParameterList> read_parameter_list(const std::filesystem::path& path);

}  // namespace shard
