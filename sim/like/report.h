// An emulation as JSON, as text for a terminal, and as the tables of docs/emulation.md.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/like/simulate_like.h"
#include "traces/base/numbers.h"

namespace shard::like {

/// Blocks alike: names equal but for their numbers (written as *), one category, one size requested and taken.
struct BlockGroup {
  std::string name;
  Category category{};
  Bytes requested;  ///< of one block
  Bytes taken;      ///< of one block
  std::int64_t blocks = 0;
  [[nodiscard]] Bytes together() const { return taken * blocks; }
};

/// In the order in which each group's first block was taken.
[[nodiscard]] std::vector<BlockGroup> group_blocks(const std::vector<Block>& blocks);

/// {"fits", "verdict", "outside_allocator_bytes" ({"low", "high"}), "peak_uncertainty" (a share),
///  "device_capacity_bytes" (null: no limit), "peak_device_bytes" (reserved: what the framework takes from the
///  device), "peak_allocated_bytes", "peak_active_bytes", "peak_reserved_bytes", "inactive_bytes" and
///  "largest_gap_bytes" (of what is reserved at its peak), "peak_host_bytes" and
///  "peak_pinned_bytes" (of the rank), "peak_host_of_all_bytes" (both, of all ranks of a host), "host_capacity_bytes"
///  (null: no limit), "peak_memory" (the one that is too small, else the device),
///  "optimizer_state_bytes", "phases": [{"phase", "peak_allocated_bytes", "peak_active_bytes", "peak_reserved_bytes"}],
///  "moments": [{"name", "max_allocated_bytes", "max_reserved_bytes",
///  "allocated_bytes", "reserved_bytes", "op", "by_category", "blocks": [{"name", "category", "blocks",
///  "requested_bytes", "block_bytes"}]}], "largest_holders": [{"name", "category", "bytes", "buffers"}] (at the highest
///  moment, largest first), "allocator": {"allocation_count", "segment_count", "allocated_bytes", "reserved_bytes"},
///  "collectives": [{"rank", "phase", "kind", "predicted_count", "predicted_bytes"}]}
[[nodiscard]] nlohmann::json to_json(const MemoryAnswer& answer, std::size_t holders = 5);

/// The same, with "schema_version", "like", "model", "strategy" (an object), "world_size", "rank".
[[nodiscard]] nlohmann::json to_json(const LikeResult& result, std::size_t holders = 5);

/// What an answer's sizes are written in: by the most that the rank, or a host, takes.
[[nodiscard]] ShowBytes unit_of(const MemoryAnswer& answer);

/// The verdict and what it rests on; lines ended by newlines.
[[nodiscard]] std::string verdict_text(const MemoryAnswer& answer, ShowBytes show);

/// "like fsdp2@2.11, rank 0 of 8, three steps"
[[nodiscard]] std::string who(const LikeResult& result);

/// `who`, the moments, and the largest holders at the highest; lines ended by newlines.
[[nodiscard]] std::string details_text(const MemoryAnswer& answer, const std::string& who, ShowBytes show,
                                       std::size_t holders = 5);

/// For each moment a table of every block that is live at its maximum.
[[nodiscard]] std::string to_markdown(const MemoryAnswer& answer);

}  // namespace shard::like
