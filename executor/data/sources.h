// The kinds of data source, each made by its own function.
#pragma once

#include <filesystem>
#include <memory>

#include "executor/data/source.h"

namespace shard::data {

[[nodiscard]] std::unique_ptr<DataSource> make_random(const model::Model& model, const BatchShape& shape);

/// How tokens lie in a file.
enum class TokenForm { bytes, uint16 };

/// Sequences that begin at positions drawn by (seed, micro-batch, sequence) in a file of tokens.
[[nodiscard]] Result<std::unique_ptr<DataSource>> open_tokens(const std::filesystem::path& path, TokenForm form,
                                                              const model::Model& model, const BatchShape& shape);

}  // namespace shard::data
