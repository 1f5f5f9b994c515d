// Cluster descriptions: JSON text -> Cluster, and a --cluster argument -> Cluster.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/cluster/cluster.h"
#include "traces/base/result.h"

namespace shard::cluster {

/// The newest form that is read; every description names its own.
inline constexpr int kSchemaVersion = 1;

/// `file` names the text in errors. Errors: malformed (not JSON; a missing, unknown or wrong key; `where` is
/// "FILE#/POINTER"), contradiction (a newer schema_version).
[[nodiscard]] Result<Cluster> parse_cluster(std::string_view text, std::string_view file);

/// `argument` is an example's name or a path; a name wins over a file of that name (write ./NAME for the file).
/// Errors: usage (neither a known name nor anything that looks like a path), no_input (absent or unreadable), and those
/// of parse_cluster. The only function of this folder that reads files.
[[nodiscard]] Result<Cluster> read_cluster(std::string_view argument);

/// The names that `read_cluster` knows, sorted.
[[nodiscard]] std::vector<std::string> cluster_names();
/// The same with commas.
[[nodiscard]] std::string example_names();

/// The file that `argument` leads to, whether it exists or not; none for an example's name.
[[nodiscard]] std::optional<std::filesystem::path> cluster_file(std::string_view argument);

}  // namespace shard::cluster
