// Opens files into a session.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "traces/base/result.h"
#include "viewer/ui/session.h"

namespace shard::view {

struct Sources {
  std::vector<std::string> traces;  ///< the first one's clock becomes the axis
  std::string search;               ///< result of `shardscope search --json`; empty: none
  bool force = false;               ///< line up traces of different plans
  bool incomplete = false;          ///< open recordings of other tools that break off
};

/// Called with what is being done and a share from 0 to 1.
using LoadProgress = std::function<void(const std::string& what, double share)>;

/// Loads, prepares and compares everything. A trace that is broken off or damaged is opened as far as it goes, with a
/// Problem that says what was kept; a recording of another tool only with `incomplete` (Errc::malformed). Fails as the
/// readers do, and with Errc::contradiction for two different plans without `force`.
[[nodiscard]] Result<Session> load_session(const Sources& sources, const LoadProgress& progress = {});

/// A session that has nothing but this error to show.
[[nodiscard]] Session session_of(const Error& error);

}  // namespace shard::view
