// NCCL, opened at run time.
#pragma once

#include <memory>
#include <string>

#include "executor/cuda/api/nccl.h"

namespace shard::cuda {

/// Errc::unavailable where it is not found, is older than 2.14 (communicators that do not block), or was not known to
/// this build. `path`: where it was found, or null.
[[nodiscard]] Result<std::unique_ptr<Nccl>> open_real_nccl(std::string* path = nullptr);

}  // namespace shard::cuda
