// The closest match for a name that is not known: options, commands, enumerators, models.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace shard::cli {

/// The known name that `name` was most likely meant to be, by sim/model/closest_name.h with '-' and '_' left out;
/// else the first of which `name` is the beginning; none when nothing is near.
[[nodiscard]] std::optional<std::string> closest(std::string_view name, std::span<const std::string> known);

/// For Error::help: "did you mean 'chunk'?", else "one of tensor, bucket, module, chunk" (at most twelve are listed).
/// `prefix` is put before every name, "--" for options.
[[nodiscard]] std::string suggest(std::string_view name, std::span<const std::string> known,
                                  std::string_view prefix = "");

}  // namespace shard::cli
