// Calls are matched on the host, by turns, and enqueued by the member that comes last.
#include "executor/cuda/comm/same_device.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <deque>
#include <map>
#include <tuple>

#include "executor/comm/validate.h"
#include "executor/cuda/api/events.h"
#include "executor/cuda/comm/same_device_call.h"

namespace shard::cuda {
namespace {

/// The k-th call of a group, until all members have started it.
struct Pending {
  std::vector<CallMember> members{};
  std::size_t arrived = 0;
  bool enqueued = false;
};

using GroupKey = std::tuple<std::int32_t, std::int32_t, std::int32_t>;

struct Meeting {
  std::map<GroupKey, std::map<std::uint64_t, Pending>> calls{};
  std::vector<std::string> posted{};
  std::vector<std::uint64_t> round{};  ///< exchanges that a rank has posted to
  std::vector<std::uint64_t> read{};
};

class Member final : public DeviceCommunicator {
 public:
  Member(std::shared_ptr<Meeting> meeting, DeviceRoom& room, Rank rank, int world)
      : meeting_(std::move(meeting)), room_(room), rank_(rank), world_(world) {}
  ~Member() override {
    if (arena_ != nullptr) room_.api.free(arena_);
  }

  void use(Stream stream) override { stream_ = stream; }
  void will_call(std::span<const RankGroup>) override {}
  [[nodiscard]] int seat() const override { return rank_.value; }
  [[nodiscard]] Result<void> while_waiting() override { return room_.turns.yield(rank_.value); }
  [[nodiscard]] Rank rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return world_; }
  [[nodiscard]] std::string_view name() const override { return "same-device"; }
  [[nodiscard]] bool needs_workspace() const override { return false; }
  [[nodiscard]] Result<std::span<std::byte>> make_arena(Bytes bytes, CommLimits limits) override;
  [[nodiscard]] Result<Ticket> start(const CollectiveRequest& request) override;
  [[nodiscard]] Result<bool> poll(Ticket ticket) override;
  [[nodiscard]] std::chrono::nanoseconds moving_time(Ticket) const override { return {}; }
  [[nodiscard]] Result<std::vector<std::string>> exchange(std::string_view own) override;
  void abort(std::string_view reason) override {
    room_.turns.stop({.code = Errc::retryable,
                      .what = rank_name(rank_) + " stopped: " + std::string(reason),
                      .where = rank_name(rank_),
                      .help = {}});
  }

 private:
  static constexpr std::size_t kTickets = 16;

  [[nodiscard]] Result<void> enqueue(const CollectiveRequest& request);

