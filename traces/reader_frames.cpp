// Headers are scanned once; a payload is checked and decompressed when it is asked for.
#include "traces/reader_frames.h"

#include <zstd.h>

#include <algorithm>

#include "traces/rows.h"

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
  if (header.codec > static_cast<std::uint8_t>(Codec::zstd)) return false;
  const auto type = static_cast<FrameType>(header.type);
  std::uint16_t latest = is_table(type) ? kFrameVersion : 0;
  with_row_type(type, [&]<class Row>() { latest = latest_version<Row>(); });
  return header.version >= 1 && header.version <= latest;
}

bool sizes_agree(const FrameHeader& header) {
  if (header.raw_bytes > kMaxRawBytes || header.count > kMaxRows) return false;
  if (header.codec == 0 && header.stored_bytes != header.raw_bytes) return false;
  const auto type = static_cast<FrameType>(header.type);
  if (is_table(type)) return header.codec == 0;  // T6
  std::uint64_t expected = 0;
  with_row_type(type, [&]<class Row>() {
    expected = Rows<Row>::fixed_bytes + std::uint64_t{row_bytes<Row>(header.version)} * header.count;
  });
  return header.raw_bytes == expected;
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
