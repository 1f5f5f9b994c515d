// What PyTorch says when a device's memory is at its end: the figures of its message, and what they say together.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/base/result.h"
#include "traces/base/units.h"

namespace shard {

/// Of which releases a message is; each has other words, and other figures.
enum class OutOfMemoryForm : std::uint8_t {
  cached,       ///< 1.0 to 1.3: "179.00 KiB cached", which is held and not in use
  reserved,     ///< 1.4 to 2.0: "9.87 GiB reserved in total by PyTorch"
  unallocated,  ///< 2.1 and later: "... is reserved by PyTorch but unallocated"
};
[[nodiscard]] const char* to_string(OutOfMemoryForm form);

struct OutOfMemory {
  OutOfMemoryForm form{};
  std::int64_t message_count = 1;  ///< in the text; the first is told
  std::optional<std::int64_t> device;
  Bytes asked;
  Bytes capacity;
  Bytes free;                          ///< of the device, as the driver says
  Bytes allocated;                     ///< by PyTorch, for tensors
  Bytes unallocated;                   ///< reserved by PyTorch's allocator beyond that
  std::optional<Bytes> private_pools;  ///< of what is allocated, that of CUDA graphs
  std::optional<Bytes> allowed;        ///< what the process may take, where that is limited
  std::optional<Bytes> in_use;         ///< by this process: the allocator, CUDA's context, NCCL, libraries
  struct Process {
    std::int64_t id = 0;
    Bytes in_use;
  };
  std::vector<Process> others;

  [[nodiscard]] Bytes reserved() const { return allocated + unallocated; }
  /// Of this process, outside of the allocator; none where the message does not tell it from other processes.
  [[nodiscard]] std::optional<Bytes> outside() const;
  /// Of other processes, those included that the message does not name; of older messages with what is outside of the
  /// allocator.
  [[nodiscard]] Bytes elsewhere() const;
};

/// The first message in a text, a log for instance. Errc::malformed where it has none that is whole; `where` names the
/// text.
[[nodiscard]] Result<OutOfMemory> read_out_of_memory(std::string_view text, const std::string& where);

enum class OutOfMemoryCause : std::uint8_t {
  full,             ///< by what this process has allocated
  fragmentation,    ///< what is reserved and idle would do, in one piece
  other_processes,  ///< what they hold would do
  limit,            ///< of the process, below the device's capacity
  refused,          ///< the driver refuses what it calls free
};
[[nodiscard]] const char* to_string(OutOfMemoryCause cause);

/// Which cause is the most likely.
[[nodiscard]] OutOfMemoryCause cause_of(const OutOfMemory& message);

}  // namespace shard