  std::shared_ptr<Meeting> meeting_;
  DeviceRoom& room_;
  Rank rank_;
  int world_;
  Stream stream_ = nullptr;
  std::byte* arena_ = nullptr;
  Bytes arena_bytes_{0};
  CommLimits limits_;
  std::array<Event, 3> events_{};
  std::array<Event, kTickets> tickets_{};
  std::map<GroupKey, std::uint64_t> started_;  ///< calls of each group
  std::uint64_t sequence_ = 0;
};

Result<std::span<std::byte>> Member::make_arena(Bytes bytes, CommLimits limits) {
  assert(stream_ != nullptr && "use() comes first");
  limits_ = limits;
  arena_bytes_ = bytes;
  const Result<std::byte*> arena = room_.api.allocate(std::max(bytes, Bytes{1}));
  if (!arena) return arena.error();
  arena_ = *arena;
  for (Event& event : events_)
    if (Result<void> r = make_events(room_.api, {&event}); !r) return r.error();
  for (Event& event : tickets_)
    if (Result<void> r = make_events(room_.api, {&event}); !r) return r.error();
  if (const auto all = exchange({}); !all) return all.error();
  return std::span<std::byte>{arena_, static_cast<std::size_t>(bytes.count())};
}

Result<Ticket> Member::start(const CollectiveRequest& request) {
  if (Result<void> ok = validate(request, rank_, world_, arena_bytes_, limits_); !ok) return ok.error();
  if (Result<void> r = enqueue(request); !r) return r.error();
  const Ticket ticket{++sequence_};
  if (Result<void> r = room_.api.record(tickets_[ticket.sequence % kTickets], stream_); !r) return r.error();
  count(request);
  return ticket;
}

Result<void> Member::enqueue(const CollectiveRequest& request) {
  RankGroup group = request.group;
  if (group.count == 0) group = {.first = 0, .stride = 1, .count = world_};
  const GroupKey key{group.first, group.stride, group.count};
  const std::uint64_t number = started_[key]++;
  Pending& call = meeting_->calls[key][number];
  call.members.resize(static_cast<std::size_t>(group.count));
  CallMember& own = call.members[static_cast<std::size_t>(group.member_of(rank_.value))];
  own = {.rank = rank_,
         .stream = stream_,
         .arena = arena_,
         .arrived = events_[0],
         .half = events_[1],
         .done = events_[2],
         .request = request,
         .segments = {request.segments.begin(), request.segments.end()}};
  own.request.segments = own.segments;
  if (Result<void> r = room_.api.record(own.arrived, stream_); !r) return r;
  if (++call.arrived == call.members.size()) {
    for (const CallMember& m : call.members)
      if (m.request.kind != request.kind || m.segments.size() != own.segments.size())
        return Error{.code = Errc::internal,
                     .what = describe(request.kind, request.op) + " of " + rank_name(rank_) + " meets " +
                             describe(m.request.kind, m.request.op) + " of " + rank_name(m.rank),
                     .where = rank_name(rank_),
                     .help = {}};
    if (Result<void> r = enqueue_call(room_, call.members); !r) return r;
    call.enqueued = true;
  } else {
    const std::string what = describe(request.kind, request.op) + ": not all members";
    if (Result<void> r = room_.turns.until(rank_.value, what, [&] { return call.enqueued; }); !r) return r;
  }
  if (--call.arrived == 0) meeting_->calls[key].erase(number);
  return {};
}

Result<bool> Member::poll(Ticket ticket) {
  if (Result<void> r = room_.turns.yield(rank_.value); !r) return r.error();
  return room_.api.is_done(tickets_[ticket.sequence % kTickets]);
}

Result<std::vector<std::string>> Member::exchange(std::string_view own) {
  const auto me = static_cast<std::size_t>(rank_.value);
  const std::uint64_t round = meeting_->round[me] + 1;
  const auto all = [](const std::vector<std::uint64_t>& counters, std::uint64_t at_least) {
    return std::ranges::all_of(counters, [&](std::uint64_t c) { return c >= at_least; });
  };
  // The last round must have been read by all before its texts are replaced.
  if (Result<void> r =
          room_.turns.until(rank_.value, "an exchange of all ranks", [&] { return all(meeting_->read, round - 1); });
      !r)
    return r.error();
  meeting_->posted[me] = own;
  meeting_->round[me] = round;
  if (Result<void> r =
          room_.turns.until(rank_.value, "an exchange of all ranks", [&] { return all(meeting_->round, round); });
      !r)
    return r.error();
  std::vector<std::string> texts = meeting_->posted;
  meeting_->read[me] = round;
  return texts;
}

}  // namespace

std::vector<std::unique_ptr<DeviceCommunicator>> make_same_device(int world, DeviceRoom& room) {
  auto meeting = std::make_shared<Meeting>();
  const auto ranks = static_cast<std::size_t>(world);
  meeting->posted.resize(ranks);
  meeting->round.resize(ranks);
  meeting->read.resize(ranks);
  std::vector<std::unique_ptr<DeviceCommunicator>> members;
  for (int rank = 0; rank < world; ++rank)
    members.push_back(std::make_unique<Member>(meeting, room, Rank{rank}, world));
  return members;
}

}  // namespace shard::cuda
