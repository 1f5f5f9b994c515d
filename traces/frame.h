// The byte layout that writer and reader share: file header, frame header, checksums (FORMAT.md T1 to T7).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace shard::sst {

static_assert(std::endian::native == std::endian::little, "trace files are little-endian and are copied as they are");

inline constexpr std::array<unsigned char, 8> kMagic = {0x89, 'S', 'S', 'T', '\r', '\n', 0x1a, '\n'};  // T1
inline constexpr std::uint16_t kMajor = 1;
inline constexpr std::uint16_t kMinor = 5;
inline constexpr std::uint32_t kByteOrderMark = 0x0102'0304;
inline constexpr std::size_t kFileHeaderBytes = 64;

inline constexpr std::uint32_t kFrameMagic = 0x4d52'4653;  // "SFRM" in the file (T3)
inline constexpr std::size_t kFrameHeaderBytes = 56;
inline constexpr std::size_t kAlignment = 8;
inline constexpr std::uint32_t kMaxRawBytes = 16u << 20;  // T5
inline constexpr std::uint32_t kMaxRows = 65'536;         // T5
inline constexpr std::uint32_t kMaxStringBytes = 1u << 20;
/// A frame's area is never less than its raw size over this, so a small file cannot expand without bound (T6).
inline constexpr std::uint32_t kMaxExpansion = 64;
/// Times are within +-2^61 so that ends and differences cannot overflow (T9).
inline constexpr std::int64_t kMaxTime = std::int64_t{1} << 61;

/// Values are stored in files: append only.
enum class FrameType : std::uint16_t {
  meta = 1,
  strings = 2,
  tracks = 3,
  spans = 4,
  memory = 5,
  counters = 6,
  chunk_states = 7,
  flows = 8,
  arenas = 9,
  collectives = 10,
  dropped = 11,
  end = 12,
  units = 13,
  strategy = 14,
  capacities = 15,
  frames = 16,
  stacks = 17,
};

/// Version of every frame type, but of those whose columns say more (rows.h).
inline constexpr std::uint16_t kFrameVersion = 1;

enum class Codec : std::uint8_t { raw = 0, zstd = 1 };

struct FrameHeader {
  std::uint16_t type = 0;
  std::uint16_t version = kFrameVersion;
  std::uint8_t codec = 0;
  std::uint32_t count = 0;         ///< rows
  std::uint32_t raw_bytes = 0;     ///< payload before compression
  std::uint32_t stored_bytes = 0;  ///< payload as stored
  std::uint32_t track = 0;         ///< or the first id of a table
  std::int64_t t_min = 0, t_max = 0;
  std::uint32_t payload_crc = 0;  ///< of the whole area, padding included
};

/// Bytes that the payload takes in the file (T6).
[[nodiscard]] constexpr std::uint64_t area_bytes(std::uint32_t raw_bytes, std::uint32_t stored_bytes) {
  const std::uint64_t least = std::max(stored_bytes, raw_bytes / kMaxExpansion);
  return (least + kAlignment - 1) / kAlignment * kAlignment;
}

/// CRC-32 of zlib.
[[nodiscard]] std::uint32_t checksum(std::span<const std::byte> bytes);

/// Little-endian value at `at`; the caller has checked that it is inside.
template <class T>
[[nodiscard]] T get(std::span<const std::byte> bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

template <class T>
void put(std::span<std::byte> bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof(T));
}

/// Writes `header` with its own checksum.
void pack(const FrameHeader& header, std::span<std::byte, kFrameHeaderBytes> out);

/// False where magic or checksum are wrong.
[[nodiscard]] bool unpack(std::span<const std::byte, kFrameHeaderBytes> bytes, FrameHeader& header);

}  // namespace shard::sst
