// A device's communicator as the conformance suite wants it: with an arena that the host can read and write.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "executor/cuda/comm/device_communicator.h"
#include "executor/cuda/comm/turns.h"

namespace shard::test {

/// A rank's end whose arena is host memory: a call's buffers go to the device when it starts, and come back when it is
/// complete.
class Mirrored final : public Communicator {
 public:
  Mirrored(cuda::Api& api, cuda::Turns& turns, cuda::DeviceCommunicator& device)
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
    host_ = std::make_unique_for_overwrite<std::byte[]>(arena->size());
    return std::span<std::byte>(host_.get(), arena->size());
  }
  [[nodiscard]] Result<Ticket> start(const CollectiveRequest& request) override {
    Call call{.buffers = buffers_of(request), .ticket = {}};
    for (const Buffer& b : call.buffers)
      if (Result<void> r = api_.copy(stream_, on_device_ + b.offset, host_.get() + b.offset, b.bytes); !r)
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
          if (Result<void> r = api_.copy(stream_, host_.get() + b.offset, on_device_ + b.offset, b.bytes); !r)
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
  cuda::DeviceCommunicator& device_;
  cuda::Stream stream_;
  cuda::Event event_;
  std::byte* on_device_ = nullptr;
  std::unique_ptr<std::byte[]> host_;  ///< pages that no call has buffers in are never touched
  std::deque<Call> calls_;
};

}  // namespace shard::test
