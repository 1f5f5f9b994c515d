// The closest known name to a mistyped one, for error messages.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace shard::model {

/// The candidate with the least edit distance (insert, delete, replace, swap of neighbours; case ignored) to `name`,
/// the first of equals;
/// nothing when even that one needs more edits than a third of its letters.
[[nodiscard]] std::optional<std::string_view> closest_name(std::string_view name,
                                                           std::span<const std::string_view> candidates);

/// Whether `name` begins so, case ignored.
[[nodiscard]] bool begins_with(std::string_view name, std::string_view beginning);

/// "did you mean 'X'?", or "" when nothing is close.
[[nodiscard]] std::string did_you_mean(std::string_view name, std::span<const std::string_view> candidates);

}  // namespace shard::model
