// Whose work something is, and what it touches: kept as long as a message may name it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "executor/cuda/api/api.h"

namespace shard::cuda::emulated {

/// What begin_op() was told, or a stand-in for work outside of ops.
struct OpRecord {
  std::string label;  ///< "rank 0 op 12 'gelu_forward'"
  std::vector<Range> ranges;
};
using Op = std::shared_ptr<const OpRecord>;

/// Bytes that a piece of work touches: of the device (as they are handed out), pinned, or pageable.
struct Access {
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;
  bool writes = false;
  Op op{};
};

}  // namespace shard::cuda::emulated
