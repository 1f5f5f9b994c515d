// A caching allocator in small, and a program that uses it.
#include "tests/viewer/sample_snapshot.h"

#include <unistd.h>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <string>

#include "traces/export/snapshot_again.h"
#include "traces/import/import.h"
#include "traces/stack_ids.h"

namespace shard::view {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

class Recorder {
 public:
  explicit Recorder(bool stacks) : with_stacks_(stacks) {}

  /// A stack of frames, the innermost first: file, line, function.
  StackId stack(std::initializer_list<std::tuple<const char*, int, const char*>> frames) {
    if (!with_stacks_) return {};
    StackId caller;
    for (auto each = std::rbegin(frames); each != std::rend(frames); ++each) {
      const auto& [file, line, function] = *each;
      const auto frame = ids_.frame({name(function), name(file), line});
      if (frame.added) out.trace.frames.push_back({name(function), name(file), line});
      const auto node = ids_.stack({frame.id, caller});
      if (node.added) out.trace.stacks.push_back({frame.id, caller});
      caller = node.id;
    }
    return caller;
  }

  std::uint64_t alloc(std::int64_t requested, StackId stack) {
    const std::int64_t bytes = (requested + 511) / 512 * 512;
    const bool small = bytes <= kMiB;
    auto best = free_.end();
    for (auto at = free_.begin(); at != free_.end(); ++at) {
      if (small_[at->first] == small && at->second >= bytes && (best == free_.end() || at->second < best->second))
        best = at;
    }
    if (best == free_.end())
      best = new_segment(small ? 2 * kMiB : std::max(20 * kMiB, (bytes + 2 * kMiB - 1) / (2 * kMiB) * (2 * kMiB)),
                         small, stack);
    const auto [address, room] = *best;
    free_.erase(best);
    const bool split = room - bytes > (small ? 0 : kMiB);
    const std::int64_t taken = split ? bytes : room;
    if (split) {
      free_[address + static_cast<std::uint64_t>(bytes)] = room - bytes;
      small_[address + static_cast<std::uint64_t>(bytes)] = small;
    }
    live_[address] = {.address = address,
                      .bytes = taken,
                      .requested_bytes = requested,
                      .active = true,
                      .stack = stack,
                      .has_stack = true,
                      .state = name("active_allocated")};
    event(SnapshotAction::alloc, address, requested, stack);
    return address;
  }

  void free(std::uint64_t address, StackId stack) {
    const SnapshotBlock block = live_[address];
    live_.erase(address);
    event(SnapshotAction::free_requested, address, block.requested_bytes, stack);
    event(SnapshotAction::free_completed, address, block.requested_bytes, stack);
    std::uint64_t begin = address, end = address + static_cast<std::uint64_t>(block.bytes);
    if (const auto next = free_.find(end); next != free_.end() && !starts_segment(end)) {
      end += static_cast<std::uint64_t>(next->second);
      free_.erase(next);
    }
    auto before = free_.lower_bound(begin);
    if (before != free_.begin() && !starts_segment(begin)) {
      --before;
      if (before->first + static_cast<std::uint64_t>(before->second) == begin) {
        begin = before->first;
        free_.erase(before);
      }
    }
    free_[begin] = static_cast<std::int64_t>(end - begin);
  }

  void finish() {
    for (auto& [address, segment] : segments_) {
      const std::uint64_t end = address + static_cast<std::uint64_t>(segment.bytes);
      for (auto at = live_.lower_bound(address); at != live_.end() && at->first < end; ++at) {
        segment.blocks.push_back(at->second);
        segment.allocated_bytes += at->second.bytes;
        segment.requested_bytes += at->second.requested_bytes;
      }
      for (auto at = free_.lower_bound(address); at != free_.end() && at->first < end; ++at)
        segment.blocks.push_back(
            {.address = at->first, .bytes = at->second, .has_stack = true, .state = name("inactive")});
      std::ranges::sort(segment.blocks, {}, &SnapshotBlock::address);
      segment.active_bytes = segment.allocated_bytes;
      out.snapshot.segments.push_back(segment);
    }
    out.snapshot.device_count = 1;
    out.snapshot.find_block_sizes();
  }

  SampleSnapshot out;

 private:
  NameId name(const std::string& text) {
    const auto [at, added] = names_.try_emplace(text, static_cast<std::int32_t>(names_.size()));
    if (added) out.trace.names.push_back(text);
    return NameId{at->second};
  }
  bool starts_segment(std::uint64_t address) const { return segments_.contains(address); }
  std::map<std::uint64_t, std::int64_t>::iterator new_segment(std::int64_t bytes, bool small, StackId stack) {
    const std::uint64_t address = next_;
    next_ += static_cast<std::uint64_t>(bytes);
    segments_[address] = {.address = address, .bytes = bytes, .large = !small, .stack = stack, .has_stack = true};
    small_[address] = small;
    event(SnapshotAction::segment_alloc, address, bytes, stack);
    return free_.emplace(address, bytes).first;
  }
  void event(SnapshotAction action, std::uint64_t address, std::int64_t bytes, StackId stack) {
    time_us_ += 3 + static_cast<std::int64_t>(out.snapshot.events.size() * 2654435761U % 40);
    out.snapshot.events.push_back(
        {.action = action, .address = address, .bytes = bytes, .time_us = time_us_, .stack = stack, .has_stack = true});
  }

