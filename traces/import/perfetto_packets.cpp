// Field numbers are those of protos/perfetto/trace in github.com/google/perfetto.
#include "traces/import/perfetto_packets.h"

#include <zlib.h>

#include <algorithm>
#include <utility>

#include "traces/base/protobuf.h"

namespace shard::import {
namespace {

/// Perfetto compresses at most 512 KiB of packets together; more than this is no trace.
constexpr std::size_t kMaxInflated = 8u << 20;
constexpr std::size_t kLargePacket = 1u << 20;

}  // namespace

bool PerfettoPackets::next(std::string_view& packet) {
  if (buffer_.capacity() > kLargePacket) buffer_ = std::string();
  bool found = false;
  while (!found && !stopped_ && field(found)) {
  }
  packet = buffer_;
  if (!found && !source_.fault().empty()) stop(source_.offset(), source_.fault());
  return found;
}

void PerfettoPackets::stop(std::uint64_t at, std::string why) {
  if (!stopped_) stopped_ = Truncated{at, std::move(why)};
}

bool PerfettoPackets::cut() {
  stop(at_, source_.fault().empty() ? "the file ends inside a packet" : source_.fault());
  return false;
}

bool PerfettoPackets::varint(std::uint64_t& value) {
  const std::string_view head = source_.peek(10);
  std::string_view rest = head;
  const bool ok = ProtoReader::take_varint(rest, value);
  source_.consume(head.size() - rest.size());
  return ok;
}

bool PerfettoPackets::field(bool& found) {
  at_ = source_.offset();
  if (source_.peek() < 0) return false;
  std::uint64_t tag = 0, length = 0;
  if (!varint(tag)) return cut();
  switch (static_cast<ProtoWire>(tag & 7)) {
    case ProtoWire::varint: return varint(length) || cut();
    case ProtoWire::fixed64: return source_.skip(8) || cut();
    case ProtoWire::fixed32: return source_.skip(4) || cut();
    case ProtoWire::delimited:
      if (!varint(length)) return cut();
      if (tag >> 3 != 1) return source_.skip(length) || cut();
      buffer_.clear();
      found = source_.append(buffer_, length);
      return found || cut();
  }
  stop(at_, "no packet begins here");
  return false;
}

std::string inflated_packets(std::string_view bytes, bool& ok) {
  z_stream zlib{};
  std::string packets;
  ok = inflateInit(&zlib) == Z_OK;
  if (!ok) return packets;
  zlib.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));  // zlib's interface; it only reads
  zlib.avail_in = static_cast<uInt>(std::min<std::size_t>(bytes.size(), 1u << 30));
  int code = Z_OK;
  while (code == Z_OK && packets.size() < kMaxInflated) {
    const std::size_t held = packets.size();
    packets.resize(held + (1u << 16));
    zlib.next_out = reinterpret_cast<Bytef*>(packets.data() + held);
    zlib.avail_out = 1u << 16;
    code = ::inflate(&zlib, Z_NO_FLUSH);
    packets.resize(packets.size() - zlib.avail_out);
    if (zlib.avail_in == 0 && zlib.avail_out != 0 && code == Z_OK) break;
  }
  inflateEnd(&zlib);
  ok = code == Z_STREAM_END;
  return packets;
}

}  // namespace shard::import
