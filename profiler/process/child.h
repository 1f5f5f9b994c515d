// Another program as a process of its own: started, waited for, and ended when this one is, with all that it started.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "traces/base/result.h"
#include "traces/base/stop.h"

namespace shard::profiler {

/// How a process ended.
struct Ended {
  int exit_code = 0;                     ///< 128 + signal where it ended by one
  int signal = 0;                        ///< 0: by itself
  bool timed_out = false;                ///< it was told to end
  std::string out;                       ///< what it printed, where that was read
  std::int64_t peak_resident_bytes = 0;  ///< host memory, the most of it and of each of its children
  /// As long as it lives a first signal to this process waits for what is made of the program's end (run_to_its_end).
  std::shared_ptr<const stop::Registration> answering{};
};

struct Started {
  std::map<std::string, std::string> environment{};  ///< beside this process's own
  bool out_to_errors = false;                        ///< what it prints on stdout goes to this process's stderr
  std::optional<double> timeout_seconds{};           ///< then SIGTERM, and SIGKILL ten seconds later (keeper.h)
  std::function<void()> meanwhile{};                 ///< called every few milliseconds while it runs
};

/// Runs a program with this process's own streams, to its end and to that of all that it started, those that left its
/// session, too (keeper.h). The first SIGINT, SIGTERM or SIGHUP to this process is the program's, so that what it did
/// up to there can be told; then this process dies of it. A second one ends program and process at once. In a process
/// without other children. Errc::unavailable where it cannot be started.
[[nodiscard]] Result<Ended> run_to_its_end(const std::vector<std::string>& words, const Started& how);

/// The same, but what it prints on stdout is read, stderr is passed over, and the first signal ends both at once.
[[nodiscard]] Result<Ended> run_and_read(const std::vector<std::string>& words);

/// The path of a program in PATH; "" where there is none.
[[nodiscard]] std::string found_in_path(const std::string& program);

}  // namespace shard::profiler
