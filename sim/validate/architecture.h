// The shape of a published run's model.
#pragma once

#include "sim/validate/run_description.h"

namespace shard::validate {

/// Sizes from the row's columns; where they are empty, from the name, if it is one of those that are published without
/// them. Errors: contradiction (a mixture of experts; sizes that nobody states).
[[nodiscard]] Result<Architecture> architecture_of(const PublishedRun& run);

}  // namespace shard::validate
