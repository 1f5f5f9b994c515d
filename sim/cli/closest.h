// The closest match for a name that is not known: options, commands, enumerators, models.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace shard::cli {

/// Edits that turn `a` into `b`: insertions, deletions, substitutions and swaps of neighbours (optimal string
/// alignment).
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

/// The known name that `name` was most likely meant to be; none when nothing is near. Case, '-' and '_' do not count;
/// a name of which `name` is the beginning is near. Ties: the earlier one.
[[nodiscard]] std::optional<std::string> closest(std::string_view name, std::span<const std::string> known);

/// For Error::help: "did you mean 'chunk'?", else "one of tensor, bucket, module, chunk" (at most twelve are listed).
/// `prefix` is put before every name, "--" for options.
[[nodiscard]] std::string suggest(std::string_view name, std::span<const std::string> known,
                                  std::string_view prefix = "");

}  // namespace shard::cli
