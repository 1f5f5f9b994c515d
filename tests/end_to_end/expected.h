// What a command printed, with all that differs from run to run or machine to machine replaced by a name for it.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace shard::test {

/// Durations, rates, ratios, losses, measured resident memory: <time>, <rate>, ...; what a processor or
/// library brings: <instruction set>, <library>; digests: <digest 1> for the first
/// that appears, <digest 2> for the next other one, so that equal ones stay equal; the table of single ops, which is
/// sorted by measured time, is left out; runs of spaces become one. `names`: literal texts and what replaces them.
[[nodiscard]] std::string normalised(std::string text,
                                     const std::vector<std::pair<std::string, std::string>>& names = {});

/// Compares with the file; with SHARDSCOPE_UPDATE_EXPECTED=1 in the environment writes it instead.
void expect_file(const std::string& path, const std::string& actual);

}  // namespace shard::test
