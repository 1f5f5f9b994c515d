// Communicators of NCCL by group; waiting, and what ends it.
#include "executor/cuda/comm/nccl_device.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "executor/comm/members.h"
#include "executor/comm/validate.h"
#include "executor/cuda/api/events.h"
#include "executor/cuda/comm/nccl_call.h"
#include "sim/target/comm_workspace.h"
#include "traces/base/deadline.h"

namespace shard::cuda {
namespace {

using Clock = std::chrono::steady_clock;

// How often the host's communicator is asked for dead peers, which is a call of the system for each.
constexpr std::chrono::milliseconds kLookEvery{1};

std::string text_of(const NcclId& id) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (const char byte : id.bytes) {
    text += kDigits[static_cast<unsigned char>(byte) >> 4U];
    text += kDigits[static_cast<unsigned char>(byte) & 15U];
  }
  return text;
}

NcclId id_of(std::string_view text) {
  NcclId id;
  const auto digit = [&](std::size_t at) { return text[at] <= '9' ? text[at] - '0' : text[at] - 'a' + 10; };
  assert(text.size() == 2 * id.bytes.size() && "as text_of() made it");
  for (std::size_t i = 0; i < id.bytes.size(); ++i)
    id.bytes[i] = static_cast<char>(digit(2 * i) * 16 + digit(2 * i + 1));
  return id;
}

class NcclDevice final : public DeviceCommunicator {
 public:
  NcclDevice(DeviceRoom& room, Nccl& nccl, Communicator& host, bool reproducible)
      : room_(room), nccl_(nccl), host_(host), reproducible_(reproducible) {}
  ~NcclDevice() override {
    end_transfers();
    if (arena_ != nullptr) room_.api.free(arena_);
  }

  void use(Stream stream) override { stream_ = stream; }
  void will_call(std::span<const RankGroup> groups) override {
    for (const RankGroup& group : groups) {
      const RankGroup resolved_group = resolved(group, size());
      if (resolved_group.count > 1) comms_[key_of(resolved_group)].group = resolved_group;
    }
  }
  [[nodiscard]] int seat() const override { return 0; }
  [[nodiscard]] Result<void> while_waiting() override;
  [[nodiscard]] std::chrono::milliseconds patience() const override {
    return std::min<std::chrono::milliseconds>(room_.turns.deadline() / 4, std::chrono::seconds(2));
  }
  [[nodiscard]] Rank rank() const override { return host_.rank(); }
  [[nodiscard]] int size() const override { return host_.size(); }
  [[nodiscard]] std::string_view name() const override { return "nccl"; }
  [[nodiscard]] bool needs_workspace() const override { return reproducible_; }
  [[nodiscard]] Result<std::span<std::byte>> make_arena(Bytes bytes, CommLimits limits) override;
  [[nodiscard]] Result<Ticket> start(const CollectiveRequest& request) override;
  [[nodiscard]] Result<bool> poll(Ticket ticket) override;
  [[nodiscard]] std::chrono::nanoseconds moving_time(Ticket) const override { return {}; }
  [[nodiscard]] Result<std::vector<std::string>> exchange(std::string_view own) override;
  void give_up() override { end_transfers(); }
  [[nodiscard]] Result<void> leave() override;
  void abort(std::string_view reason) override {
    host_.abort(reason);
    static_cast<void>(fail({.code = Errc::retryable,
                            .what = rank_name(rank()) + " stopped: " + std::string(reason),
                            .where = rank_name(rank()),
                            .help = {}}));
  }
  [[nodiscard]] std::optional<Error> lost_peer() const override { return host_.lost_peer(); }

 private:
  static constexpr std::size_t kTickets = 16;
  struct Comm {
    RankGroup group{};
    NcclComm handle = nullptr;
  };

  [[nodiscard]] Result<void> connect();
  [[nodiscard]] Result<void> check_workspace(const CollectiveRequest& request) const;
  /// Waits for NCCL on the host.
  [[nodiscard]] Result<void> settle(NcclComm comm, const std::string& what);
  /// Errors of peers and of transfers.
  [[nodiscard]] Result<void> look();
  [[nodiscard]] Error late(const std::string& what) const {
    return {.code = Errc::retryable,
            .what = what + " did not end within " + in_seconds(room_.turns.deadline()),
            .where = rank_name(rank()),
            .help = "look at what the other ranks are doing; a larger --timeout helps if they are only slow"};
  }
  void let_go_of_graph() {
    if (room_.graph != nullptr) room_.graph->let_go();
  }
  void end_transfers() {
    let_go_of_graph();
    for (auto& [key, comm] : comms_)
      if (comm.handle != nullptr) nccl_.abort(std::exchange(comm.handle, nullptr));
  }
  Error fail(Error error) {
    if (error_) return *error_;
    if (error.where.empty()) error.where = rank_name(rank());
    error_ = std::move(error);
    end_transfers();
    return *error_;
  }

