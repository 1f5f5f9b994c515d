// The communicator around MessageCall: calls in flight, aborts by message, deadlines, dead peers of the own host.
#include "executor/comm/mpi_messages.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <optional>
#include <utility>

#include "executor/comm/in_flight.h"
#include "executor/comm/members.h"
#include "executor/comm/message_call.h"
#include "executor/comm/pages.h"
#include "executor/comm/peer_watch.h"
#include "executor/comm/validate.h"
#include "traces/base/deadline.h"
#include "traces/base/run_place.h"

namespace shard {
namespace {

constexpr int kAbortTag = 1;
constexpr std::size_t kReasonBytes = 1000;
constexpr std::chrono::milliseconds kWatchEvery{1};

class MpiMessages final : public Communicator {
 public:
  MpiMessages(std::shared_ptr<MpiRuntime> runtime, CommOptions options, PeerWatch watch,
              std::vector<std::int32_t> processes)
      : runtime_(std::move(runtime)), options_(options), watch_(std::move(watch)), processes_(std::move(processes)) {
    const BlockingCall call("MPI_Comm_dup");
    MPI_Comm_dup(runtime_->world(), &control_);
    context_.comm = runtime_->world();
    context_.rank = runtime_->rank();
    context_.world = runtime_->size();
    int* largest_tag = nullptr;
    int given = 0;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &largest_tag, &given);
    if (given != 0) context_.tag_bits = static_cast<int>(std::bit_width(static_cast<unsigned>(*largest_tag))) - 1;
  }
  ~MpiMessages() override;

  [[nodiscard]] Rank rank() const override { return runtime_->rank(); }
  [[nodiscard]] int size() const override { return runtime_->size(); }
  [[nodiscard]] std::string_view name() const override { return "mpi-messages"; }
  [[nodiscard]] bool needs_workspace() const override { return true; }
  [[nodiscard]] Result<std::span<std::byte>> make_arena(Bytes bytes, CommLimits limits) override;
  [[nodiscard]] Result<Ticket> start(const CollectiveRequest& request) override;
  [[nodiscard]] Result<bool> poll(Ticket ticket) override;
  [[nodiscard]] std::chrono::nanoseconds moving_time(Ticket ticket) const override {
    return in_flight_.moving_time(ticket.sequence);
  }
  [[nodiscard]] Result<std::vector<std::string>> exchange(std::string_view own) override;
  void abort(std::string_view reason) override;
  [[nodiscard]] std::optional<Error> lost_peer() const override;

 private:
  [[nodiscard]] Result<bool> advance();
  [[nodiscard]] Result<void> check_peers(const std::string& where);
  Error fail(Error error) {
    if (!error_) error_ = std::move(error);
    return *error_;
  }

