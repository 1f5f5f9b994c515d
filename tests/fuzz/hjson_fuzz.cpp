// Fuzz target: no text makes the reader of Hjson crash, cost more than it may, or make a tree that breaks its promises.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "sim/foreign/document.h"
#include "tests/fuzz/limits.h"

namespace {

using shard::foreign::Kind;
using shard::foreign::Member;
using shard::foreign::Value;

/// Tables have each key once, in the file's order; lines grow; only lists and tables hold anything.
void check(const Value& value, int& line, int lines, std::size_t depth) {
  if (depth > shard::foreign::kDeepest + 1 || value.line < line || value.line > lines) std::abort();
  line = value.line;
  if (value.kind != Kind::list && !value.items.empty()) std::abort();
  if (!value.is_table() && !value.members.empty()) std::abort();
  for (const Value& item : value.items) check(item, line, lines, depth + 1);
  for (const Member& member : value.members) {
    if (value.find(member.key) != &member.value) std::abort();
    check(member.value, line, lines, depth + 1);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // NOLINTNEXTLINE: bytes are characters
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const shard::fuzz::Limits limits(size);
  const shard::Result<Value> root = shard::foreign::read_hjson(text, "fuzz.hjson");
  if (!root) {
    const shard::Error& error = root.error();
    if (error.code != shard::Errc::malformed || error.what.empty() || error.where.empty()) std::abort();
    return 0;
  }
  // Ends of lines may be written "\r".
  const auto ends = std::ranges::count_if(text, [](char c) { return c == '\n' || c == '\r'; });
  int line = 1;
  check(*root, line, 1 + static_cast<int>(ends), 0);
  return 0;
}
