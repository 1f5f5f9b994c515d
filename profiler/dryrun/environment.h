// What the processes of a dry run find in their environment.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "profiler/dryrun/dry_run.h"

namespace shard::dryrun {

/// Files of the run's folder, for all ranks.
inline constexpr const char* kStandIn = "libshardscope_standin.so";
/// What libraries look for that want the driver.
inline constexpr const char* kDriver = "libcuda.so.1";
/// What tools look for that want to know about cards.
inline constexpr const char* kNvml = "libnvidia-ml.so.1";
/// Of programs that come before others of their names.
inline constexpr const char* kPrograms = "bin";
/// What the stand-in leaves in a rank's folder when it comes into a process.
inline constexpr const char* kMark = "loaded";

/// Where a rank's processes leave what they have to tell.
[[nodiscard]] std::filesystem::path folder_of(int rank, const std::filesystem::path& folder);
/// Where ranks that run side by side hand each other values (standin/exchange.h).
[[nodiscard]] std::filesystem::path exchange_folder(const std::filesystem::path& folder);

[[nodiscard]] std::map<std::string, std::string> environment_of(const PyTorch& pytorch, const Place& place, int rank,
                                                                const std::filesystem::path& folder);

}  // namespace shard::dryrun
