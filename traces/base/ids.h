// Identifiers and the small enumerations that a trace is made of. Enumerator values are stored in files: append only.
#pragma once

#include <compare>
#include <cstdint>

namespace shard {

/// A strong integer identifier. Ids of different tags do not compare.
template <class Tag>
struct Id {
  std::int32_t value = -1;
  [[nodiscard]] constexpr bool valid() const { return value >= 0; }
  friend constexpr auto operator<=>(Id, Id) = default;
};

/// An op of a plan; equal on all ranks, with gaps where a rank lacks the op.
using OpId = Id<struct OpTag>;
using BufferId = Id<struct BufferTag>;
/// A group of parameters that is gathered, released and reduced together.
using UnitId = Id<struct UnitTag>;
using Rank = Id<struct RankTag>;

/// Which memory a byte is in.
enum class Memory : std::uint8_t {
  device = 0,
  host = 1,  ///< of the host, pageable where it says nothing of pinning
  disk = 2,
  pinned = 3,  ///< of the host, page-locked: what a GPU copies from and to while it computes
};
inline constexpr int kMemoryCount = 4;

/// The host's, pageable or pinned: the host computes there, and its limit holds for both together.
[[nodiscard]] constexpr bool is_host(Memory memory) {
  return memory == Memory::host || memory == Memory::pinned;
}

/// What a byte is for.
enum class Category : std::uint8_t {
  parameter = 0,  ///< resting parameters or parameter shards
  gathered = 1,   ///< full parameters gathered from shards
  gradient = 2,   ///< gradients, full or shard, and tree nodes waiting for their sibling
  master_parameter = 3,
  optimizer_state = 4,
  activation = 5,     ///< saved by forward for backward
  workspace = 6,      ///< live within one pass only: temporaries, gradients of activations
  communication = 7,  ///< staging for collectives
  input = 8,          ///< batch, labels, losses, scalars that ops read
  not_known = 9,      ///< of recordings of other programs
};
inline constexpr int kCategoryCount = 10;

/// A queue of ops that run in order; different streams overlap unless an edge orders them.
enum class Stream : std::uint8_t {
  compute = 0,
  communication = 1,
  copy_in = 2,   ///< host to device
  copy_out = 3,  ///< device to host
  optimizer = 4,
  host = 5,
};
inline constexpr int kStreamCount = 6;

/// Which part of a run.
enum class Phase : std::uint8_t { creation = 0, first_step = 1, steady_step = 2, save = 3, load = 4, digest = 5, evaluate = 6 };
inline constexpr int kPhaseCount = 7;

/// Which collective. Bytes of a call are the full buffer, padding included.
enum class Collective : std::uint8_t { all_gather = 0, reduce_scatter = 1, all_reduce = 2, broadcast = 3, reduce = 4 };
inline constexpr int kCollectiveCount = 5;

/// Which part of a step an op belongs to, for people and pictures.
enum class Part : std::uint8_t {
  data = 0,
  forward = 1,
  recompute = 2,
  backward = 3,
  reduce = 4,  ///< gradients on their way to their owners
  gather = 5,  ///< parameters on their way to where they are used
  optimizer = 6,
  report = 7,
  creation = 8,
  digest = 9,
  unknown = 10,  ///< of spans: not an op's, or not said
  save = 11,
};
inline constexpr int kPartCount = 12;

/// What a span of another program is, as its recorder says it. The collectives stand together.
enum class Activity : std::uint8_t {
  unknown = 0,  ///< not said: the span's track and name tell
  kernel = 1,   ///< computes on a device
  copy = 2,     ///< between memories, or within one
  fill = 3,     ///< of memory with one value
  all_gather = 4,
  reduce_scatter = 5,
  all_reduce = 6,
  broadcast = 7,
  reduce = 8,
  all_to_all = 9,
  gather = 10,
  scatter = 11,
  send = 12,
  receive = 13,
  send_receive = 14,
  barrier = 15,
  other_collective = 16,  ///< of a kind that is not said
  wait = 17,              ///< of a device for another of its queues: nothing runs
  mark = 18,              ///< a stretch of a device's queue that somebody named: what runs in it has spans of its own
  operation = 19,         ///< of the host, as the program's library calls it
  runtime = 20,           ///< a call of the device's runtime or driver
  annotation = 21,        ///< a stretch of a host thread that somebody named
  python = 22,            ///< a function of a script
  recording = 23,         ///< of the recorder itself
};
inline constexpr int kActivityCount = 24;

[[nodiscard]] constexpr bool is_collective(Activity activity) {
  return activity >= Activity::all_gather && activity <= Activity::other_collective;
}

[[nodiscard]] constexpr Activity activity_of(Collective kind) {
  switch (kind) {
    case Collective::all_gather: return Activity::all_gather;
    case Collective::reduce_scatter: return Activity::reduce_scatter;
    case Collective::all_reduce: return Activity::all_reduce;
    case Collective::broadcast: return Activity::broadcast;
    case Collective::reduce: return Activity::reduce;
  }
  return Activity::other_collective;
}

[[nodiscard]] constexpr const char* to_string(Memory memory) {
  switch (memory) {
    case Memory::device: return "device";
    case Memory::host: return "host";
    case Memory::disk: return "disk";
    case Memory::pinned: return "pinned";
  }
  return "?";
}

[[nodiscard]] constexpr const char* to_string(Category category) {
  switch (category) {
    case Category::parameter: return "parameter";
    case Category::gathered: return "gathered";
    case Category::gradient: return "gradient";
    case Category::master_parameter: return "master_parameter";
    case Category::optimizer_state: return "optimizer_state";
    case Category::activation: return "activation";
    case Category::workspace: return "workspace";
    case Category::communication: return "communication";
    case Category::input: return "input";
    case Category::not_known: return "not_known";
  }
  return "?";
}

[[nodiscard]] constexpr const char* to_string(Stream stream) {
  switch (stream) {
    case Stream::compute: return "compute";
    case Stream::communication: return "communication";
    case Stream::copy_in: return "copy_in";
    case Stream::copy_out: return "copy_out";
    case Stream::optimizer: return "optimizer";
    case Stream::host: return "host";
  }
  return "?";
}

[[nodiscard]] constexpr const char* to_string(Phase phase) {
  switch (phase) {
    case Phase::creation: return "creation";
    case Phase::first_step: return "first_step";
    case Phase::steady_step: return "steady_step";
    case Phase::save: return "save";
    case Phase::load: return "load";
    case Phase::digest: return "digest";
    case Phase::evaluate: return "evaluate";
  }
  return "?";
}

[[nodiscard]] constexpr const char* to_string(Part part) {
  switch (part) {
    case Part::data: return "data";
    case Part::forward: return "forward";
    case Part::recompute: return "recompute";
    case Part::backward: return "backward";
    case Part::reduce: return "reduce";
    case Part::gather: return "gather";
    case Part::optimizer: return "optimizer";
    case Part::report: return "report";
    case Part::creation: return "creation";
    case Part::digest: return "digest";
    case Part::unknown: return "unknown";
    case Part::save: return "save";
  }
  return "?";
}

[[nodiscard]] constexpr const char* to_string(Activity activity) {
  switch (activity) {
    case Activity::unknown: return "unknown";
    case Activity::kernel: return "kernel";
    case Activity::copy: return "copy";
    case Activity::fill: return "fill";
    case Activity::all_gather: return "all_gather";
    case Activity::reduce_scatter: return "reduce_scatter";
    case Activity::all_reduce: return "all_reduce";
    case Activity::broadcast: return "broadcast";
    case Activity::reduce: return "reduce";
    case Activity::all_to_all: return "all_to_all";
    case Activity::gather: return "gather";
    case Activity::scatter: return "scatter";
    case Activity::send: return "send";
    case Activity::receive: return "receive";
    case Activity::send_receive: return "send_receive";
    case Activity::barrier: return "barrier";
    case Activity::other_collective: return "other_collective";
    case Activity::wait: return "wait";
    case Activity::mark: return "mark";
    case Activity::operation: return "operation";
    case Activity::runtime: return "runtime";
    case Activity::annotation: return "annotation";
    case Activity::python: return "python";
    case Activity::recording: return "recording";
  }
  return "?";
}

[[nodiscard]] constexpr const char* to_string(Collective kind) {
  switch (kind) {
    case Collective::all_gather: return "all_gather";
    case Collective::reduce_scatter: return "reduce_scatter";
    case Collective::all_reduce: return "all_reduce";
    case Collective::broadcast: return "broadcast";
    case Collective::reduce: return "reduce";
  }
  return "?";
}

}  // namespace shard
