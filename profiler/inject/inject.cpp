// The library that CUDA loads into a program before its first call (CUDA_INJECTION64_PATH): starts the collector, and
// is otherwise not there. It prints nothing, throws nothing, and lets the program go on whatever fails.
#include "profiler/inject/inject.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "profiler/cupti/collector.h"
#include "profiler/cupti/functions.h"
#include "profiler/spool/spool.h"

namespace shard::profiler {
namespace {

constexpr std::chrono::milliseconds kLook{50};
/// The same where events come so fast that half of what was prepared for them is gone.
constexpr std::chrono::milliseconds kSoon{5};

std::optional<std::int64_t> number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return std::nullopt;
  char* end = nullptr;
  const long long value = std::strtoll(text, &end, 10);
  return *end == '\0' ? std::optional<std::int64_t>(value) : std::nullopt;
}

std::string text_in(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? "" : text;
}

WantedRanges wanted_ranges() {
  WantedRanges wanted{.name = text_in(kRangeVariable), .steps = {}, .step_name = text_in(kStepRangeVariable)};
  WantedSteps steps;
  if (std::sscanf(text_in(kStepsVariable).c_str(), "%d:%d", &steps.first, &steps.last) == 2) wanted.steps = steps;
  return wanted;
}

/// As torchrun, mpirun and srun tell it.
std::int32_t rank_of_this() {
  for (const char* const variable : {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"})
    if (const auto rank = number_in(variable); rank && *rank >= 0 && *rank < 1 << 20)
      return static_cast<std::int32_t>(*rank);
  return -1;
}

/// Both stay until the process is gone: CUPTI delivers behind the end of main.
struct Recording {
  Spool* spool;
  Collector* collector;
};
Recording* recording = nullptr;

/// Looks at the clocks, has room ready for events, and looks at whether whoever profiles wants a pause. It takes no
/// signal of the program's.
void attend(bool paused_at_first) {
  bool paused = paused_at_first;
  while (true) {
    if (recording->spool->is_paused() != paused) {
      paused = !paused;
      paused ? recording->collector->pause() : recording->collector->resume();
    }
    recording->collector->settle();
    recording->collector->look_at_clocks();
    const bool is_busy = recording->spool->prepare() >= Spool::kAhead / 2;
    std::this_thread::sleep_for(is_busy ? kSoon : kLook);
  }
}

void start_attending(bool paused) {
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread(attend, paused).detach();
  } catch (const std::system_error&) {
    // Without it there are fewer looks at the clocks and no pauses.
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Result<void> start_recording(const std::filesystem::path& path) {
  const Result<CuptiFunctions> cupti = open_cupti();
  if (!cupti) return cupti.error();
  SpoolOptions options{.rank = rank_of_this()};
  if (const auto most = number_in(kMostBytesVariable)) options.most = Bytes{*most};
  options.paused = number_in(kPausedVariable) == 1;
  Result<std::unique_ptr<Spool>> spool = Spool::create(path, options);
  if (!spool) return spool.error();
  Spool* const kept = spool->release();
  const Result<Collector*> collector =
      Collector::start(*cupti, *kept, {.paused = options.paused, .wanted = wanted_ranges()});
  if (!collector) {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
    std::filesystem::remove(path.string() + ".names", ignored);
    return collector.error();
  }
  recording = new Recording{kept, *collector};
  // What is complete when the program calls exit; by a signal or _exit it loses what CUPTI has not delivered yet.
  // A forked child has no part in it: CUPTI is its parent's.
  std::atexit([] {
    if (recording->spool->is_own()) recording->collector->flush(true);
  });
  start_attending(options.paused);
  return {};
}

}  // namespace
}  // namespace shard::profiler

/// CUDA's name for it; 1: all is well.
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  using namespace shard;
  using namespace shard::profiler;
  const char* const folder = std::getenv(kFolderVariable);
  if (folder == nullptr || recording != nullptr) return 1;
  try {
    const std::filesystem::path path = std::filesystem::path(folder) / std::to_string(::getpid());
    if (const Result<void> begun = start_recording(path.string() + kEventsSuffix); !begun) {
      const Error& error = begun.error();
      std::ofstream(path.string() + kWhySuffix) << error.what << (error.help.empty() ? "" : "; ") << error.help << "\n";
    }
  } catch (const std::exception&) {
    // No memory for the recorder: the program goes on without it.
  }
  return 1;
}
