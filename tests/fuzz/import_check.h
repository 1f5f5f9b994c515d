// What every trace of any tool must keep, whatever the file was: the promises of import.h. Aborts where one is broken,
// so that a fuzzer stops there.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

#include "tests/fuzz/limits.h"
#include "tests/fuzz/profile_check.h"
#include "tests/fuzz/trace_check.h"
#include "traces/import/byte_source.h"
#include "traces/import/import.h"

namespace shard::fuzz {

inline void check(const LoadedTrace& loaded) {
  check_trace(loaded.trace, loaded.format != TraceFormat::sst);
  for (const Instant& instant : loaded.instants) {
    require(!instant.track.valid() || below(instant.track, loaded.trace.tracks.size()));
    require(!instant.name.valid() || below(instant.name, loaded.trace.names.size()));
  }
  require(loaded.lane_count >= 0 && static_cast<std::size_t>(loaded.lane_count) <= loaded.trace.spans.size());
  check(profile(loaded.trace));
  (void)to_json(loaded, summarize(loaded)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  (void)to_text(loaded, summarize(loaded));
}

inline std::size_t decompressed_bytes(std::span<const std::byte> bytes) {
  import::ByteSource source = import::ByteSource::memory(bytes, "fuzz");
  while (!source.window().empty()) source.consume(source.window().size());
  return source.offset();
}

/// Loads `bytes` within its limits; an error must name the byte.
inline Result<LoadedTrace> load_checked(std::span<const std::byte> bytes) {
  std::optional<Limits> limits(decompressed_bytes(bytes));
  Result<LoadedTrace> loaded = load_any(bytes, "fuzz");
  limits.reset();
  if (loaded) {
    check(*loaded);
  } else {
    require(loaded.error().code == Errc::malformed || loaded.error().code == Errc::unavailable);
    require(loaded.error().where.find("byte ") != std::string::npos || loaded.error().code == Errc::unavailable);
  }
  return loaded;
}

}  // namespace shard::fuzz
