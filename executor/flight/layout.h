// The bytes of a flight recorder: a page that says whose it is, a ring of a rank's last events, names of its ops.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "traces/base/ids.h"
#include "traces/base/recorder_file.h"

namespace shard::flight {

/// Values are stored in files: append only.
enum class EventKind : std::uint8_t {
  none = 0,
  phase_begun = 1,
  phase_ended = 2,
  op_begun = 3,
  op_ended = 4,
  started = 5,  ///< a collective
  waiting = 6,  ///< for the oldest collective in flight, which is `call`
  landed = 7,   ///< a collective
};
inline constexpr int kEventKindCount = 8;

[[nodiscard]] constexpr const char* to_string(EventKind kind) {
  switch (kind) {
    case EventKind::none: return "none";
    case EventKind::phase_begun: return "phase begins";
    case EventKind::phase_ended: return "phase ends";
    case EventKind::op_begun: return "op begins";
    case EventKind::op_ended: return "op ends";
    case EventKind::started: return "starts";
    case EventKind::waiting: return "waits for";
    case EventKind::landed: return "has landed";
  }
  return "?";
}

/// What happened, as numbers of the plan that the rank runs.
struct Event {
  std::int64_t time_ns = 0;  ///< of std::chrono::steady_clock
  std::int64_t bytes = 0;    ///< of a collective: the full buffers
  std::int32_t step = 0;     ///< counted from 0
  std::int32_t op = -1;
  std::uint32_t call = 0;  ///< of a collective: the rank's how manieth it is, counted from 1
  std::int32_t unit = -1;
  std::int32_t block = -1;
  EventKind kind = EventKind::none;
  Phase phase = Phase::creation;
  Part part = Part::unknown;
  Collective collective = Collective::all_gather;
  std::uint8_t group = 0;  ///< plan::Group of a collective
  std::array<std::uint8_t, 7> unused{};
  friend bool operator==(const Event&, const Event&) = default;
};

/// Plain, a cache line long, and stored word by word.
struct Record {
  std::uint64_t number = 0;  ///< from 1; 0: never written
  Event event{};
  std::uint64_t check = 0;  ///< check_of() the words before it
};
inline constexpr std::size_t kRecordWords = 8;
using Words = std::array<std::uint64_t, kRecordWords>;
static_assert(sizeof(Record) == sizeof(Words) && std::is_trivially_copyable_v<Record>);

/// Different for records of which one word differs, since odd factors can be undone; of records that are cut in two
/// elsewhere alike once in 2^64.
[[nodiscard]] constexpr std::uint64_t check_of(const Words& words) {
  std::uint64_t sum = 0x9e3779b97f4a7c15;
  std::uint64_t factor = 0xbf58476d1ce4e5b9;
  for (std::size_t i = 0; i + 1 < kRecordWords; ++i, factor += 0x94d049bb133111ea) sum += words[i] * factor;
  return sum;
}

inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::uint32_t kRingRecords = 4096;  ///< 30 steps of a model of four blocks
inline constexpr std::size_t kHeaderBytes = 4096;
inline constexpr std::size_t kRingBytes = kRingRecords * sizeof(Record);
/// Of names; the rest of a plan's ops are told by their numbers.
inline constexpr std::size_t kMostNameBytes = std::size_t{4} << 20;

/// What its launcher saw of a rank whose recorder is kept. Values are stored in files: append only.
enum class Seen : std::uint32_t {
  nothing = 0,
  dead = 1,    ///< it ended without a word
  silent = 2,  ///< it was there, and nothing was heard of it
};

/// At offset 0, written once. The ring follows at kHeaderBytes, then the names: lines "o NUMBER NAME" for ops, "u
/// NUMBER NAME" for units.
struct Header {
  std::array<char, 8> magic = kRecorderMagic;
  std::uint32_t version = kVersion;
  std::uint32_t records = kRingRecords;
  std::uint64_t name_bytes = 0;
  std::int32_t rank = 0;
  std::int32_t world = 1;
  std::int64_t process = 0;
  std::int64_t clock_ns = 0;  ///< the steady clock at one moment ...
  std::int64_t wall_ns = 0;   ///< ... and Unix time at the same one
  std::array<char, 64> plan_hash{};
  std::uint32_t seen = 0;  ///< a Seen, in what is kept
};
static_assert(sizeof(Header) <= kHeaderBytes && std::is_trivially_copyable_v<Header>);

}  // namespace shard::flight
