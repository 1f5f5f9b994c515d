// The frames of a trace file: where they are, and their payloads (internal to the reader; FORMAT.md T3 to T7).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "traces/frame.h"
#include "traces/reader.h"

struct ZSTD_DCtx_s;

namespace shard::sst {

/// A frame whose header and extent are sound.
struct Frame {
  std::uint64_t offset = 0;
  FrameHeader header;

  [[nodiscard]] FrameType type() const { return static_cast<FrameType>(header.type); }
};

/// Finds the frames. What lies between sound frames is noted in `truncated`.
[[nodiscard]] std::vector<Frame> scan(std::span<const std::byte> bytes, std::vector<Truncated>& truncated);

/// Whether this program knows the frame's type, version and codec.
[[nodiscard]] bool known(const FrameHeader& header);

/// Whether sizes in a known frame's header agree with each other (T5).
[[nodiscard]] bool sizes_agree(const FrameHeader& header);

/// Gives out payloads, one at a time; each thread has one of its own.
class Payloads {
 public:
  explicit Payloads(std::span<const std::byte> file);
  Payloads(Payloads&&) = delete;
  ~Payloads();

  struct Payload {
    std::span<const std::byte> raw;  ///< valid until the next call
    const char* why = nullptr;       ///< not null: why the frame cannot be used
  };
  [[nodiscard]] Payload of(const Frame& frame);

 private:
  std::span<const std::byte> file_;
  ZSTD_DCtx_s* zstd_ = nullptr;
  std::vector<std::byte> raw_;  // decompressed
};

}  // namespace shard::sst
