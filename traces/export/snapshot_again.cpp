// Frames and stacks are written once each and named again afterwards, as PyTorch's own pickles do with frames.
#include "traces/export/snapshot_again.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "traces/export/pickle_writer.h"

namespace shard {
namespace {

class Again {
 public:
  Again(const Snapshot& snapshot, const Trace& trace, OutputFile& out)
      : snapshot_(snapshot),
        trace_(trace),
        pickle_(out),
        timed_(std::ranges::any_of(snapshot.events, [](const SnapshotEvent& event) { return event.time_us != 0; })) {}

  void run() {
    pickle_.begin_dict();
    pickle_.text("segments");
    pickle_.begin_list();
    for (const SnapshotSegment& each : snapshot_.segments) segment(each);
    pickle_.end_list();
    pickle_.text("device_traces");
    pickle_.begin_list();
    std::size_t i = 0;
    auto remark = snapshot_.remarks.begin();
    for (std::size_t device = 0; device < snapshot_.device_count; ++device) {
      pickle_.begin_list();
      for (; i < snapshot_.events.size() && static_cast<std::size_t>(snapshot_.events[i].device) == device; ++i) {
        event(snapshot_.events[i]);
        for (; remark != snapshot_.remarks.end() && remark->event == i; ++remark) {
          pickle_.text(trace_.name_of(remark->key));
          if (remark->is_text) {
            pickle_.text(trace_.name_of(remark->text));
          } else {
            pickle_.integer(remark->number);
          }
        }
        pickle_.end_dict();
      }
      pickle_.end_list();
    }
    pickle_.end_list();
    for (const auto& [key, value] : snapshot_.others.items()) {
      pickle_.text(key);
      plain(value);
    }
    pickle_.end_dict();
    pickle_.finish();
  }

 private:
  void number(const char* key, std::int64_t value) {
    pickle_.text(key);
    pickle_.integer(value);
  }
  void number(const char* key, std::uint64_t value) { number(key, static_cast<std::int64_t>(value)); }
  void text(const char* key, std::string_view value) {
    pickle_.text(key);
    pickle_.text(value);
  }

  void stack(StackId id, bool said) {
    if (!said) return;
    pickle_.text("frames");
    if (const auto known = stacks_.find(id.value); known != stacks_.end()) return pickle_.again(known->second);
    pickle_.begin_list();
    for (StackId at = id; at.valid(); at = trace_.stack_of(at).caller) frame(trace_.stack_of(at).frame);
    pickle_.end_list();
    stacks_.emplace(id.value, pickle_.remember());
  }

  void frame(FrameId id) {
    if (const auto known = frames_.find(id.value); known != frames_.end()) return pickle_.again(known->second);
    const StackFrame none;
    const StackFrame& of = id.valid() ? trace_.frame_of(id) : none;
    pickle_.begin_dict();
    text("name", trace_.name_of(of.function));
    text("filename", trace_.name_of(of.file));
    pickle_.text("line");
    pickle_.unsigned_integer(of.written_line());
    pickle_.end_dict();
    frames_.emplace(id.value, pickle_.remember());
  }

  void segment(const SnapshotSegment& segment) {
    pickle_.begin_dict();
    number("device", std::int64_t{segment.device});
    number("address", segment.address);
    number("total_size", segment.bytes);
    number("allocated_size", segment.allocated_bytes);
    number("active_size", segment.active_bytes);
    number("requested_size", segment.requested_bytes);
    number("stream", segment.stream);
    text("segment_type", segment.large ? "large" : "small");
    pickle_.text("segment_pool_id");
    pickle_.integer(segment.pool[0]);
    pickle_.integer(segment.pool[1]);
    pickle_.tuple_of_two();
    pickle_.text("is_expandable");
    pickle_.boolean(segment.expandable);
    stack(segment.stack, segment.has_stack);
    pickle_.text("blocks");
    pickle_.begin_list();
    for (const SnapshotBlock& block : segment.blocks) {
      pickle_.begin_dict();
      number("address", block.address);
      number("size", block.bytes);
      number("requested_size", block.requested_bytes);
      text("state", trace_.name_of(block.state));
      stack(block.stack, block.has_stack);
      pickle_.end_dict();
    }
    pickle_.end_list();
    pickle_.end_dict();
  }

  /// Its dict stays open.
  void event(const SnapshotEvent& event) {
    pickle_.begin_dict();
    text("action", to_string(event.action));
    number("addr", event.address);
    number("size", event.bytes);
    number("stream", event.stream);
    if (timed_) number("time_us", event.time_us);
    stack(event.stack, event.has_stack);
  }

  void plain(const nlohmann::ordered_json& value) {
    if (value.is_boolean()) return pickle_.boolean(value.get<bool>());
    if (value.is_number_integer()) return pickle_.integer(value.get<std::int64_t>());
    if (value.is_number()) return pickle_.real(value.get<double>());
    if (value.is_string()) return pickle_.text(value.get_ref<const std::string&>());
    if (value.is_array()) {
      pickle_.begin_list();
      for (const auto& each : value) plain(each);
      return pickle_.end_list();
    }
    if (!value.is_object()) return pickle_.none();
    pickle_.begin_dict();
    for (const auto& [key, each] : value.items()) {
      pickle_.text(key);
      plain(each);
    }
    pickle_.end_dict();
  }

  const Snapshot& snapshot_;
  const Trace& trace_;
  PickleWriter pickle_;
  bool timed_;                                                       // before PyTorch 2.1 events had no times
  std::unordered_map<std::int32_t, std::uint32_t> stacks_, frames_;  // what stands for them in the pickle
};

}  // namespace

Result<void> export_snapshot_again(const Snapshot& snapshot, const Trace& trace, const std::filesystem::path& path) {
  Result<OutputFile> out = OutputFile::create(path);
  if (!out) return out.error();
  Again(snapshot, trace, *out).run();
  return out->finish();
}

}  // namespace shard
