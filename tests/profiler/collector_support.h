// A collector in a process of its own behind a CUPTI that is played, and records for it.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "profiler/cupti/collector.h"
#include "profiler/spool/read_spool.h"
#include "profiler/timeline/timeline.h"
#include "tests/profiler/fake_cupti.h"
#include "traces/base/scratch.h"

namespace shard::profiler {

using fake_cupti::Records;

inline std::int64_t host_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

inline CUpti_ActivityKernel10 kernel(std::uint64_t begin, std::uint64_t end, std::uint32_t correlation,
                                     std::uint64_t node = 0) {
  CUpti_ActivityKernel10 k{};
  k.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  k.start = begin;
  k.end = end;
  k.correlationId = correlation;
  k.graphNodeId = node;
  k.streamId = 7;
  k.name = "multiply";
  return k;
}

inline CUpti_ActivityMarker2 marker(std::uint32_t id, std::uint64_t time, std::uint32_t flags, const char* name) {
  CUpti_ActivityMarker2 m{};
  m.kind = CUPTI_ACTIVITY_KIND_MARKER;
  m.id = id;
  m.timestamp = time;
  m.flags = static_cast<CUpti_ActivityFlag>(flags);
  m.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
  m.objectId.pt.threadId = 42;
  m.name = name;
  return m;
}

inline CuptiFunctions fake() {
  ::setenv(kCuptiVariable, FAKE_CUPTI, 1);
  Result<CuptiFunctions> functions = open_cupti();
  EXPECT_TRUE(functions.has_value()) << (functions ? "" : functions.error().what);
  return functions ? *functions : CuptiFunctions{};
}

/// Runs in a child, since CUPTI has one collector a process, and reads what it left.
class InAChild : public ::testing::Test {
 protected:
  [[nodiscard]] std::filesystem::path path() const { return std::filesystem::path(folder_->path()) / "events"; }

  /// The child's exit status, as waitpid tells it.
  int run(const std::function<void(Collector&, Spool&)>& body, const CollectorOptions& options = {},
          const char* refused = nullptr) {
    const pid_t child = ::fork();
    if (child == 0) {
      Result<std::unique_ptr<Spool>> spool = Spool::create(path());
      if (!spool) ::_exit(90);
      Spool* const kept = spool->release();
      fake_cupti::reset();
      if (refused != nullptr) fake_cupti::answer(refused, CUPTI_ERROR_NOT_SUPPORTED);
      const Result<Collector*> collector = Collector::start(fake(), *kept, options);
      if (!collector) ::_exit(91);
      body(**collector, *kept);
      ::_exit(0);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    return status;
  }
  [[nodiscard]] Timeline timeline() const {
    const Result<SpoolContent> content = read_spool(path());
    EXPECT_TRUE(content.has_value());
    const std::vector<Process> processes{{content ? *content : SpoolContent{}, {}}};
    return timeline_of(processes);
  }
  std::optional<Scratch> folder_ = Scratch::make(testing::TempDir());
};

inline std::vector<Span> spans_of(const Trace& trace) {
  std::vector<Span> spans;
  for (std::size_t i = 0; i < trace.spans.size(); ++i) spans.push_back(trace.spans[i]);
  return spans;
}

inline std::vector<std::string> names_of(const Trace& trace) {
  std::vector<std::string> names;
  for (const Span& span : spans_of(trace)) names.emplace_back(trace.name_of(span.name));
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace shard::profiler
