// Runs a PyTorch program on a GPU that is not there, and brings back what its allocator did.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "profiler/dryrun/program_python.h"
#include "profiler/process/child.h"
#include "profiler/standin/counters.h"
#include "traces/base/result.h"
#include "traces/import/import.h"

namespace shard::dryrun {

using profiler::Ended;
using profiler::Started;

/// The card to stand in for, and the ranks that the program believes to be one of.
struct Place {
  std::string name;
  int compute_capability = 0;  ///< 10 * major + minor
  int multiprocessors = 0;
  int threads_per_multiprocessor = 0;
  std::int64_t device_bytes = 0;
  int devices = 1;                 ///< that the program sees
  std::int64_t behind = 0;         ///< launches until the device is seen to be done; -1: the host has to wait
  bool addresses_upwards = false;  ///< how the driver places new memory (standin/device_memory.h)
  int world_size = 1;
  std::vector<int> ranks{0};  ///< that run: one, as if the others did, or all, side by side
  int ranks_per_host = 1;
  std::string routing = "balanced";  ///< of tokens to experts: as --routing says, or a JSON list of shares
  std::int64_t routing_draw = 0;     ///< which one at random that is so on average; 0: what is expected
  bool times = false;                ///< what a step gives the device is kept, so that it can be priced
  bool first_run = false;            ///< torch.compile times its kernels (python/tuned.py)
  bool assume_zeros = false;         ///< what other ranks would send, where the program's own code looks at it
};

/// What the host looked at of that which other ranks would have sent, had they run.
struct Absent {
  std::string what;  ///< "an all-reduce among 4 ranks"
  std::string file;  ///< of the line of Python that looked
  std::int64_t line = 0;
  bool as_equal = false;  ///< a library's: it saw what it would if they had sent what this rank has
  bool refused = false;   ///< the program's own: it got an error
};

/// Events of the allocator that are kept, the last ones: with their stacks they take half a gigabyte.
inline constexpr std::int64_t kMostEvents = 500'000;

/// Where tokens choose among experts, which no kernel computed: it was assumed (dryrun/python/routing.py).
struct Routing {
  std::string file;  ///< of the line of Python
  std::int64_t line = 0;
  std::int64_t experts = 0, each = 0;  ///< of which each token gets so many
};

/// What a recipe ran in place of what was asked for (a line of the file "replaced").
struct Replaced {
  std::string what, by, why;
};

/// What the allocator was asked for and did not have, whether the program went on or not.
struct Unmet {
  std::int64_t requests = 0;
  std::int64_t bytes = 0;      ///< the last of them
  std::string file, function;  ///< of the line that asked for that
  std::int64_t line = 0;
  std::string site;  ///< the same in few words
};

struct DryRun {
  PyTorch pytorch;
  int rank = 0;
  Ended ended;
  bool ended_by_others = false;          ///< since another rank failed
  std::optional<LoadedTrace> recording;  ///< of the process that used a GPU most; none where none did, or was killed
  std::filesystem::path snapshot;        ///< it, as PyTorch wrote it; gone when the run's folder is
  std::string fault;                     ///< why PyTorch could not write it
  std::optional<Unmet> unmet;            ///< by any of the rank's processes
  std::vector<std::string> unknown_functions;  ///< that the stand-in does not know, and answered success

  std::int64_t allocations_gone = 0;      ///< before the first that is kept: what phases had of them is not known
  std::int64_t allocated_peak_bytes = 0;  ///< PyTorch's own maximum, which may be of an event that is not kept

  // Counted by the stand-in, and so known of a process that was killed, too.
  std::int64_t device_peak_bytes = 0;  ///< taken of one card, by the process that took most
  std::int64_t pinned_peak_bytes = 0;  ///< pinned host memory, likewise
  std::int64_t host_peak_bytes = 0;    ///< resident, had a recipe's weights on the host been written to; 0: not known
  /// By library (standin/counters.h): so often the size of a workspace was asked, which is counted as none.
  std::array<std::int64_t, standin::kLibraries> unknown_workspaces{};
  std::int64_t values_read = 0;  ///< copies to the host of what no kernel has computed: zeros
  std::int64_t optimizer_steps = 0;
  std::int64_t backward_calls = 0;
  std::int64_t tuned_kernels = 0;  ///< of torch.compile, taken as tuned before (python/tuned.py)

  /// Of the process that kept most (standin/work.h, python/work.py); gone when the run's folder is. Empty: none.
  std::filesystem::path work;
  std::map<std::int64_t, std::filesystem::path> operators;  ///< by step, from 1 on; 0: what no step ended

  std::vector<Absent> absent;
  std::vector<Routing> routing;
  std::vector<Replaced> replaced;
  std::map<std::string, std::string> software;  ///< versions by module; empty: it was not used
};

/// Given each rank's run, in the order of place.ranks, when all have ended.
using Each = std::function<Result<void>(DryRun)>;

/// How the program ended: with several ranks, as the first that failed. `python`: whose PyTorch it is, where the
/// program itself does not say. Folder: for the run's files, an empty one that stays until the answer has been used.
/// `how.environment` is added to. Fails where there is no PyTorch for CUDA, or the program cannot be started.
[[nodiscard]] Result<Ended> dry_run(const std::vector<std::string>& program, const Place& place,
                                    const std::string& python, const std::filesystem::path& folder, const Started& how,
                                    const Each& each);

}  // namespace shard::dryrun
