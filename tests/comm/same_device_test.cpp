// Do ranks that share an emulated GPU keep the contract of communicators, at 1, 2, 3, 4 and 8 ranks?
#include <gtest/gtest.h>

#include <deque>
#include <vector>

#include "executor/cuda/emulated/emulated.h"
#include "executor/train/device_run.h"
#include "tests/comm/conformance.h"

namespace shard::test {
namespace {

/// A rank's end whose arena is host memory: a call's buffers go to the device when it starts, and come back when it is
/// complete.
class Mirrored final : public Communicator {
 public:
  Mirrored(cuda::Api& api, cuda::Turns& turns, cuda::SameDevice& device)
      : api_(api),
        turns_(turns),
        device_(device),
        stream_(api.make_stream("communication").value()),
        event_(api.make_event().value()) {
    device_.use(stream_);
  }

  [[nodiscard]] Rank rank() const override { return device_.rank(); }
  [[nodiscard]] int size() const override { return device_.size(); }
  [[nodiscard]] std::string_view name() const override { return device_.name(); }
  [[nodiscard]] bool needs_workspace() const override { return device_.needs_workspace(); }
  [[nodiscard]] Result<std::span<std::byte>> make_arena(Bytes bytes, CommLimits limits) override {
    const Result<std::span<std::byte>> arena = device_.make_arena(bytes, limits);
    if (!arena) return arena.error();
    on_device_ = arena->data();
    host_.resize(arena->size());
    return std::span<std::byte>(host_);
  }
  [[nodiscard]] Result<Ticket> start(const CollectiveRequest& request) override {
    Call call{.buffers = buffers_of(request), .ticket = {}};
    for (const Buffer& b : call.buffers)
      if (Result<void> r = api_.copy(stream_, on_device_ + b.offset, host_.data() + b.offset, b.bytes); !r)
        return r.error();
    const Result<Ticket> ticket = device_.start(request);
    if (!ticket) return ticket.error();
    count(request);
    call.ticket = *ticket;
    calls_.push_back(std::move(call));
    return *ticket;
  }
  [[nodiscard]] Result<bool> poll(Ticket ticket) override {
    const Result<bool> done = device_.poll(ticket);
    if (!done || !*done) return done;
    for (const Call& call : calls_)
      if (call.ticket == ticket)
        for (const Buffer& b : call.buffers)
          if (Result<void> r = api_.copy(stream_, host_.data() + b.offset, on_device_ + b.offset, b.bytes); !r)
            return r.error();
    if (Result<void> r = api_.record(event_, stream_); !r) return r.error();
    Result<bool> back = false;
    while (back && !*back) {
      if (Result<void> r = turns_.yield(rank().value); !r) return r.error();
      back = api_.is_done(event_);
    }
    std::erase_if(calls_, [&](const Call& call) { return call.ticket == ticket; });
    return back;
  }
  [[nodiscard]] std::chrono::nanoseconds moving_time(Ticket ticket) const override {
    return device_.moving_time(ticket);
  }
  [[nodiscard]] Result<std::vector<std::string>> exchange(std::string_view own) override {
    return device_.exchange(own);
  }
  void abort(std::string_view reason) override { device_.abort(reason); }

 private:
  struct Buffer {
    std::int64_t offset = 0;
    std::int64_t bytes = 0;
  };
  struct Call {
    std::vector<Buffer> buffers;
    Ticket ticket;
  };
  [[nodiscard]] std::vector<Buffer> buffers_of(const CollectiveRequest& request) const {
    const std::int64_t element = bytes_per_element(request.dtype);
    const int members = request.group.count == 0 ? size() : request.group.count;
    const bool sharded = request.kind == Collective::all_gather || request.kind == Collective::reduce_scatter;
    std::vector<Buffer> buffers;
    for (const CommSegment& s : request.segments) {
      buffers.push_back({s.full_offset, s.elems.count() * element});
      if (sharded) buffers.push_back({s.shard_offset, s.elems.count() / members * element});
    }
    std::erase_if(buffers, [](const Buffer& b) { return b.bytes == 0; });
    return buffers;
  }

  cuda::Api& api_;
  cuda::Turns& turns_;
  cuda::SameDevice& device_;
  cuda::Stream stream_;
  cuda::Event event_;
  std::byte* on_device_ = nullptr;
  std::vector<std::byte> host_;
  std::deque<Call> calls_;
};

struct Setting {
  const ConformanceCase* test = nullptr;
  int world = 1;
};

class OnOneDevice : public testing::TestWithParam<Setting> {};

TEST_P(OnOneDevice, Conforms) {
  const Setting setting = GetParam();
  const auto api = cuda::make_emulated({.capacity = Bytes{std::int64_t{1} << 29}, .seed = 3});
  ASSERT_TRUE(api);
  std::vector<Findings> findings(static_cast<std::size_t>(setting.world));
  const Result<void> done =
      train::run_ranks(**api, cuda::kernels(), setting.world, std::chrono::seconds(60), false,
                       [&](train::DeviceRank& rank) -> Result<void> {
                         Mirrored comm(**api, rank.room.turns, rank.communicator);
                         const Result<std::span<std::byte>> arena = comm.make_arena(kArena, {});
                         if (!arena) return arena.error();
                         setting.test->run(comm, *arena, findings[static_cast<std::size_t>(comm.rank().value)]);
                         return {};
                       });
  EXPECT_TRUE(done) << to_string(done.error());
  for (std::size_t rank = 0; rank < findings.size(); ++rank)
    for (const std::string& finding : findings[rank]) ADD_FAILURE() << "rank " << rank << ": " << finding;
}

/// All but the one that waits for a moment of the clock, which ranks that take turns would wait for in turn.
std::vector<Setting> settings() {
  std::vector<Setting> all;
  for (const ConformanceCase& test : conformance_cases())
    for (const int world : {1, 2, 3, 4, 8})
      if (test.name != "WaitingIsNotMoving") all.push_back({&test, world});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Contract, OnOneDevice, testing::ValuesIn(settings()), [](const auto& setting) {
  return setting.param.test->name + "On" + std::to_string(setting.param.world);
});

}  // namespace
}  // namespace shard::test
