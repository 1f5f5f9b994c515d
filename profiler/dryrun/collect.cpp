// Snapshots, counters and notes, each process its own files.
#include "profiler/dryrun/collect.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "profiler/dryrun/holdings.h"
#include "profiler/dryrun/phases.h"
#include "profiler/standin/counters.h"
#include "profiler/standin/work.h"
#include "traces/import/byte_source.h"
#include "traces/import/pytorch_snapshot.h"
#include "traces/sites.h"

namespace shard::dryrun {
namespace {

namespace fs = std::filesystem;

/// What the stand-in counted: of the process that took most of a card, whatever became of it.
void add_counters(const fs::path& path, DryRun& run) {
  standin::Counters counters{};
  std::ifstream in(path, std::ios::binary);
  if (!in.read(reinterpret_cast<char*>(&counters), sizeof(counters))) return;
  run.device_peak_bytes = std::max(run.device_peak_bytes, counters.device_peak_bytes);
  run.pinned_peak_bytes = std::max(run.pinned_peak_bytes, counters.pinned_peak_bytes);
  run.values_read += counters.values_read;
  for (std::size_t i = 0; i < run.unknown_workspaces.size(); ++i)
    run.unknown_workspaces[i] += counters.unknown_workspaces[i];
  // Of the processes that a launcher starts each takes all steps.
  run.optimizer_steps = std::max(run.optimizer_steps, counters.optimizer_steps);
  run.backward_calls = std::max(run.backward_calls, counters.backward_calls);
}

/// Files of work and operators, of the process that kept most.
void add_work(const fs::path& path, DryRun& run) {
  std::error_code error, of_other;
  if (!run.work.empty() && fs::file_size(path, error) <= fs::file_size(run.work, of_other)) return;
  run.work = path;
  run.operators.clear();
  const std::string process = path.stem().string() + ".";
  for (fs::directory_iterator entry(path.parent_path(), error), none; !error && entry != none; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    std::int64_t step = 0;
    if (name.starts_with(process) && name.ends_with(".operators.json") &&
        std::from_chars(name.data() + process.size(), name.data() + name.size(), step).ec == std::errc())
      run.operators[step] = entry->path();
  }
}

/// A line each, as python/alone.py writes them.
void add_absent(const fs::path& path, DryRun& run) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    const nlohmann::json said = nlohmann::json::parse(line, nullptr, false);
    if (!said.is_object()) continue;
    const int answer = said.value("answer", 0);
    run.absent.push_back({.what = said.value("what", ""),
                          .file = said.value("file", ""),
                          .line = said.value("line", std::int64_t{0}),
                          .as_equal = answer == 1,
                          .refused = answer == 2});
  }
}

/// As python/routing.py writes it.
void add_routing(const fs::path& path, DryRun& run) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    const nlohmann::json said = nlohmann::json::parse(line, nullptr, false);
    if (!said.is_object()) continue;
    run.routing.push_back({.file = said.value("file", ""),
                           .line = said.value("line", std::int64_t{0}),
                           .experts = said.value("experts", std::int64_t{0}),
                           .each = said.value("each", std::int64_t{0})});
  }
}

/// As python/tuned.py writes it.
void add_tuned(const fs::path& path, DryRun& run) {
  std::ifstream in(path);
  std::set<std::string> kernels;
  for (std::string kernel; std::getline(in, kernel);) kernels.insert(kernel);
  run.tuned_kernels = std::ssize(kernels);
}

/// As recipes write it.
void add_replaced(const fs::path& path, DryRun& run) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    const nlohmann::json said = nlohmann::json::parse(line, nullptr, false);
    if (!said.is_object()) continue;
    run.replaced.push_back({.what = said.value("what", ""), .by = said.value("by", ""), .why = said.value("why", "")});
  }
}

void add_software(const fs::path& path, DryRun& run) {
  std::ifstream in(path);
  const nlohmann::json said = nlohmann::json::parse(in, nullptr, false);
  if (!said.is_object()) return;
  for (const auto& [module, version] : said.items()) {
    std::string& known = run.software[module];
    if (version.is_string()) known = version.get<std::string>();
  }
}