  DeviceRoom& room_;
  Nccl& nccl_;
  Communicator& host_;
  bool reproducible_;
  Stream stream_ = nullptr;
  std::byte* arena_ = nullptr;
  Bytes arena_bytes_{0};
  CommLimits limits_;
  std::map<std::uint64_t, Comm> comms_;  ///< by key of the group
  std::array<Event, kTickets> tickets_{};
  std::uint64_t sequence_ = 0;
  std::optional<Error> error_;
  Backoff backoff_;
  Clock::time_point waited_{};                                  ///< when something was last waited for
  Clock::time_point next_look_{};                               ///< at the host's communicator
  std::optional<std::pair<std::uint64_t, IdleTime>> polled_{};  ///< a ticket, and since it was asked for
};

Result<std::span<std::byte>> NcclDevice::make_arena(Bytes bytes, CommLimits limits) {
  assert(stream_ != nullptr && "use() comes first");
  limits_ = limits;
  arena_bytes_ = bytes;
  const Result<std::byte*> arena = room_.api.allocate(std::max(bytes, Bytes{1}));
  if (!arena) return fail(arena.error());
  arena_ = *arena;
  for (Event& event : tickets_)
    if (Result<void> r = make_events(room_.api, {&event}); !r) return fail(r.error());
  if (Result<void> r = connect(); !r) return fail(r.error());
  return std::span<std::byte>{arena_, static_cast<std::size_t>(bytes.count())};
}

Result<void> NcclDevice::connect() {
  std::ostringstream own;  // ids of the groups whose first member this is
  for (const auto& [key, comm] : comms_) {
    if (comm.group.first != rank().value) continue;
    const Result<NcclId> id = nccl_.unique_id();
    if (!id) return id.error();
    own << key << ' ' << text_of(*id) << '\n';
  }
  const Result<std::vector<std::string>> all = exchange(own.str());
  if (!all) return all.error();
  for (auto& [key, comm] : comms_) {
    std::istringstream told((*all)[static_cast<std::size_t>(comm.group.first)]);
    std::uint64_t each = 0;
    std::string id;
    while (each != key && told >> each >> id) {
    }
    if (each != key)
      return Error{.code = Errc::internal,
                   .what = rank_name(Rank{comm.group.first}) + " does not call with " + describe(comm.group),
                   .where = rank_name(rank()),
                   .help = {}};
    const Result<NcclComm> begun = nccl_.begin(comm.group.count, id_of(id), comm.group.member_of(rank().value));
    if (!begun) return begun.error();
    comm.handle = *begun;
  }
  for (const auto& [key, comm] : comms_)
    if (Result<void> r = settle(comm.handle, "joining " + describe(comm.group)); !r) return r;
  return {};
}

Result<void> NcclDevice::leave() {
  if (error_) return *error_;
  let_go_of_graph();
  for (auto& [key, comm] : comms_) {
    if (comm.handle == nullptr) continue;
    if (Result<void> r = nccl_.finish(comm.handle); !r) return fail(r.error());
  }
  for (auto& [key, comm] : comms_) {
    if (comm.handle == nullptr) continue;
    if (Result<void> r = settle(comm.handle, "leaving " + describe(comm.group)); !r) return r;
    if (Result<void> r = nccl_.destroy(comm.handle); !r) return fail(r.error());
    comm.handle = nullptr;
  }
  return {};
}

Result<void> NcclDevice::settle(NcclComm comm, const std::string& what) {
  IdleTime idle(room_.turns.progress());
  Backoff backoff;
  while (true) {
    const Result<bool> ready = nccl_.is_ready(comm);
    if (!ready) return fail(ready.error());
    if (*ready) return {};
    if (Result<void> r = look(); !r) return r;
    if (idle.lasted() > room_.turns.deadline()) return fail(late(what));
    backoff.pause();
  }
}

Result<void> NcclDevice::look() {
  if (error_) return *error_;
  const auto now = Clock::now();
  if (now < next_look_) return {};
  next_look_ = now + kLookEvery;
  if (std::optional<Error> lost = host_.lost_peer()) return fail(std::move(*lost));
  return {};
}

Result<void> NcclDevice::while_waiting() {
  if (Result<void> r = look(); !r) return r;
  for (const auto& [key, comm] : comms_) {
    if (comm.handle == nullptr) continue;
    if (const Result<bool> ready = nccl_.is_ready(comm.handle); !ready) return fail(ready.error());
  }
  const auto now = Clock::now();
  if (now - waited_ > kLookEvery) backoff_.reset();  // something else was done in between
  waited_ = now;
  backoff_.pause();
  return {};
}

Result<void> NcclDevice::check_workspace(const CollectiveRequest& request) const {
  Elems largest{0};
  for (const CommSegment& segment : request.segments) largest = std::max(largest, segment.elems);
  const Bytes needed =
      comm_workspace_bytes(request.kind, bytes_of(request.dtype, largest), resolved(request.group, size()).count);
  const bool inside = request.workspace_offset >= 0 && request.workspace_offset % 8 == 0 &&
                      Bytes{request.workspace_offset} + needed <= arena_bytes_;
  if (needed.count() == 0 || (request.workspace >= needed && inside)) return {};
  return Error{.code = Errc::internal,
               .what = "a workspace of " + std::to_string(request.workspace.count()) + " bytes at " +
                       std::to_string(request.workspace_offset) + ", " + std::to_string(needed.count()) + " needed",
               .where = rank_name(rank()) + " " + describe(request.kind, request.op),
               .help = "--transport messages plans one"};
}

Result<Ticket> NcclDevice::start(const CollectiveRequest& request) {
  if (error_) return *error_;
  if (Result<void> ok = validate(request, rank(), size(), arena_bytes_, limits_); !ok) return fail(ok.error());
  const bool tree = reproducible_ && is_sum(request.kind);
  if (tree)
    if (Result<void> ok = check_workspace(request); !ok) return fail(ok.error());
  const std::string what = describe(request.kind, request.op);
  const RankGroup group = resolved(request.group, size());
  const auto comm = comms_.find(key_of(group));
  if (group.count > 1 && comm == comms_.end())
    return fail({.code = Errc::internal,
                 .what = "a call with " + describe(group) + ", which will_call() did not name",
                 .where = rank_name(rank()) + " " + what,
                 .help = {}});
  const NcclComm handle = group.count > 1 ? comm->second.handle : nullptr;
  const NcclCall call{.room = room_,
                      .nccl = nccl_,
                      .comm = handle,
                      .stream = stream_,
                      .rank = rank(),
                      .group = group,
                      .arena = arena_,
                      .request = request,
                      .settle = [&] { return settle(handle, "starting " + what); }};
  const Result<Bytes> sent = tree ? enqueue_tree(call) : enqueue_native(call);
  if (!sent) {
    Error error = sent.error();
    if (error.where.empty() || error.where == rank_name(rank())) error.where = rank_name(rank()) + " " + what;
    if (error_) return error;  // which settle() has kept
    return fail(std::move(error));
  }
  const Ticket ticket{++sequence_};
  if (Result<void> r = room_.api.record(tickets_[ticket.sequence % kTickets], stream_); !r) return fail(r.error());
  count(request);
  count_wire(*sent);
  return ticket;
}

Result<bool> NcclDevice::poll(Ticket ticket) {
  if (error_) return *error_;
  const Result<bool> done = room_.api.is_done(tickets_[ticket.sequence % kTickets]);
  if (!done) return fail(done.error());
  if (*done) return true;
  if (Result<void> r = while_waiting(); !r) return r.error();
  if (!polled_ || polled_->first != ticket.sequence) polled_.emplace(ticket.sequence, room_.turns.progress());
  if (polled_->second.lasted() > room_.turns.deadline()) return fail(late("call " + std::to_string(ticket.sequence)));
  return false;
}

Result<std::vector<std::string>> NcclDevice::exchange(std::string_view own) {
  if (error_) return *error_;
  Result<std::vector<std::string>> all = host_.exchange(own);
  if (!all) return fail(all.error());
  return all;
}

}  // namespace

std::unique_ptr<DeviceCommunicator> make_nccl_device(DeviceRoom& room, Nccl& nccl, Communicator& host,
                                                     bool reproducible) {
  return std::make_unique<NcclDevice>(room, nccl, host, reproducible);
}

}  // namespace shard::cuda
