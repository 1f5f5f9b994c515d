// Files through which the ranks of one dry run hand each other what the host may look at.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "profiler/standin/promises.h"

namespace shard::standin {

/// What one rank gave to one call of a communicator.
struct Message {
  std::int32_t kind = 0;   ///< which call: of all members the same
  std::int32_t known = 0;  ///< whether `values` are there: what kernels computed is not
  Bytes values{};
};

/// Whether the other ranks of this run are there, in the folder that SHARDSCOPE_STANDIN_RANKS names.
[[nodiscard]] bool others_run();

/// Appends to a box, which has one writer. Does not wait.
void post(const std::string& box, const Message& message);

/// The `number`-th message of a box, which it waits for; none where its writer has ended without it. Any thread.
[[nodiscard]] std::optional<Message> fetch(const std::string& box, std::uint64_t number);

/// What the launcher of the ranks leaves in the folder when a rank has ended, its number behind it.
inline constexpr const char* kEndedPrefix = "ended-";

}  // namespace shard::standin
