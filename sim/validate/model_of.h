// The model of a published run.
#pragma once

#include <memory>

#include "sim/model/graph.h"
#include "sim/validate/published_run.h"
#include "traces/base/result.h"

namespace shard::validate {

/// Errors: those of model::parse_config, for a shape that is none.
[[nodiscard]] Result<std::shared_ptr<const model::Model>> model_of(const PublishedRun& run);

}  // namespace shard::validate