/// A first request that is too large for the card leaves no event but this one.
void add_unmet(const LoadedTrace& recording, DryRun& run) {
  const Trace& trace = recording.trace;
  const SnapshotEvent* last = nullptr;
  for (const SnapshotEvent& event : recording.snapshot->events) {
    if (event.action != SnapshotAction::oom) continue;
    if (!run.unmet) run.unmet.emplace();
    ++run.unmet->requests;
    last = &event;
  }
  if (last == nullptr) return;
  run.unmet->bytes = last->bytes;
  const FrameId site = last->stack.valid() ? sites(trace)[static_cast<std::size_t>(last->stack.value)] : FrameId{};
  if (!site.valid()) return;
  const StackFrame& frame = trace.frame_of(site);
  run.unmet->file = trace.name_of(frame.file);
  run.unmet->function = trace.name_of(frame.function);
  run.unmet->line = frame.written_line();
  run.unmet->site = site_text(trace, site);
}

/// The snapshot that PyTorch wrote; what is allocated is what PyTorch itself calls so.
Result<LoadedTrace> recording_of(const fs::path& path) {
  Result<import::ByteSource> source = import::ByteSource::open(path);
  if (!source) return source.error();
  return import::import_pytorch_snapshot(*source, import::Counted::allocated);
}

/// The largest of the numbers that processes wrote.
void raise_to(const fs::path& path, std::int64_t& most) {
  std::int64_t number = 0;
  if (std::ifstream(path) >> number) most = std::max(most, number);
}

/// As python/ranks.py writes it.
void add_end(const fs::path& path, DryRun& run) {
  std::ifstream in(path);
  if (!in) return;
  const nlohmann::json said = nlohmann::json::parse(in, nullptr, false);
  if (!said.is_object()) return;
  run.ended.exit_code = said.value("exit_code", 0);
  run.ended.signal = said.value("signal", 0);
  run.ended.peak_resident_bytes = said.value("peak_resident_bytes", std::int64_t{0});
  run.ended_by_others = said.value("ended_by_others", false);
}

}  // namespace

void collect(const fs::path& folder, DryRun& run) {
  std::error_code error;
  std::int64_t most = -1;
  for (fs::directory_iterator entry(folder, error), none; !error && entry != none; entry.increment(error)) {
    const fs::path path = entry->path();
    if (path.extension() == ".fault") {
      std::ifstream in(path);
      std::getline(in, run.fault);
    }
    if (path.extension() == ".software") add_software(path, run);
    if (path.extension() == standin::kCountersSuffix) add_counters(path, run);
    if (path.extension() == standin::kWorkSuffix) add_work(path, run);
    if (path.extension() == ".peak") raise_to(path, run.allocated_peak_bytes);
    if (path.extension() == ".host") raise_to(path, run.host_peak_bytes);
    if (path.extension() != ".pickle") continue;
    Result<LoadedTrace> loaded = recording_of(path);
    if (!loaded) {
      run.fault = loaded.error().what;
      continue;
    }
    add_unmet(*loaded, run);
    std::int64_t held = 0;
    for (const ArenaSummary& arena : loaded->trace.arenas) held = std::max(held, arena.live_peak_bytes);
    if (held <= most) continue;
    most = held;
    run.allocations_gone = add_phases(fs::path(path).replace_extension(".phases"), *loaded);
    add_holdings(fs::path(path).replace_extension(".holdings"), *loaded);
    run.recording = std::move(*loaded);
    run.snapshot = path;
  }
  std::ifstream names(folder / "unknown");
  for (std::string name; std::getline(names, name);) run.unknown_functions.push_back(name);
  std::ranges::sort(run.unknown_functions);
  add_absent(folder / "absent", run);
  add_routing(folder / "routing", run);
  add_tuned(folder / "tuned", run);
  add_replaced(folder / "replaced", run);
  add_end(folder / "ended.json", run);
}

}  // namespace shard::dryrun
