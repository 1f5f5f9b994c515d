// What the program gives the device, in the order in which it does: a line each in a file, for who prices it
// afterwards.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace shard::standin {

/// A process writes PID and this suffix in the folder that SHARDSCOPE_STANDIN_WORK names; without it nothing is kept.
inline constexpr const char* kWorkSuffix = ".work";
inline constexpr const char* kWorkHeader = "shardscope work 1";

/// Lines are: kind, nanoseconds since the epoch, thread (of the system), capture of a graph that it belongs to (0:
/// none), stream, then the numbers of the kind, then a name where there is one; tabs between.
enum class Work : char {
  kernel = 'k',   ///< grid x, y, z, block x, y, z; name, as the compiler wrote it
  product = 'p',  ///< m, n, k, batch, types of a, b and the result (cudaDataType_t), kind of the computation
  collective =
      'c',        ///< kind (nccl.h), bytes of the full buffer, communicator, its ranks, this one, peer, group of calls
  copy = 'm',     ///< bytes, 1 if from the host's memory, 1 if to it
  fill = 'f',     ///< bytes
  library = 'l',  ///< name of a library's function that launches kernels which nobody sees
  record = 'r',   ///< event
  wait = 'w',     ///< event
  host_wait = 'h',  ///< 0 for all, 1 for the stream, 2 for an event; event
  graph = 'g',      ///< executable graph that is launched
  instance = 'i',   ///< executable graph, the capture that it holds
  step = 's',       ///< an optimizer's step is done; its number, from 1 on
};

/// Whether lines are kept now.
[[nodiscard]] bool keeps_work();

/// Synchronised; nothing where no lines are kept.
void keep_work(Work kind, const void* stream, std::initializer_list<std::int64_t> numbers, const char* name = nullptr);

[[nodiscard]] inline std::int64_t number_of(const void* handle) {
  return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(handle));
}

}  // namespace shard::standin
