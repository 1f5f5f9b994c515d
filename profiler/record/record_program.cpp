// The run's folder holds the library that CUDA loads, and what comes back of each process.
#include "profiler/record/record_program.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <span>
#include <utility>

#include "profiler/inject/inject.h"
#include "profiler/record/injected.h"
#include "profiler/record/keep_ranges.h"
#include "profiler/spool/spool.h"
#include "traces/base/nvidia_libraries.h"

namespace shard::profiler {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr const char* kLibrary = "libshardscope_inject.so";

Result<void> write(const fs::path& path, std::span<const std::byte> bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  out.flush();
  if (out) return {};
  return Error{Errc::io, "the run's files cannot be written", path.string(), "room in TMPDIR"};
}

std::vector<fs::path> files_of(const fs::path& folder, std::string_view suffix) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), none; !error && entry != none; entry.increment(error))
    if (entry->path().string().ends_with(suffix)) found.push_back(entry->path());
  std::sort(found.begin(), found.end());
  return found;
}

/// Tells the program's processes, those that come later too, whether to record.
class Switch {
 public:
  Switch(const fs::path& folder, const RecordOptions& options) : folder_(folder), options_(options) {}

  void look() {
    const bool waits = options_.start_after_seconds &&
                       std::chrono::duration<double>(Clock::now() - begin_).count() < *options_.start_after_seconds;
    const bool off = options_.switches != nullptr && options_.switches->load() % 2 == 1;
    const bool paused = waits || off;
    const std::vector<fs::path> files = files_of(folder_, kEventsSuffix);
    if (paused == told_ && files.size() == known_) return;
    for (const fs::path& file : files) pause_spool(file, paused);
    told_ = paused;
    known_ = files.size();
  }

 private:
  const fs::path& folder_;
  const RecordOptions& options_;
  Clock::time_point begin_ = Clock::now();
  bool told_ = false;
  std::size_t known_ = 0;
};

std::map<std::string, std::string> environment_of(const fs::path& folder, const RecordOptions& options) {
  std::map<std::string, std::string> environment{{"CUDA_INJECTION64_PATH", folder / kLibrary},
                                                 {kFolderVariable, folder},
                                                 {kMostBytesVariable, std::to_string(options.most.count())}};
  if (options.start_after_seconds) environment[kPausedVariable] = "1";
  const WantedRanges& wanted = options.wanted;
  if (!wanted.name.empty()) environment[kRangeVariable] = wanted.name;
  if (wanted.steps)
    environment[kStepsVariable] = std::to_string(wanted.steps->first) + ":" + std::to_string(wanted.steps->last);
  if (!wanted.step_name.empty()) environment[kStepRangeVariable] = wanted.step_name;
  // NVTX finds its recorder by a variable of its own.
  for (const int major : {13, 12})
    if (const auto cupti = cuda::open_library("libcupti.so." + std::to_string(major), cuda::library_folders())) {
      environment["NVTX_INJECTION64_PATH"] = cupti->path;
      break;
    }
  return environment;
}

void collect(const fs::path& folder, const RecordOptions& options, Recorded& recorded) {
  std::vector<Process> processes;
  for (const fs::path& file : files_of(folder, kEventsSuffix)) {
    Result<SpoolContent> content = read_spool(file);
    if (!content) continue;  // of a process that ended while it made the file
    if (options.wanted.any()) keep_ranges(*content, options.wanted);
    processes.push_back({std::move(*content), {}});
    processes.back().rank = Rank{processes.back().content.rank};
  }
  recorded.processes = static_cast<std::int64_t>(processes.size());
  if (!processes.empty()) {
    recorded.timeline = timeline_of(processes);
    return;
  }
  for (const fs::path& file : files_of(folder, kWhySuffix)) {
    std::ifstream in(file);
    std::getline(in, recorded.why_not);
  }
  if (recorded.why_not.empty())
    recorded.why_not = "there was no GPU to profile: the program never came to a driver of CUDA";
}

}  // namespace

Result<Recorded> record_program(const std::vector<std::string>& program, const fs::path& folder,
                                const RecordOptions& options, Started how) {
  const std::span<const std::byte> library = injected_library();
  Recorded recorded;
  Switch at(folder, options);
  if (!library.empty()) {
    if (const Result<void> written = write(folder / kLibrary, library); !written) return written.error();
    how.environment.merge(environment_of(folder, options));
    how.meanwhile = [&, also = how.meanwhile] {
      at.look();
      if (also) also();
    };
  }
  const Result<Ended> ended = run_to_its_end(program, how);
  if (!ended) return ended.error();
  recorded.ended = *ended;
  if (library.empty()) {
    recorded.why_not = "this program was built without CUPTI: where CUDA's toolkit is, build it again";
  } else {
    collect(folder, options, recorded);
  }
  return recorded;
}

}  // namespace shard::profiler
