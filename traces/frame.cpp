// Packing of frame headers; offsets are those of FORMAT.md T3.
#include "traces/frame.h"

#include <zlib.h>

namespace shard::sst {

std::uint32_t checksum(std::span<const std::byte> bytes) {
  return static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

void pack(const FrameHeader& header, std::span<std::byte, kFrameHeaderBytes> out) {
  std::fill(out.begin(), out.end(), std::byte{0});
  put(out, 0, kFrameMagic);
  put(out, 4, header.type);
  put(out, 6, header.version);
  put(out, 8, header.codec);
  put(out, 12, header.count);
  put(out, 16, header.raw_bytes);
  put(out, 20, header.stored_bytes);
  put(out, 24, header.track);
  put(out, 32, header.t_min);
  put(out, 40, header.t_max);
  put(out, 48, header.payload_crc);
  put(out, 52, checksum(out.first<52>()));
}

bool unpack(std::span<const std::byte, kFrameHeaderBytes> bytes, FrameHeader& header) {
  if (get<std::uint32_t>(bytes, 0) != kFrameMagic) return false;
  if (get<std::uint32_t>(bytes, 52) != checksum(bytes.first<52>())) return false;
  header.type = get<std::uint16_t>(bytes, 4);
  header.version = get<std::uint16_t>(bytes, 6);
  header.codec = get<std::uint8_t>(bytes, 8);
  header.count = get<std::uint32_t>(bytes, 12);
  header.raw_bytes = get<std::uint32_t>(bytes, 16);
  header.stored_bytes = get<std::uint32_t>(bytes, 20);
  header.track = get<std::uint32_t>(bytes, 24);
  header.t_min = get<std::int64_t>(bytes, 32);
  header.t_max = get<std::int64_t>(bytes, 40);
  header.payload_crc = get<std::uint32_t>(bytes, 48);
  return true;
}

}  // namespace shard::sst
