// Chunks of their own sizes: what rule variable finds, as a strategy takes it.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "sim/model/graph.h"
#include "sim/strategy/strategy.h"
#include "traces/base/result.h"
#include "traces/base/units.h"

namespace shard::commands {

/// --chunk-size variable[:ELEMS]: chunks of their own sizes, of at most so many elements or a single larger parameter.
struct VariableChunks {
  std::optional<Elems> largest{};  ///< none: what rule exact finds
};

/// Nothing where `text` asks for something else; usage (2) where ELEMS is no size, contradiction (78) where
/// no chunk can have it. `where` as parse_elems.
[[nodiscard]] Result<std::optional<VariableChunks>> parse_variable_chunks(std::string_view text,
                                                                          std::string_view where);

/// Chunks that begin at these of the parameters which `model`, the part that a rank has, trains (positions among
/// them, the first is 0); found under a size of `largest`. Frozen parameters have chunks of their own, as few as that
/// size allows.
void use_variable_chunks(const model::Model& model, std::span<const std::size_t> starts, Elems largest,
                         plan::Strategy& strategy);

}  // namespace shard::commands
