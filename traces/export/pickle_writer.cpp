// Opcodes of protocol 2.
#include "traces/export/pickle_writer.h"

#include <bit>
#include <nlohmann/json.hpp>

namespace shard {
namespace {

/// Longer texts and further ones are written each time: memory stays small.
constexpr std::size_t kMaxTexts = 1 << 20;

std::string utf8(std::string_view text) {
  using Json = nlohmann::json;
  return Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace)).get<std::string>();
}

}  // namespace

PickleWriter::PickleWriter(OutputFile& out) : out_(out) {
  out_.write("\x80\x02");  // PROTO 2
}

void PickleWriter::little_endian(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>((value >> (8 * i)) & 0xFFU);
  out_.write(text);
}

void PickleWriter::integer(std::int64_t value) {
  if (value >= 0 && value < 256) {
    out_.write("K");  // BININT1
    little_endian(static_cast<std::uint64_t>(value), 1);
  } else if (value >= INT32_MIN && value <= INT32_MAX) {
    out_.write("J");  // BININT
    little_endian(static_cast<std::uint64_t>(value), 4);
  } else {
    out_.write("\x8a\x08");  // LONG1 of eight bytes, two's complement
    little_endian(static_cast<std::uint64_t>(value), 8);
  }
}

void PickleWriter::unsigned_integer(std::uint64_t value) {
  if (value <= INT64_MAX) return integer(static_cast<std::int64_t>(value));
  out_.write("\x8a\x09");  // LONG1 of nine bytes: the last one is the sign
  little_endian(value, 8);
  little_endian(0, 1);
}

void PickleWriter::boolean(bool value) {
  out_.write(value ? "\x88" : "\x89");  // NEWTRUE, NEWFALSE
}

void PickleWriter::real(double value) {
  out_.write("G");  // BINFLOAT, most significant byte first
  little_endian(__builtin_bswap64(std::bit_cast<std::uint64_t>(value)), 8);
}

void PickleWriter::none() {
  out_.write("N");  // NONE
}

void PickleWriter::tuple_of_two() {
  out_.write("\x86");  // TUPLE2
}

void PickleWriter::text(std::string_view value) {
  const auto known = texts_.find(std::string(value));
  if (known != texts_.end()) return again(known->second);
  const std::string valid = utf8(value);
  out_.write("X");  // BINUNICODE
  little_endian(valid.size(), 4);
  out_.write(valid);
  if (texts_.size() < kMaxTexts) texts_.emplace(value, remember());
}

void PickleWriter::begin_list() {
  out_.write("](");  // EMPTY_LIST, MARK
}

void PickleWriter::end_list() {
  out_.write("e");  // APPENDS
}

void PickleWriter::begin_dict() {
  out_.write("}(");  // EMPTY_DICT, MARK
}

void PickleWriter::end_dict() {
  out_.write("u");  // SETITEMS
}

void PickleWriter::finish() {
  out_.write(".");  // STOP
}

std::uint32_t PickleWriter::remember() {
  out_.write("r");  // LONG_BINPUT
  little_endian(next_, 4);
  return next_++;
}

void PickleWriter::again(std::uint32_t remembered) {
  out_.write("j");  // LONG_BINGET
  little_endian(remembered, 4);
}

}  // namespace shard
