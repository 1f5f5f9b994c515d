// Who held memory at a moment: the blocks in use, by stack or by the line of the user's own code that asked for them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "traces/base/result.h"
#include "traces/reader.h"

namespace shard {

/// What blocks are put together by.
enum class HeldBy : std::uint8_t {
  site,   ///< the innermost frame of the user's own code (sites.h)
  stack,  ///< the whole stack
};

struct Holder {
  std::int64_t bytes = 0;            ///< what its blocks take
  std::int64_t requested_bytes = 0;  ///< what was asked for; `bytes` where that is not known
  std::int64_t blocks = 0;
  StackId stack{};  ///< of its blocks, or of the largest of them; invalid: blocks whose stack is not known
  FrameId site{};   ///< of that stack

  friend bool operator==(const Holder&, const Holder&) = default;
};

/// Blocks without a stack that were there when the recording began.
struct ThereAtBegin {
  std::int64_t bytes = 0, blocks = 0;
  std::map<std::int64_t, std::int64_t> blocks_by_size{};  ///< by bytes that one takes
};

struct Held {
  Rank rank{};
  Memory memory = Memory::device;
  HeldBy by = HeldBy::site;
  std::int64_t time_ns = 0;  ///< of the event after which it was held, on the trace's clock
  std::int64_t allocated_bytes = 0, requested_bytes = 0, blocks = 0;
  std::vector<Holder> holders{};                              ///< add up to allocated_bytes; the largest first
  std::array<std::int64_t, kCategoryCount> category_bytes{};  ///< by Category; add up to allocated_bytes too
  /// No producer said the categories: frames, lives and sizes of blocks did (import/pytorch_categories.h).
  bool categories_inferred = false;
  ThereAtBegin there_at_begin{};
};

struct HeldQuery {
  std::optional<Rank> rank{};  ///< without: the one with the highest peak
  Memory memory = Memory::device;
  std::optional<std::int64_t> time_ns{};  ///< on the trace's clock; without: at the peak, over plan order
  HeldBy by = HeldBy::site;
};

/// Errc::contradiction where the trace has no events of that memory and rank, or none at that time.
[[nodiscard]] Result<Held> held_at(const Trace& trace, const HeldQuery& query);

/// {"rank", "memory", "time_seconds" (since `begin_ns`), "allocated_bytes", "requested_bytes", "blocks",
/// "categories": {name: bytes} of those that hold something, "categories_inferred", "there_at_begin": {"bytes",
/// "blocks", "sizes": [{"bytes", "blocks"}], the largest first}, "holders":
/// [{"bytes", "requested_bytes", "blocks", "share", "file", "line", "function", "stack": [{"file", "line",
/// "function"}]}], "rest": {"holders", "bytes", "requested_bytes", "blocks"}}: the `top` largest, and the rest's sums.
/// Stacks begin with the innermost frame; empty, with "file" and "function": of blocks whose stack is not known.
[[nodiscard]] nlohmann::ordered_json to_json(const Trace& trace, const Held& held, std::size_t top,
                                             std::int64_t begin_ns);

/// The same as a table; of holders by stack with the stack below.
[[nodiscard]] std::string to_text(const Trace& trace, const Held& held, std::size_t top, std::int64_t begin_ns);

}  // namespace shard
