// What a shell's tests say of words.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "sim/foreign/shell_text.h"
#include "sim/foreign/shell_variables.h"

namespace shard::foreign {

/// Of [ words ] and [[ words ]]: -n, -z, =, ==, !=, -eq and its like, -v, !, &&, ||, -a, -o, brackets. Files are taken
/// as absent. Nothing where only a run knows.
[[nodiscard]] std::optional<bool> shell_test(const std::vector<ShellText>& words, const ShellVariables& variables);

/// A pattern with * and ?.
[[nodiscard]] bool shell_pattern_fits(std::string_view pattern, std::string_view text);

}  // namespace shard::foreign
