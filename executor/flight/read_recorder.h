// Reads what ranks left in their flight recorders, while they run or when they have ended in whatever way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "executor/flight/layout.h"
#include "traces/base/result.h"

namespace shard::flight {

/// An event and its number in the rank's run, from 1.
struct Entry {
  std::uint64_t number = 0;
  Event event{};
};

struct Recording {
  std::int32_t rank = 0;
  std::int32_t world = 1;
  std::int64_t process = 0;
  std::int64_t clock_ns = 0;
  std::int64_t wall_ns = 0;
  std::string plan_hash{};
  Seen seen = Seen::nothing;
  std::vector<Entry> entries{};  ///< in order of their numbers, which have gaps where records are torn
  std::int64_t torn = 0;         ///< records that were being written, or are none
  std::unordered_map<std::int32_t, std::string> op_names{};
  std::unordered_map<std::int32_t, std::string> unit_names{};
};

/// Recorders one behind another, as a file has them. Trusts nothing: what is no whole record is counted as torn, names
/// are made printable. Memory: some times the bytes given.
/// Errc::malformed where a header is none, or says more than there is.
[[nodiscard]] Result<std::vector<Recording>> read_recordings(std::span<const std::byte> bytes,
                                                             std::string_view label = "recorder");
/// Of a file, or of all files *.recorder of a folder; by rank. Errc::no_input, Errc::malformed.
[[nodiscard]] Result<std::vector<Recording>> read_recordings(const std::filesystem::path& path);

/// The content of the file behind a descriptor; empty where it cannot be read, or is larger than a recorder.
[[nodiscard]] std::vector<std::byte> content_of(int descriptor);

}  // namespace shard::flight
