// Waiting for another rank: how long at most, and the words when it was too long.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace shard {

/// As a deadline. More than ten years are ten years, so that adding it to a time does not overflow.
[[nodiscard]] std::chrono::milliseconds deadline_of(double seconds);

/// When so many seconds have passed; none where they are more than ten years, infinitely many, too.
[[nodiscard]] std::optional<std::chrono::steady_clock::time_point> deadline_after(
    std::chrono::steady_clock::time_point begin, double seconds);

/// "3 s", "0.25 s".
[[nodiscard]] std::string in_seconds(std::chrono::milliseconds time);
/// "rank 1 has", "ranks 1, 2 have"; "another rank has" for none.
[[nodiscard]] std::string ranks_have(const std::vector<int>& ranks);

inline constexpr const char* kLookAtThatRank =
    "look at what that rank is doing; a larger --timeout helps if it is only slow";

}  // namespace shard
