// Fuzz target: whatever a rank left in its flight recorder, or something else wrote over it, it is read and judged.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "executor/flight/verdict.h"
#include "tests/fuzz/limits.h"

namespace {

using namespace shard;
using namespace shard::flight;

void use(const std::vector<Recording>& recordings) {
  for (const Recording& each : recordings) {
    if (each.entries.size() + static_cast<std::size_t>(each.torn) > kRingRecords) std::abort();
    (void)own_words(each);
  }
  (void)verdict(recordings, {});
  (void)verdict(recordings, {.dead = 0, .now_ns = 1});
  (void)verdict(recordings, {.silent = {0}, .now_ns = 1});
}

}  // namespace

/// The input as the first records of a ring, with checks that are right where the first byte is even, and as names:
/// whole recorders are a quarter of a megabyte, most of which says nothing.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(data);
  const fuzz::Limits limits(kHeaderBytes + kRingBytes + 2 * size);
  if (const auto read = read_recordings(std::span(bytes, size)); read) use(*read);
  if (size < 1 || size > kRingBytes) return 0;
  std::vector<std::byte> file(kHeaderBytes + kRingBytes + size);
  const Header header{.name_bytes = size};
  std::memcpy(file.data(), &header, sizeof header);
  for (std::size_t at = 0; at + sizeof(Words) <= size; at += sizeof(Words)) {
    Words words;
    std::memcpy(words.data(), bytes + at, sizeof words);
    words[0] = at / sizeof words + 1;
    if (data[0] % 2 == 0) words.back() = check_of(words);
    std::memcpy(file.data() + kHeaderBytes + at, words.data(), sizeof words);
  }
  std::memcpy(file.data() + kHeaderBytes + kRingBytes, bytes, size);
  const auto read = read_recordings(file);
  if (!read || read->size() != 1) std::abort();
  use(*read);
  return 0;
}
