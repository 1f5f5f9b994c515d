// The communicator around MessageCall: calls in flight, aborts, deadlines.
#include "executor/comm/messages.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "executor/comm/in_flight.h"
#include "executor/comm/members.h"
#include "executor/comm/message_call.h"
#include "executor/comm/pages.h"
#include "executor/comm/validate.h"
#include "sim/target/comm_workspace.h"
#include "traces/base/deadline.h"

namespace shard {
namespace {

class Messages final : public Communicator {
 public:
  Messages(std::unique_ptr<MessagePort> port, CommOptions options) : port_(std::move(port)), options_(options) {
    context_.port = port_.get();
  }
  ~Messages() override { port_->leave(!error_ && exchange({}).has_value()); }

  [[nodiscard]] Rank rank() const override { return port_->rank(); }
  [[nodiscard]] int size() const override { return port_->size(); }
  [[nodiscard]] std::string_view name() const override { return port_->name(); }
  [[nodiscard]] bool needs_workspace() const override { return true; }
  [[nodiscard]] Result<std::span<std::byte>> make_arena(Bytes bytes, CommLimits limits) override;
  [[nodiscard]] Result<Ticket> start(const CollectiveRequest& request) override;
  [[nodiscard]] Result<bool> poll(Ticket ticket) override;
  [[nodiscard]] std::chrono::nanoseconds moving_time(Ticket ticket) const override {
    return in_flight_.moving_time(ticket.sequence);
  }
  [[nodiscard]] Result<std::vector<std::string>> exchange(std::string_view own) override;
  void abort(std::string_view reason) override;
  [[nodiscard]] std::optional<Error> lost_peer() const override {
    std::optional<Error> lost = port_->lost_peer();
    if (lost) lost->where = rank_name(rank());
    return lost;
  }

 private:
  [[nodiscard]] Result<bool> advance();
  [[nodiscard]] Error where_this_is(Error error) const {
    if (error.where.empty()) error.where = rank_name(rank());
    return error;
  }
  Error fail(Error error) {
    if (!error_) error_ = std::move(error);
    return *error_;
  }

  std::unique_ptr<MessagePort> port_;
  CommOptions options_;
  MessageContext context_;
  Pages arena_;
  Bytes arena_bytes_{0};
  CommLimits limits_;
  std::vector<MessageCall> calls_;
  std::vector<std::uint64_t> calls_with_;  ///< started so far, per rank that takes part
  InFlight in_flight_;                     ///< places are those of calls_
  std::optional<Error> error_;
  std::optional<std::chrono::steady_clock::time_point> idle_since_;
};

Result<std::span<std::byte>> Messages::make_arena(Bytes bytes, CommLimits limits) {
  arena_ = Pages(static_cast<std::size_t>(bytes.count()));
  if (arena_.get() == nullptr)
    return fail({Errc::does_not_fit, "no memory for an arena of " + std::to_string(bytes.count()) + " bytes",
                 rank_name(rank()), "use more ranks or a smaller model"});
  arena_bytes_ = bytes;
  limits_ = limits;
  context_.arena = arena_.get();
  calls_.resize(static_cast<std::size_t>(limits.in_flight));
  calls_with_.resize(static_cast<std::size_t>(size()));
  in_flight_.reserve(calls_.size());
  for (MessageCall& call : calls_) call.reserve(context_, limits);
  if (const auto all_there = exchange({}); !all_there) return all_there.error();
  return std::span<std::byte>{arena_.get(), static_cast<std::size_t>(bytes.count())};
}

Result<Ticket> Messages::start(const CollectiveRequest& request) {
  if (error_) return *error_;
  if (Result<void> valid = validate(request, rank(), size(), arena_bytes_, limits_); !valid) return fail(valid.error());
  const std::string where = rank_name(rank()) + " " + describe(request.kind, request.op);
  Elems largest{0};
  for (const CommSegment& segment : request.segments) largest = std::max(largest, segment.elems);
  const Bytes needed =
      comm_workspace_bytes(request.kind, bytes_of(request.dtype, largest), resolved(request.group, size()).count);
  if (request.workspace < needed || request.workspace_offset < 0 || request.workspace_offset % 8 != 0 ||
      (needed.count() > 0 && Bytes{request.workspace_offset} + needed > arena_bytes_))
    return fail({Errc::internal,
                 "workspace of " + std::to_string(request.workspace.count()) + " bytes at " +
                     std::to_string(request.workspace_offset) + ", " + std::to_string(needed.count()) + " needed",
                 where, ""});
  if (in_flight_.full())
    if (Result<bool> moved = advance(); !moved) return moved.error();
  if (in_flight_.full())
    return fail({Errc::internal, "more than " + std::to_string(limits_.in_flight) + " calls in flight", where, ""});
  calls_[in_flight_.take()].begin(context_, request, calls_with_);
  count(request);
  if (const Result<bool> left = port_->progress(); !left) return fail(where_this_is(left.error()));
  return Ticket{in_flight_.last()};
}

Result<bool> Messages::advance() {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  const Result<bool> progress = port_->progress();
  if (!progress) return fail(where_this_is(progress.error()));
  const Clock::duration moving = *progress ? Clock::now() - begin : Clock::duration{};
  bool posted = false;
  in_flight_.visit([&](std::size_t place) {
    MessageCall& current = calls_[place];
    if (error_) return false;
    const Clock::time_point turn = Clock::now();
    const Result<bool> result = current.advance(context_);
    if (!result) fail(where_this_is(result.error()));
    posted |= result && *result;
    if (result && *result && current.has_data()) in_flight_.moved(place, Clock::now() - turn + moving);
    return current.complete();
  });
  if (error_) return *error_;
  if (posted)  // what is new leaves at once
    if (const Result<bool> left = port_->progress(); !left) return fail(where_this_is(left.error()));
  return *progress || posted;
}

Result<bool> Messages::poll(Ticket ticket) {
  if (error_) return *error_;
  if (ticket.sequence == 0 || ticket.sequence > in_flight_.last())
    return fail(
        {Errc::internal, "a ticket that was never given: " + std::to_string(ticket.sequence), rank_name(rank()), ""});
  const Result<bool> moved = advance();
  if (!moved) return moved.error();
  const std::size_t place = in_flight_.place_of(ticket.sequence);
  if (place == InFlight::kNone) return true;
  if (*moved) {
    idle_since_.reset();
    return false;
  }
  const MessageCall& current = calls_[place];
  const std::string where = rank_name(rank()) + " " + describe(current.kind(), current.op());
  if (std::optional<Error> news = port_->news()) {
    news->where = where;
    return fail(std::move(*news));
  }
  const auto now = std::chrono::steady_clock::now();
  if (!idle_since_) idle_since_ = now;
  if (now - *idle_since_ > options_.deadline)
    return fail({Errc::retryable,
                 ranks_have(current.missing(context_)) + " not arrived within " + in_seconds(options_.deadline), where,
                 kLookAtThatRank});
  return false;
}

Result<std::vector<std::string>> Messages::exchange(std::string_view own) {
  if (error_) return *error_;
  auto texts = port_->exchange(own, options_.deadline);
  if (!texts) return fail(where_this_is(texts.error()));
  return texts;
}

void Messages::abort(std::string_view reason) {
  port_->abort(reason);
  fail({Errc::retryable, rank_name(rank()) + " stopped: " + std::string(reason), rank_name(rank()), ""});
}

}  // namespace

std::unique_ptr<Communicator> make_messages(std::unique_ptr<MessagePort> port, CommOptions options) {
  return std::make_unique<Messages>(std::move(port), options);
}

}  // namespace shard
