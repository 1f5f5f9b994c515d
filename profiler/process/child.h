// Another program as a process of its own: started, waited for, and ended when this one is.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "traces/base/result.h"

namespace shard::profiler {

/// How a process ended.
struct Ended {
  int exit_code = 0;                     ///< 128 + signal where it ended by one
  int signal = 0;                        ///< 0: by itself
  bool timed_out = false;                ///< it was told to end
  std::string out;                       ///< what it printed, where that was read
  std::int64_t peak_resident_bytes = 0;  ///< host memory, the most of it and of each of its children
};

struct Started {
  std::map<std::string, std::string> environment{};  ///< beside this process's own
  bool out_to_errors = false;                        ///< what it prints on stdout goes to this process's stderr
  std::optional<double> timeout_seconds{};           ///< then SIGTERM, and SIGKILL ten seconds later
  std::function<void()> meanwhile{};                 ///< called every few milliseconds while it runs
};

/// Runs a program with this process's own streams, to its end. It gets SIGTERM when this process ends.
/// Errc::unavailable where it cannot be started.
[[nodiscard]] Result<Ended> run_to_its_end(const std::vector<std::string>& words, const Started& how);

/// The same, but what it prints on stdout is read, and stderr is passed over.
[[nodiscard]] Result<Ended> run_and_read(const std::vector<std::string>& words);

/// The path of a program in PATH; "" where there is none.
[[nodiscard]] std::string found_in_path(const std::string& program);

}  // namespace shard::profiler