  bool with_stacks_;
  StackIds ids_;
  std::map<std::string, std::int32_t> names_;
  std::map<std::uint64_t, SnapshotSegment> segments_;
  std::map<std::uint64_t, std::int64_t> free_;  // by address
  std::map<std::uint64_t, bool> small_;         // of the small pool, by address
  std::map<std::uint64_t, SnapshotBlock> live_;
  std::uint64_t next_ = 0x7f00'0000'0000;
  std::int64_t time_us_ = 1'700'000'000'000'000;
};

}  // namespace

SampleSnapshot sample_snapshot(const SampleProgram& program) {
  Recorder gpu(program.stacks);
  const std::tuple main{"/home/me/train.py", 40, "<module>"};
  const std::tuple call{"/usr/lib/python3/dist-packages/torch/nn/modules/module.py", 1511, "_call_impl"};
  const StackId init = gpu.stack({{"/home/me/model.py", 12, "__init__"}, {"/home/me/train.py", 8, "main"}, main});
  const StackId keep =
      gpu.stack({call, {"/home/me/model.py", 31, "forward"}, call, {"/home/me/train.py", 19, "step"}, main});
  const StackId scratch =
      gpu.stack({{"/home/me/model.py", 33, "forward"}, call, {"/home/me/train.py", 19, "step"}, main});
  const StackId mask = gpu.stack({{"/home/me/model.py", 35, "forward"}, call, {"/home/me/train.py", 19, "step"}, main});
  const StackId gradient =
      gpu.stack({{"??", 0, "at::_ops::mm::call(at::Tensor const&, at::Tensor const&)"},
                 {"??", 0, "torch::autograd::generated::MmBackward0::apply(std::vector<at::Tensor>&&)"}});
  const StackId state = gpu.stack({{"/usr/lib/python3/dist-packages/torch/optim/adamw.py", 120, "_init_group"},
                                   {"/home/me/train.py", 23, "step"},
                                   main});
  std::vector<std::uint64_t> activations, masks, gradients;
  for (int layer = 0; layer < program.layers; ++layer) {
    (void)gpu.alloc(24 * kMiB, init);
    (void)gpu.alloc(12'000, init);
  }
  (void)gpu.alloc(8 * kMiB + 4096, {});
  for (int step = 0; step < program.steps; ++step) {
    for (int layer = 0; layer < program.layers; ++layer) {
      activations.push_back(gpu.alloc(16 * kMiB - 300, keep));
      const std::uint64_t one = gpu.alloc(7 * kMiB, scratch), other = gpu.alloc(700'000, scratch);
      masks.push_back(gpu.alloc(4'000, mask));
      gpu.free(one, scratch);
      gpu.free(other, scratch);
    }
    for (int layer = 0; layer < program.layers; ++layer) {
      gradients.push_back(gpu.alloc(24 * kMiB, gradient));
      gpu.free(activations.back(), gradient);
      gpu.free(masks.back(), gradient);
      activations.pop_back();
      masks.pop_back();
    }
    for (int layer = 0; step == 0 && layer < 2 * program.layers; ++layer) (void)gpu.alloc(24 * kMiB, state);
    for (const std::uint64_t each : gradients) gpu.free(each, state);
    gradients.clear();
  }
  gpu.finish();
  return std::move(gpu.out);
}

std::string snapshot_file(const SampleProgram& program, const std::string& name) {
  const SampleSnapshot sample = sample_snapshot(program);
  const char* folder = std::getenv("TEST_TMPDIR");
  const std::filesystem::path path =
      (folder != nullptr ? std::filesystem::path(folder) : std::filesystem::temp_directory_path()) /
      (std::to_string(getpid()) + "_" + name);
  const Result<void> written = export_snapshot_again(sample.snapshot, sample.trace, path);
  if (!written) {
    std::cerr << to_string(written.error()) << "\n";
    std::abort();
  }
  return path.string();
}

Session snapshot_session(const SampleProgram& program) {
  const std::string path = snapshot_file(program, "sample.pickle");
  Result<LoadedTrace> loaded = load_any(std::filesystem::path(path));
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  Session session;
  if (!loaded) {
    std::cerr << to_string(loaded.error()) << "\n";
    std::abort();
  }
  session.documents.push_back(
      Document::build(std::move(loaded->trace), "snapshot.pickle", {}, std::move(loaded->snapshot)));
  return session;
}

}  // namespace shard::view
