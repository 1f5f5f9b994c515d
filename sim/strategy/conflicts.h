// Choices of how units lie, are gathered and reduced that contradict one another, in words that name both options.
#pragma once

#include <optional>
#include <string>

#include "sim/strategy/strategy.h"

namespace shard::plan {

/// `option` says something that `other` makes meaningless or impossible.
struct Conflict {
  std::string option{};  ///< name of a command-line option, without dashes
  std::string value{};   ///< as given there; empty for a switch
  std::string does{};    ///< what it asks for
  std::string other{};
  std::string other_value{};
  std::string prevents{};  ///< what the other does
  std::string help{};
};

/// The first contradiction between --chunk-owner, --no-distributed-storage, --keep-gathered, --reuse-fp16-shard,
/// --reduce-scatter-bucket-size-mb and the rest of a strategy, or nothing.
[[nodiscard]] std::optional<Conflict> sharding_conflict(const Strategy& strategy);

}  // namespace shard::plan
