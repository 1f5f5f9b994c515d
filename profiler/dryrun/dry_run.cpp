// The run's folder holds: the stand-in, a library of functions that it does not know, the hook, and what comes back.
#include "profiler/dryrun/dry_run.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <span>
#include <sstream>

#include "profiler/dryrun/imports.h"
#include "profiler/dryrun/resources.h"
#include "profiler/dryrun/stub_library.h"
#include "profiler/standin/counters.h"

namespace shard::dryrun {
namespace {

namespace fs = std::filesystem;

constexpr const char* kStandIn = "libshardscope_standin.so";
/// What it leaves in the folder when it comes into a process.
constexpr const char* kMark = "loaded";
/// What libraries look for that want the driver.
constexpr const char* kDriver = "libcuda.so.1";

Result<void> write(const fs::path& path, std::span<const std::byte> bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  out.flush();
  if (out) return {};
  return Error{Errc::io, "the run's files cannot be written", path.string(), "room in TMPDIR"};
}

/// The functions that the program's libraries import, or ask for by name, and the stand-in lacks.
Result<std::set<std::string>> functions_to_make_up(const PyTorch& pytorch, const fs::path& standin) {
  const Result<std::set<std::string>> known = exported_functions(standin);
  if (!known) return known.error();
  std::set<std::string> missing;
  const auto add = [&](const std::set<std::string>& names) {
    std::ranges::set_difference(names, *known, std::inserter(missing, missing.end()));
  };
  for (const fs::path& library : libraries_of(pytorch)) {
    const Result<std::set<std::string>> imported = imported_functions(library);
    if (!imported) continue;  // one that nobody may read is none of the program's
    add(*imported);
    if (!imported->empty()) add(named_functions(library));
  }
  for (const fs::path& source : sources_of_triton(pytorch)) add(named_functions(source));
  return missing;
}

std::string before(const std::string& first, const char* variable) {
  const char* const rest = std::getenv(variable);
  return rest == nullptr || *rest == '\0' ? first : first + ":" + rest;
}

std::map<std::string, std::string> environment_of(const PyTorch& pytorch, const Place& place, const fs::path& folder) {
  std::string name = place.name;
  std::ranges::replace(name, ',', ' ');
  std::map<std::string, std::string> environment{
      {"SHARDSCOPE_STANDIN",
       "name=" + name + ",cc=" + std::to_string(place.compute_capability) + ",sms=" +
           std::to_string(place.multiprocessors) + ",threads=" + std::to_string(place.threads_per_multiprocessor) +
           ",bytes=" + std::to_string(place.device_bytes) + ",count=" + std::to_string(place.devices) + ",upwards=" +
           std::to_string(place.addresses_upwards ? 1 : 0) + ",cuda=" + std::to_string(pytorch.cuda_version)},
      {"SHARDSCOPE_STANDIN_UNKNOWN", folder / "unknown"},
      {"SHARDSCOPE_STANDIN_LOADED", folder / kMark},
      {"SHARDSCOPE_STANDIN_COUNTERS", folder},
      // What is compiled and tuned here is not for a real card to find.
      {"TORCHINDUCTOR_CACHE_DIR", folder / "inductor"},
      {"TRITON_CACHE_DIR", folder / "triton"},
      {"SHARDSCOPE_DRYRUN_FOLDER", folder},
      {"SHARDSCOPE_DRYRUN_EVENTS", std::to_string(kMostEvents)},
      {"SHARDSCOPE_DRYRUN_RANKS", std::to_string(place.world_size)},
      {"PYTHONPATH", before(folder / "hook", "PYTHONPATH")},
      {"LD_LIBRARY_PATH", before(folder, "LD_LIBRARY_PATH")},
      {"LD_PRELOAD", before((folder / kStandIn).string() + ":" + (folder / kDriver).string(), "LD_PRELOAD")}};
  if (place.world_size > 1) {
    environment["RANK"] = std::to_string(place.rank);
    environment["WORLD_SIZE"] = std::to_string(place.world_size);
    environment["LOCAL_RANK"] = std::to_string(place.rank % place.ranks_per_host);
    environment["LOCAL_WORLD_SIZE"] = std::to_string(std::min(place.world_size, place.ranks_per_host));
    environment["GROUP_RANK"] = std::to_string(place.rank / place.ranks_per_host);
    environment["MASTER_ADDR"] = "127.0.0.1";
    environment["MASTER_PORT"] = "29500";
  }
  return environment;
}

/// What the stand-in counted: of the process that took most of a card, whatever became of it.
void add_counters(const fs::path& path, DryRun& run) {
  standin::Counters counters{};
  std::ifstream in(path, std::ios::binary);
  if (!in.read(reinterpret_cast<char*>(&counters), sizeof(counters))) return;
  run.device_peak_bytes = std::max(run.device_peak_bytes, counters.device_peak_bytes);
  run.pinned_peak_bytes = std::max(run.pinned_peak_bytes, counters.pinned_peak_bytes);
  run.values_read += counters.values_read;
  run.unknown_workspaces += counters.unknown_workspaces;
}

/// What came back: the snapshot of the process that held most.
void collect(const fs::path& folder, DryRun& run) {
  std::error_code error;
  std::int64_t most = -1;
  for (fs::directory_iterator entry(folder, error), none; !error && entry != none; entry.increment(error)) {
    const fs::path path = entry->path();
    if (path.extension() == ".fault") {
      std::ifstream in(path);
      std::getline(in, run.fault);
    }
    if (path.extension() == standin::kCountersSuffix) add_counters(path, run);
    if (path.extension() == ".peak") {
      std::int64_t peak = 0;
      if (std::ifstream(path) >> peak) run.allocated_peak_bytes = std::max(run.allocated_peak_bytes, peak);
    }
    if (path.extension() != ".pickle") continue;
    Result<LoadedTrace> loaded = load_any(path);
    if (!loaded) {
      run.fault = loaded.error().what;
      continue;
    }
    std::int64_t held = 0;
    for (const ArenaSummary& arena : loaded->trace.arenas) held = std::max(held, arena.live_peak_bytes);
    if (held <= most) continue;
    most = held;
    run.recording = std::move(*loaded);
    run.snapshot = path;
  }
  std::ifstream names(folder / "unknown");
  for (std::string name; std::getline(names, name);) run.unknown_functions.push_back(name);
  std::ranges::sort(run.unknown_functions);
}

/// Without the stand-in a program that found no GPU says nothing about one that has it. One that was ended at once may
/// not have come so far.
Result<void> check_loaded(const std::vector<std::string>& program, const Ended& ended, const fs::path& folder) {
  std::error_code error;
  if (ended.timed_out || ended.signal != 0 || fs::exists(folder / kMark, error)) return {};
  return Error{Errc::unavailable,
               "the stand-in GPU was not loaded into the program: it is linked statically, runs as another user, or "
               "libraries in the folder of the run's files cannot be loaded",
               program.front() + ", " + folder.string(),
               "a program that the loader starts (python3 train.py); else set TMPDIR to a folder that is not mounted "
               "noexec"};
}

}  // namespace

Result<DryRun> dry_run(const std::vector<std::string>& program, const Place& place, const fs::path& folder,
                       const Started& how) {
  const Result<PyTorch> pytorch = pytorch_of(program);
  if (!pytorch) return pytorch.error();
  std::error_code error;
  fs::create_directories(folder / "hook", error);
  if (const Result<void> done = write(folder / kStandIn, standin_library()); !done) return done.error();
  if (const Result<void> done = write(folder / "hook" / "sitecustomize.py", hook_program()); !done) return done.error();
  const Result<std::set<std::string>> missing = functions_to_make_up(*pytorch, folder / kStandIn);
  if (!missing) return missing.error();
  const std::vector<std::byte> made_up =
      stub_library(*missing, kDriver, {.library = kStandIn, .handler = "shardscope_standin_unknown"});
  if (const Result<void> done = write(folder / kDriver, made_up); !done) return done.error();
  Started started = how;
  started.environment.merge(environment_of(*pytorch, place, folder));
  const Result<profiler::Ended> ended = profiler::run_to_its_end(program, started);
  if (!ended) return ended.error();
  if (const Result<void> loaded = check_loaded(program, *ended, folder); !loaded) return loaded.error();
  DryRun run;
  run.pytorch = *pytorch;
  run.ended = *ended;
  collect(folder, run);
  return run;
}

}  // namespace shard::dryrun
