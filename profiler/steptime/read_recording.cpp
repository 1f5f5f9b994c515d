// A trace of ours has names and durations of kernels, but no grids.
#include "profiler/steptime/read_recording.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "traces/import/byte_source.h"
#include "traces/import/nsys_program.h"

namespace shard::steptime {
namespace {

using import::KinetoKernel;
using import::KinetoOperator;
using import::KinetoProgram;

constexpr const char* kKinds =
    "a recording of PyTorch's profiler (JSON, gzip or not), an export of nsys (nsys export --type sqlite), or a trace "
    "of 'shardscope profile' (.sst)";

enum class Kind { trace, nsys, kineto };

Result<Kind> kind_of(const std::filesystem::path& path) {
  Result<import::ByteSource> source = import::ByteSource::open(path);
  if (!source) return source.error();
  std::string_view first = source->peek(64);
  if (!source->compressed() && first.starts_with('\x89')) return Kind::trace;
  if (!source->compressed() && first.starts_with("SQLite format 3")) return Kind::nsys;
  if (first.starts_with("\xef\xbb\xbf")) first.remove_prefix(3);
  const std::size_t at = first.find_first_not_of(" \t\r\n");
  if (at != std::string_view::npos && (first[at] == '{' || first[at] == '[')) return Kind::kineto;
  return Error{Errc::contradiction, "is none of the recordings that durations are taken from", path.string(), kKinds};
}

/// "process 7 thread 8, CUDA calls" and "process 7 thread 8, ranges" are rows of one thread.
std::string_view thread_of(std::string_view row) {
  return row.substr(0, row.rfind(", "));
}

/// A trace of ours as PyTorch's profiler would have told it.
class OfTrace {
 public:
  explicit OfTrace(const Trace& trace) : trace_(trace) {}

  KinetoProgram run() {
    const std::optional<Rank> rank = first_rank();
    for (const Flow& flow : trace_.flows)
      if (flow.kind == FlowKind::launch) launches_.emplace(std::pair(flow.to_track, flow.to_ns), &flow);
    for (std::size_t i = 0; i < trace_.spans.size(); ++i) add(trace_.spans[i], rank);
    return std::move(program_);
  }

 private:
  static bool is_work(Activity activity) {
    return activity == Activity::kernel || activity == Activity::copy || activity == Activity::fill;
  }

  std::optional<Rank> first_rank() const {
    std::optional<Rank> first;
    for (std::size_t i = 0; i < trace_.spans.size(); ++i) {
      const Rank rank = trace_.track_of(trace_.spans.track[i]).rank;
      if (trace_.spans.activity[i] == Activity::kernel && (!first || rank < *first)) first = rank;
    }
    return first;
  }

  std::int64_t thread(TrackId track) {
    const std::string_view name = thread_of(trace_.track_of(track).name);
    return threads_.try_emplace(std::string(name), static_cast<std::int64_t>(threads_.size())).first->second;
  }

  void add(const Span& span, std::optional<Rank> rank) {
    const Track& track = trace_.track_of(span.track);
    if (span.activity == Activity::annotation && track.kind == TrackKind::other) {
      std::optional<KinetoOperator> made = import::operator_of_range(trace_.name_of(span.name));
      if (!made) return;
      made->begin_ns = span.begin_ns;
      made->end_ns = span.begin_ns + span.duration_ns;
      made->thread = thread(span.track);
      program_.operators.push_back(std::move(*made));
      return;
    }
    if (!is_work(span.activity) || !rank || track.rank != *rank) return;
    KinetoKernel kernel;
    kernel.name = trace_.name_of(span.name);
    kernel.category = span.activity == Activity::kernel ? "kernel"
                      : span.activity == Activity::copy ? "gpu_memcpy"
                                                        : "gpu_memset";
    kernel.begin_ns = span.begin_ns;
    kernel.duration_ns = span.busy_ns();
    kernel.stream = span.track.value;
    if (span.activity != Activity::kernel) kernel.bytes = span.bytes;
    if (const auto launch = launches_.find({span.track, span.begin_ns}); launch != launches_.end()) {
      kernel.correlation = static_cast<std::int64_t>(program_.calls.size());
      program_.calls.push_back({.begin_ns = launch->second->from_ns,
                                .thread = thread(launch->second->from_track),
                                .correlation = kernel.correlation});
    }
    program_.kernels.push_back(std::move(kernel));
  }

  const Trace& trace_;
  std::map<std::pair<TrackId, std::int64_t>, const Flow*> launches_;  ///< by where they arrive
  std::map<std::string, std::int64_t> threads_;
  KinetoProgram program_;
};

Result<KinetoProgram> read(const std::filesystem::path& path, Kind kind) {
  if (kind == Kind::nsys) return import::read_nsys_program(path);
  if (kind == Kind::kineto) return import::read_kineto_program(path);
  const Result<Trace> trace = load(path);
  if (!trace) return trace.error();
  return program_of_trace(*trace, path.string());
}

}  // namespace

Result<KinetoProgram> program_of_trace(const Trace& trace, const std::string& where) {
  if (trace.header.kind == TraceKind::predicted)
    return Error{Errc::contradiction, "it is a prediction, so its durations are of laws", where,
                 std::string("a recording of a real run: ") + kKinds};
  if (!trace.header.plan_hash.empty())
    return Error{Errc::contradiction, "it is a run of Shardscope's own executor, whose kernels are none of PyTorch's",
                 where, std::string("a recording of the program itself: ") + kKinds};
  return OfTrace(trace).run();
}

Result<Recorded> read_recording(const std::filesystem::path& path) {
  const Result<Kind> kind = kind_of(path);
  if (!kind) return kind.error();
  const Result<KinetoProgram> program = read(path, *kind);
  if (!program) return program.error();
  if (program->kernels.empty())
    return Error{Errc::contradiction, "no kernel is in it", path.string(),
                 *kind == Kind::kineto ? "a recording of PyTorch's profiler with ProfilerActivity.CUDA"
                 : *kind == Kind::nsys ? "an export of nsys profile --trace=cuda,nvtx"
                                       : "a trace that 'shardscope profile' made of a program that used a GPU"};
  return Recorded(*program, path.string());
}

}  // namespace shard::steptime
