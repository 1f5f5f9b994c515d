// What is known of a process however it ends: counters in a file that the process that started it reads afterwards.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shard::standin {

/// The file's content, in the machine's own byte order.
struct Counters {
  std::int64_t device_peak_bytes;  ///< taken of one card at once, the most of all cards
  std::int64_t pinned_bytes;       ///< pinned host memory now
  std::int64_t pinned_peak_bytes;
  std::int64_t values_read;         ///< copies to the host of device memory that nobody had written to
  std::int64_t unknown_workspaces;  ///< workspaces of cuDNN that somebody asked the size of
  std::int64_t optimizer_steps;
  std::int64_t backward_calls;
};

/// The counters' file of a process, in the folder that SHARDSCOPE_STANDIN_COUNTERS names.
inline constexpr const char* kCountersSuffix = ".counters";

void count_device(std::size_t used_bytes);
void count_pinned(std::int64_t more_bytes);
void count_read();
void count_unknown_workspace();

}  // namespace shard::standin
