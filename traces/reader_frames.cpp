// Headers are scanned once; a payload is checked and decompressed when it is asked for.
#include "traces/reader_frames.h"

#include <zstd.h>

#include <algorithm>

namespace shard::sst {
namespace {

using Bytes = std::span<const std::byte>;

/// Notes beyond these say nothing new.
constexpr std::size_t kMostNotes = 10'000;

/// Calls frame(Frame) for every sound frame, note(offset, why) for every stretch between them.
template <class OnFrame, class OnNote>
void walk(Bytes bytes, OnFrame on_frame, OnNote on_note) {
  std::uint64_t at = kFileHeaderBytes;
  bool lost = false;  // inside a damaged stretch that is already noted
  const auto note = [&](const char* why) {
    if (!lost) on_note(at, why);
    lost = true;
  };
  while (at < bytes.size()) {
    const std::uint64_t left = bytes.size() - at;
    if (left < kFrameHeaderBytes) {
      note("the last frame is cut off");
      break;
    }
    Frame frame{at, {}};
    if (!unpack(std::span<const std::byte, kFrameHeaderBytes>(bytes.data() + at, kFrameHeaderBytes), frame.header)) {
      note("a frame header is damaged");  // T7: go on at the next sound header
      at += kAlignment;
      continue;
    }
    lost = false;
    const std::uint64_t area = area_bytes(frame.header.raw_bytes, frame.header.stored_bytes);
    if (area > left - kFrameHeaderBytes) {
      note("the last frame is cut off");
      break;
    }
    on_frame(frame);
    at += kFrameHeaderBytes + area;
  }
}

bool waits(const FrameHeader& header) {
  return header.type == static_cast<std::uint16_t>(FrameType::spans) && header.version == kWaitingSpansVersion;
}

/// Bytes of one row of a frame of rows; 0 for tables of strings and for unknown types.
std::uint32_t row_bytes(const FrameHeader& header) {
  switch (static_cast<FrameType>(header.type)) {
    case FrameType::spans: return waits(header) ? 53 : 45;
    case FrameType::memory: return 42;
    case FrameType::counters: return 24;
    case FrameType::chunk_states: return 18;
    case FrameType::flows: return 25;
    case FrameType::arenas: return 30;
    case FrameType::collectives: return 21;
    case FrameType::dropped: return 8;
    case FrameType::end: return 24;
    case FrameType::meta:
    case FrameType::strings:
    case FrameType::tracks: return 0;
  }
  return 0;
}

}  // namespace

std::vector<Frame> scan(Bytes bytes, std::vector<Truncated>& truncated) {
  // Counted first: a vector that grows would take three times its size for a moment.
  std::size_t count = 0;
  walk(
      bytes, [&](const Frame&) { ++count; }, [](std::uint64_t, const char*) {});
  std::vector<Frame> frames;
  frames.reserve(count);
  walk(
      bytes, [&](const Frame& frame) { frames.push_back(frame); },
      [&](std::uint64_t offset, const char* why) {
        if (truncated.size() < kMostNotes) truncated.push_back({offset, why});
      });
  return frames;
}

bool known(const FrameHeader& header) {
  return header.type >= static_cast<std::uint16_t>(FrameType::meta) &&
         header.type <= static_cast<std::uint16_t>(FrameType::end) &&
         (header.version == kFrameVersion || waits(header)) && header.codec <= static_cast<std::uint8_t>(Codec::zstd);
}

bool sizes_agree(const FrameHeader& header) {
  if (header.raw_bytes > kMaxRawBytes || header.count > kMaxRows) return false;
  if (header.codec == 0 && header.stored_bytes != header.raw_bytes) return false;
  const std::uint32_t row = row_bytes(header);
  if (row == 0) return header.codec == 0;  // T6: tables of strings are never compressed
  const std::uint64_t fixed = header.type == static_cast<std::uint16_t>(FrameType::memory) ? 8 : 0;
  return header.raw_bytes == fixed + std::uint64_t{row} * header.count;
}

Payloads::Payloads(Bytes file) : file_(file) {}

Payloads::~Payloads() {
  ZSTD_freeDCtx(zstd_);
}

Payloads::Payload Payloads::of(const Frame& frame) {
  const FrameHeader& header = frame.header;
  if (!sizes_agree(header)) return {{}, "sizes in a frame header contradict each other (T5)"};
  const std::uint64_t area = area_bytes(header.raw_bytes, header.stored_bytes);
  const Bytes stored = file_.subspan(frame.offset + kFrameHeaderBytes, area);
  if (checksum(stored) != header.payload_crc) return {{}, "a frame is damaged: its checksum differs"};
  if (header.codec != static_cast<std::uint8_t>(Codec::zstd)) return {stored.first(header.stored_bytes), nullptr};
  raw_.resize(header.raw_bytes);
  if (zstd_ == nullptr) zstd_ = ZSTD_createDCtx();
  const std::size_t size = ZSTD_decompressDCtx(zstd_, raw_.data(), raw_.size(), stored.data(), header.stored_bytes);
  if (ZSTD_isError(size) != 0 || size != header.raw_bytes) return {{}, "a frame does not decompress to its size"};
  return {raw_, nullptr};
}

}  // namespace shard::sst
