// Parts of our own ops; words in the names of others: NCCL kernels, CUDA copies, optimizers.
#include "viewer/index/span_class.h"

#include <cassert>
#include <string>

namespace shard::view {

const char* to_string(SpanClass value) {
  switch (value) {
    case SpanClass::forward: return "forward";
    case SpanClass::backward: return "backward";
    case SpanClass::recompute: return "recompute";
    case SpanClass::optimizer: return "optimizer";
    case SpanClass::gather: return "gather";
    case SpanClass::reduce: return "reduce";
    case SpanClass::communication: return "communication";
    case SpanClass::copy: return "copy";
    case SpanClass::host: return "host";
    case SpanClass::other: return "other";
  }
  return "?";
}

namespace {

SpanClass class_of_part(Part part) {
  switch (part) {
    case Part::forward: return SpanClass::forward;
    case Part::recompute: return SpanClass::recompute;
    case Part::backward: return SpanClass::backward;
    case Part::reduce: return SpanClass::reduce;
    case Part::gather: return SpanClass::gather;
    case Part::optimizer: return SpanClass::optimizer;
    case Part::data:
    case Part::creation: return SpanClass::host;
    case Part::report:
    case Part::save:
    case Part::digest:
    case Part::unknown: return SpanClass::other;
  }
  return SpanClass::other;
}

}  // namespace

SpanClass class_of(const Track& track, Part part) {
  assert(part != Part::unknown);
  if (track.kind != TrackKind::stream) return class_of_part(part);
  switch (track.stream) {
    case Stream::communication:
      if (part == Part::digest) return SpanClass::gather;  // of what it looks at
      return part == Part::gather || part == Part::reduce ? class_of_part(part) : SpanClass::communication;
    case Stream::copy_in:
    case Stream::copy_out: return SpanClass::copy;
    case Stream::optimizer: return SpanClass::optimizer;
    case Stream::compute:
    case Stream::host: return class_of_part(part);
  }
  return SpanClass::other;
}

SpanClass class_of_name(std::string_view name) {
  // Lower case, and no separators within words: "All_Gather", "AllGather" and "all-gather" are one.
  std::string text;
  text.reserve(name.size());
  for (const char c : name.substr(0, 256)) {
    if (c == '_' || c == '-') continue;
    text += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  const auto has = [&](const char* word) { return text.find(word) != std::string::npos; };
  const auto starts = [&](const char* word) { return text.rfind(word, 0) == 0; };
  if (has("allgather") || starts("gather ")) return SpanClass::gather;
  if (has("reducescatter") || has("allreduce") || starts("reduce ")) return SpanClass::reduce;
  if (has("nccl") || has("broadcast") || has("alltoall") || has("sendrecv")) return SpanClass::communication;
  if (has("memcpy") || has("memset") || has("copy to") || has("copy in") || has("copy out") || starts("fetch ") ||
      starts("offload ") || starts("move ")) {
    return SpanClass::copy;
  }
  if (starts("step ") || starts("zero state") || has("zero step counts") || has("optimizer") || has("adam") ||
      has("sgd")) {
    return SpanClass::optimizer;
  }
  if (has("recompute")) return SpanClass::recompute;
  if (has("backward") || has("bwd")) return SpanClass::backward;
  if (starts("load ") || starts("initialize ") || has("dataloader")) return SpanClass::host;
  return SpanClass::other;
}

SpanClass class_of(const Track& track, SpanClass by_name) {
  if (track.kind != TrackKind::stream) return by_name;
  switch (track.stream) {
    case Stream::compute:
      // What a compute stream does is forward unless its name says better; a collective's name on it is a kernel.
      switch (by_name) {
        case SpanClass::backward:
        case SpanClass::recompute:
        case SpanClass::optimizer:
        case SpanClass::copy:
        case SpanClass::host: return by_name;
        case SpanClass::forward:
        case SpanClass::gather:
        case SpanClass::reduce:
        case SpanClass::communication:
        case SpanClass::other: return SpanClass::forward;
      }
      return SpanClass::forward;
    case Stream::communication:
      return by_name == SpanClass::gather || by_name == SpanClass::reduce ? by_name : SpanClass::communication;
    case Stream::copy_in:
    case Stream::copy_out: return SpanClass::copy;
    case Stream::optimizer: return SpanClass::optimizer;
    case Stream::host: return by_name == SpanClass::other ? SpanClass::host : by_name;
  }
  return SpanClass::other;
}

}  // namespace shard::view