  std::shared_ptr<MpiRuntime> runtime_;
  CommOptions options_;
  PeerWatch watch_;
  std::vector<std::int32_t> processes_;
  MPI_Comm control_ = MPI_COMM_NULL;  ///< aborts travel here
  MessageContext context_;
  Pages arena_;
  Bytes arena_bytes_{0};
  CommLimits limits_;
  std::vector<MessageCall> calls_;
  std::vector<std::uint64_t> calls_with_;  ///< started so far, per rank that takes part
  InFlight in_flight_;                     ///< places are those of calls_
  std::optional<Error> error_;
  std::array<char, kReasonBytes> reason_{};
  std::vector<MPI_Request> abort_sends_;
  std::optional<std::chrono::steady_clock::time_point> idle_since_;
  std::chrono::steady_clock::time_point next_watch_{};
};

MpiMessages::~MpiMessages() {
  if (error_ || !exchange({}).has_value()) {
    runtime_->abandon();
    return;
  }
  const BlockingCall call("MPI_Comm_free");
  MPI_Comm_free(&control_);
}

Result<std::span<std::byte>> MpiMessages::make_arena(Bytes bytes, CommLimits limits) {
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

Result<Ticket> MpiMessages::start(const CollectiveRequest& request) {
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
  return Ticket{in_flight_.last()};
}

Result<bool> MpiMessages::advance() {
  bool moved = false;
  in_flight_.visit([&](std::size_t place) {
    MessageCall& current = calls_[place];
    if (error_) return false;
    const auto begin = std::chrono::steady_clock::now();
    const Result<bool> result = current.advance(context_);
    if (!result) fail(result.error());
    moved |= result && *result;
    if (result && *result && current.has_data()) in_flight_.moved(place, std::chrono::steady_clock::now() - begin);
    return current.complete();
  });
  if (error_) return *error_;
  return moved;
}

Result<bool> MpiMessages::poll(Ticket ticket) {
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
  if (Result<void> peers = check_peers(where); !peers) return fail(peers.error());
  const auto now = std::chrono::steady_clock::now();
  if (!idle_since_) idle_since_ = now;
  if (now - *idle_since_ > options_.deadline)
    return fail({Errc::retryable,
                 ranks_have(current.missing()) + " not arrived within " + in_seconds(options_.deadline), where,
                 kLookAtThatRank});
  return false;
}

Result<void> MpiMessages::check_peers(const std::string& where) {
  if (error_) return *error_;
  int there = 0;
  MPI_Status status;
  MPI_Iprobe(MPI_ANY_SOURCE, kAbortTag, control_, &there, &status);
  if (there != 0) {
    std::array<char, kReasonBytes + 1> reason{};
    MPI_Recv(reason.data(), kReasonBytes, MPI_CHAR, status.MPI_SOURCE, kAbortTag, control_, MPI_STATUS_IGNORE);
    return Error{Errc::retryable, rank_name(Rank{status.MPI_SOURCE}) + " stopped: " + reason.data(), where, ""};
  }
  const auto now = std::chrono::steady_clock::now();
  if (now < next_watch_) return {};
  next_watch_ = now + kWatchEvery;
  if (std::optional<Error> lost = lost_peer()) {
    lost->where = where;
    return std::move(*lost);
  }
  return {};
}

std::optional<Error> MpiMessages::lost_peer() const {
  const std::vector<Rank> ended = watch_.ended();
  if (ended.empty()) return std::nullopt;
  return Error{Errc::retryable,
               rank_name(ended[0]) + " died (process " +
                   std::to_string(processes_[static_cast<std::size_t>(ended[0].value)]) + " is gone)",
               rank_name(rank()), "run again"};
}

Result<std::vector<std::string>> MpiMessages::exchange(std::string_view own) {
  if (error_) return *error_;
  auto texts = runtime_->exchange(
      own, until_deadline(options_.deadline, rank(), "an exchange", [this] { return check_peers(rank_name(rank())); }));
  if (!texts) return fail(texts.error());
  return texts;
}

void MpiMessages::abort(std::string_view reason) {
  if (!abort_sends_.empty()) return;
  const std::size_t bytes = std::min(reason.size(), reason_.size());
  std::copy_n(reason.data(), bytes, reason_.data());
  abort_sends_.resize(static_cast<std::size_t>(size()), MPI_REQUEST_NULL);
  for (int peer = 0; peer < size(); ++peer)
    if (peer != rank().value)
      MPI_Isend(reason_.data(), static_cast<int>(bytes), MPI_CHAR, peer, kAbortTag, control_,
                &abort_sends_[static_cast<std::size_t>(peer)]);
  // Small messages leave at once; a peer that is gone must not hold this rank.
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds{200};
  int done = 0;
  while (done == 0 && std::chrono::steady_clock::now() < end)
    MPI_Testall(static_cast<int>(abort_sends_.size()), abort_sends_.data(), &done, MPI_STATUSES_IGNORE);
  fail({Errc::retryable, rank_name(rank()) + " stopped: " + std::string(reason), rank_name(rank()), ""});
}

}  // namespace

Result<std::unique_ptr<Communicator>> make_mpi_messages(std::shared_ptr<MpiRuntime> runtime, CommOptions options) {
  // Processes can be watched only from their own host.
  int host_size = 0;
  MPI_Comm_size(runtime->host(), &host_size);
  const std::int32_t own[2] = {runtime->rank().value, getpid()};
  std::vector<std::int32_t> pairs(2 * static_cast<std::size_t>(host_size));
  const BlockingCall call("MPI_Allgather");
  MPI_Allgather(own, 2, MPI_INT32_T, pairs.data(), 2, MPI_INT32_T, runtime->host());
  std::vector<std::int32_t> processes(static_cast<std::size_t>(runtime->size()));
  for (std::size_t i = 0; i < pairs.size(); i += 2) processes[static_cast<std::size_t>(pairs[i])] = pairs[i + 1];
  return std::unique_ptr<Communicator>(
      std::make_unique<MpiMessages>(std::move(runtime), options, PeerWatch(processes), processes));
}

}  // namespace shard
