// Steps of a model of 32 layers: gathers, nested compute, copies, reductions, optimizer, and the memory they take.
#include "tests/bench/synthetic_trace.h"

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <vector>

#include "traces/writer.h"

namespace shard {
namespace {

/// Everything one rank writes, step after step, until its share of spans and memory events is used up.
class RankOfTrace {
 public:
  RankOfTrace(Writer& writer, Rank rank, const SyntheticTrace& options, std::int64_t spans, std::int64_t events)
      : writer_(writer),
        rank_(rank),
        options_(options),
        spans_left_(spans),
        events_left_(events),
        random_(static_cast<std::uint64_t>(rank.value) + 1) {
    for (int s = 0; s < kStreamCount; ++s) {
      tracks_[static_cast<std::size_t>(s)] = writer.track({.rank = rank, .stream = static_cast<Stream>(s), .name = {}});
    }
    const double per_layer = spans == 0 ? 1 : static_cast<double>(events) / static_cast<double>(spans) * kSpansPerLayer;
    events_per_layer_ = std::max(1.0, per_layer);
  }

  /// One step; false when nothing is left to write.
  bool step() {
    if (spans_left_ <= 0 && events_left_ <= 0) return false;
    phase_ = step_ == 0 ? Phase::first_step : Phase::steady_step;
    op_ = 0;
    const std::int64_t begin = now_;
    for (std::int32_t layer = 0; layer < kLayers; ++layer) pass(layer, "forward");
    for (std::int32_t layer = kLayers; layer-- > 0;) pass(layer, "backward");
    for (std::int32_t layer = 0; layer < kLayers; ++layer) {
      const std::int64_t took = around(40'000);
      span(Stream::optimizer, now_, took, "step chunk " + std::to_string(layer), 0, layer);
      now_ += took + 500;
    }
    span(Stream::host, begin, now_ - begin, "step", 0, -1);
    now_ += around(20'000);
    ++step_;
    return true;
  }

 private:
  static constexpr std::int32_t kLayers = 32;
  static constexpr double kSpansPerLayer = 28;  // about: both passes of a layer and its part of the optimizer
  static constexpr std::array<const char*, 4> kOps{"attention.qkv", "attention.core", "mlp.up", "mlp.down"};

  std::int64_t around(std::int64_t ns) {
    return ns / 2 + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(ns));
  }

  void span(Stream stream, std::int64_t begin, std::int64_t duration, const std::string& name, std::int64_t bytes,
            std::int32_t layer) {
    if (spans_left_-- <= 0) return;
    const auto unit = layer < 0 ? UnitId{} : UnitId{static_cast<std::int32_t>((layer) % options_.chunks)};
    writer_.add(Span{.track = tracks_[static_cast<std::size_t>(stream)],
                     .begin_ns = begin,
                     .duration_ns = duration,
                     .op = OpId{op_++},
                     .name = writer_.name(name),
                     .phase = phase_,
                     .step = step_,
                     .micro_step = 0,
                     .bytes = bytes,
                     .unit = unit});
  }

  void memory(std::int32_t buffer, std::int64_t bytes, bool acquire, Category category, std::int64_t time) {
    if (events_left_-- <= 0) return;
    writer_.add(MemoryEvent{.rank = rank_,
                            .memory = Memory::device,
                            .buffer = BufferId{buffer},
                            .offset_bytes = std::int64_t{buffer} << 20,
                            .delta_bytes = acquire ? bytes : -bytes,
                            .category = category,
                            .op = OpId{op_},
                            .time_ns = time,
                            .phase = phase_,
                            .step = step_,
                            .unit = UnitId{static_cast<std::int32_t>(buffer % options_.chunks)}});
  }

  /// One layer in one direction: gather, nested compute, host launches, a copy each way, a reduction when backward.
  void pass(std::int32_t layer, const std::string& direction) {
    const std::string block = "h." + std::to_string(layer);
    const bool backward = direction == "backward";
    const std::int64_t gather = around(60'000);
    span(Stream::communication, now_ - gather / 2, gather / 2, "gather chunk " + std::to_string(layer), 4'000'000,
         layer);
    memory(layer, 16 << 20, true, Category::gathered, now_);
    const std::int64_t begin = now_;
    std::int64_t at = begin + 200;
    struct Inner {
      std::int64_t begin, duration;
    };
    std::array<Inner, kOps.size()> inner;
    for (Inner& op : inner) {
      op = {at, around(20'000)};
      at += op.duration + around(400);
    }
    span(Stream::host, begin, at - begin, block + " " + direction, 0, -1);
    span(Stream::compute, begin, at - begin, block + " " + direction, 0, layer);
    for (std::size_t i = 0; i < inner.size(); ++i) {
      const std::string name = block + "." + kOps[i] + (backward ? " backward" : "");
      span(Stream::host, inner[i].begin, 900, "launch", 0, -1);
      span(Stream::compute, inner[i].begin, inner[i].duration, name, 0, layer);
      const std::int64_t half = inner[i].duration / 2;
      span(Stream::compute, inner[i].begin + 10, half, name + " gemm", 0, layer);
    }
    // Activations of forward live until backward; the rest are temporaries.
    memory(1000 + layer, 24 << 20, !backward, Category::activation, at);
    owed_events_ += events_per_layer_ / 2 - 4;
    std::int32_t temporary = 2000;
    for (; owed_events_ >= 2; owed_events_ -= 2) {
      const std::int64_t time = begin + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(at - begin));
      const std::int64_t bytes = around(2 << 20);
      memory(temporary, bytes, true, backward ? Category::gradient : Category::workspace, std::max(time, last_event_));
      last_event_ = std::max(time, last_event_);
      memory(temporary++, bytes, false, backward ? Category::gradient : Category::workspace, last_event_);
    }
    if (step_ == 1 && layer == 7 && backward) {
      memory(3000, std::int64_t{9} << 30, true, Category::workspace, at);
      memory(3000, std::int64_t{9} << 30, false, Category::workspace, at + 1);
    }
    span(backward ? Stream::copy_out : Stream::copy_in, begin + 100, around(15'000), backward ? "offload" : "fetch",
         2'000'000, layer);
    if (backward)
      span(Stream::communication, at, around(30'000), "reduce chunk " + std::to_string(layer), 4'000'000, layer);
    memory(layer, 16 << 20, false, Category::gathered, at);
    now_ = at + around(2'000);
  }

  Writer& writer_;
  Rank rank_;
  const SyntheticTrace& options_;
  std::int64_t spans_left_, events_left_;
  std::mt19937_64 random_;
  std::array<TrackId, kStreamCount> tracks_;
  double events_per_layer_ = 1, owed_events_ = 0;
  std::int64_t now_ = 1'000'000, last_event_ = 0;
  std::int32_t step_ = 0, op_ = 0;
  Phase phase_ = Phase::first_step;

 public:
  [[nodiscard]] std::int64_t now() const { return now_; }
};

void add_chunk_states(Writer& writer, const SyntheticTrace& options, std::int64_t end) {
  constexpr std::array<UnitState, 5> kCycle{UnitState::sharded, UnitState::gathering, UnitState::gathered,
                                            UnitState::reducing, UnitState::moving};
  const std::int64_t changes = options.chunk_states < 0 ? 4 * options.chunks : options.chunk_states;
  for (std::int64_t i = 0; i < changes; ++i) {
    const std::int64_t unit = i % options.chunks, turn = i / options.chunks;
    const std::int64_t turns = (changes + options.chunks - 1) / options.chunks;
    const double share = (static_cast<double>(turn) + static_cast<double>(unit) / static_cast<double>(options.chunks)) /
                         static_cast<double>(turns);
    writer.add(ChunkState{Rank{0}, UnitId{static_cast<std::int32_t>(unit)},
                          static_cast<std::int64_t>(share * static_cast<double>(end)),
                          turn % 7 == 4 ? Memory::host : Memory::device, kCycle[static_cast<std::size_t>(turn % 5)]});
  }
}

/// Spans of the shapes other than training; 100 ns from begin to begin.
class SpansOfShape {
 public:
  SpansOfShape(Writer& writer, const SyntheticTrace& options) : writer_(writer), options_(options) {
    const std::int64_t tracks = options.shape == Shape::lanes ? 10'000 : 1;
    for (std::int64_t t = 0; t < tracks; ++t) {
      tracks_.push_back(writer.track({.rank = Rank{static_cast<std::int32_t>(t % options.ranks)},
                                      .kind = TrackKind::other,
                                      .name = "thread " + std::to_string(t)}));
    }
    for (int i = 0; i < 100; ++i) names_.push_back(writer.name("operator " + std::to_string(i)));
  }

  void write() {
    for (std::int64_t i = 0; i < options_.spans; ++i) {
      switch (options_.shape) {
        case Shape::training:
        case Shape::one_lane:
        case Shape::names: add(i, 100 * i, 90); break;
        case Shape::unsorted:
          add(i, 100 * static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(options_.spans)), 90);
          break;
        case Shape::nested: {  // a tower of spans, each 2 ns shorter than the one it stands on
          const std::int64_t tower = i / kDeep, level = i % kDeep;
          add(i, 100 * kDeep * tower + level, 2 * (2 * kDeep - level));
          break;
        }
        case Shape::lanes: add(i, 100 * (i / 10'000), 90); break;
        case Shape::crossing: add(i, 100 * i, 100 * 10'000); break;
      }
    }
  }
  [[nodiscard]] std::int64_t end() const { return end_; }

 private:
  static constexpr std::int64_t kDeep = 1000;

  void add(std::int64_t i, std::int64_t begin, std::int64_t duration) {
    const auto n = static_cast<std::size_t>(i);
    const NameId name = options_.shape == Shape::names ? writer_.name("operator number " + std::to_string(i))
                                                       : names_[n % names_.size()];
    writer_.add(Span{.track = tracks_[n % tracks_.size()], .begin_ns = begin, .duration_ns = duration, .name = name});
    end_ = std::max(end_, begin + duration);
  }

  Writer& writer_;
  const SyntheticTrace& options_;
  std::vector<TrackId> tracks_;
  std::vector<NameId> names_;
  std::mt19937_64 random_{1};
  std::int64_t end_ = 0;
};

/// Every second event releases what the one before took.
void add_memory(Writer& writer, const SyntheticTrace& options, std::int64_t end) {
  for (std::int64_t i = 0; i < options.memory_events; ++i) {
    const bool acquire = i % 2 == 0;
    writer.add(MemoryEvent{.rank = Rank{0},
                           .buffer = BufferId{static_cast<std::int32_t>(i / 2)},
                           .delta_bytes = acquire ? 1 + i % 1'000'003 : -(1 + (i - 1) % 1'000'003),
                           .category = static_cast<Category>((i / 2) % kCategoryCount),
                           .time_ns = static_cast<std::int64_t>(static_cast<double>(end) * static_cast<double>(i) /
                                                                static_cast<double>(options.memory_events))});
  }
}

}  // namespace

Result<void> write_synthetic_trace(const std::filesystem::path& path, const SyntheticTrace& options) {
  Header header;
  header.kind = TraceKind::measured;
  header.world_size = static_cast<std::int32_t>(options.ranks);
  header.plan_hash = "0123456789abcdef0123456789abcdef";
  Result<Writer> writer = Writer::create(path, header);
  if (!writer) return writer.error();
  if (options.shape != Shape::training) {
    SpansOfShape spans(*writer, options);
    spans.write();
    add_memory(*writer, options, spans.end());
    add_chunk_states(*writer, options, spans.end());
    return writer->close();
  }
  std::vector<RankOfTrace> ranks;
  for (std::int64_t r = 0; r < options.ranks; ++r) {
    const auto part = [&](std::int64_t total) { return total * (r + 1) / options.ranks - total * r / options.ranks; };
    ranks.emplace_back(*writer, Rank{static_cast<std::int32_t>(r)}, options, part(options.spans),
                       part(options.memory_events));
  }
  const NameId loss = writer->name("loss"), resident = writer->name("resident_bytes");
  std::int64_t end = 0;
  for (bool any = true; any;) {
    any = false;
    for (RankOfTrace& rank : ranks) any = rank.step() || any;
    end = std::max(end, ranks.front().now());
    writer->add(Counter{Rank{0}, loss, end, 1e9 / static_cast<double>(end)});
    writer->add(Counter{Rank{0}, resident, end, 2e9 + static_cast<double>(end % 1'000'003)});
  }
  add_chunk_states(*writer, options, end);
  for (std::int64_t r = 0; r < options.ranks; ++r) {
    writer->add(ArenaSummary{Rank{static_cast<std::int32_t>(r)}, Memory::device, Phase::steady_step,
                             std::int64_t{10} << 30, std::int64_t{10} << 30, std::int64_t{16} << 30});
  }
  return writer->close();
}

}  // namespace shard
