// The kinds of data source, each made by its own function.
#pragma once

#include <memory>
#include <vector>

#include "executor/data/data_files.h"
#include "executor/data/source.h"

namespace shard::data {

[[nodiscard]] std::unique_ptr<DataSource> make_random(const model::Model& model, const BatchShape& shape);

/// Sequences of token files, at least one.
[[nodiscard]] Result<std::unique_ptr<DataSource>> open_tokens(const std::vector<DataFile>& files,
                                                              const model::Model& model, const BatchShape& shape);

}  // namespace shard::data
