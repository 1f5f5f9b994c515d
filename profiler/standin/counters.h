// What is known of a process however it ends: counters in a file that the process that started it reads afterwards.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shard::standin {

/// Cards of one process whose memory is counted apart; more are one.
inline constexpr int kMostCards = 64;

/// Whose workspaces nobody here knows the sizes of.
enum class Library { cudnn, cusolver, cusparse, cufft };
inline constexpr int kLibraries = 4;

/// The file's content, in the machine's own byte order.
struct Counters {
  std::int64_t device_peak_bytes;  ///< taken of one card at once, the most of all cards
  std::int64_t pinned_bytes;       ///< pinned host memory now
  std::int64_t pinned_peak_bytes;
  std::int64_t values_read;                     ///< copies to the host of device memory that nobody had written to
  std::int64_t unknown_workspaces[kLibraries];  ///< whose size somebody asked; told to be none
  std::int64_t optimizer_steps;
  std::int64_t backward_calls;
  std::int64_t device_bytes[kMostCards];  ///< taken of each card now
};

/// The counters' file of a process, in the folder that SHARDSCOPE_STANDIN_COUNTERS names.
inline constexpr const char* kCountersSuffix = ".counters";

/// `card`: its number among all.
void count_device(std::size_t used_bytes, int card);
void count_pinned(std::int64_t more_bytes);
void count_read();
void count_unknown_workspace(Library of);

/// Tells who asks for a workspace's size that it is none.
template <class Size>
void no_workspace(Library of, Size* size) {
  *size = 0;
  count_unknown_workspace(of);
}

/// What a process that lives has taken of a card.
struct Taken {
  pid_t process;
  std::int64_t bytes;
};
/// Of all processes that count in the same folder.
[[nodiscard]] std::vector<Taken> taken_of(int card);

}  // namespace shard::standin
