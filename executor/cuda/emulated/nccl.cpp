// Calls of the emulated NCCL: taken down, put on streams once they are ready, run when all who take part are there.
#include "executor/cuda/emulated/nccl.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>
#include <thread>

#include "executor/cuda/emulated/device.h"
#include "executor/cuda/emulated/nccl_clique.h"

namespace shard::cuda {
namespace emulated {
namespace {

/// What is enqueued of a communicator runs in the order of its calls: those of a capture at each of its launches.
struct Line {
  std::int64_t enqueued = 0;
  std::int64_t ended = 0;
  bool repeats = false;
  [[nodiscard]] bool is_next(std::int64_t number) const { return number == (repeats ? ended % enqueued : ended); }
};

/// A rank's end.
struct Member {
  std::shared_ptr<Clique> clique;
  int rank = 0;
  bool hangs = false;    ///< planted
  bool aborted = false;  ///< what it has enqueued ends, and does nothing
  bool finishing = false;
  std::uint32_t questions = 0;  ///< until it is ready
  std::deque<std::function<Result<void>()>> waiting{};
  std::shared_ptr<Line> outside = std::make_shared<Line>();
  std::vector<std::pair<std::weak_ptr<Capture>, std::shared_ptr<Line>>> captured{};
  std::vector<std::weak_ptr<GraphWork>> graphs{};  ///< that its transfers are captured in

  std::shared_ptr<Line> line_of(const DeviceStream& stream) {
    if (stream.capture == nullptr) return outside;
    for (const auto& [capture, line] : captured)
      if (capture.lock() == stream.capture) return line;
    captured.emplace_back(stream.capture, std::make_shared<Line>());
    captured.back().second->repeats = true;
    graphs.emplace_back(stream.capture->graph);
    return captured.back().second;
  }
  /// Also one that is being captured.
  [[nodiscard]] bool holds_a_graph() const {
    return std::ranges::any_of(graphs, [](const auto& graph) {
      const std::shared_ptr<GraphWork> held = graph.lock();
      return held != nullptr && !held->is_destroyed();
    });
  }
  /// Destroyed graphs live on until their launches have ended.
  [[nodiscard]] bool is_in_a_graph() const {
    return std::ranges::any_of(graphs, [](const auto& graph) { return !graph.expired(); });
  }
};

/// Transfers of one rank that are made as one.
struct Bundle {
  std::shared_ptr<Member> member;
  DeviceStream* stream = nullptr;
  std::vector<Transfer> transfers{};
  bool hangs = false;
};

/// A bundle on its stream.
class Running {
 public:
  Running(const Bundle& bundle, std::shared_ptr<Line> line)
      : bundle_(bundle), line_(std::move(line)), number_(line_->enqueued++) {}

  bool ready() {
    if (bundle_.member->aborted) return true;
    if (!line_->is_next(number_)) return false;
    if (places_.empty())
      for (const Transfer& each : bundle_.transfers)
        places_.push_back(
            clique().arrive(bundle_.member->rank, each, device().content(each.in, each.in_bytes(clique().ranks()))));
    const bool there =
        std::ranges::all_of(places_, [&](const Clique::Place& place) { return clique().all_there(place); });
    // The host asks again at once; the rank that it waits for may need its core.
    if (!there) std::this_thread::yield();
    return there;
  }
  void run() {
    ++line_->ended;
    if (bundle_.member->aborted) return;
    for (std::size_t i = 0; i < places_.size(); ++i) {
      const Transfer& each = bundle_.transfers[i];
      const Content content = clique().take(bundle_.member->rank, each, places_[i]);
      if (each.out != nullptr && !content.empty()) device().store(each.out, content);
    }
    places_.clear();
  }

 private:
  [[nodiscard]] Clique& clique() const { return *bundle_.member->clique; }
  [[nodiscard]] Device& device() const { return *bundle_.stream->device; }
  Bundle bundle_;
  std::shared_ptr<Line> line_;
  std::int64_t number_;
  std::vector<Clique::Place> places_;
};

Result<void> put_on_stream(const Bundle& bundle) {
  std::vector<Range> ranges;
  const int ranks = bundle.member->clique->ranks();
  for (const Transfer& each : bundle.transfers) {
    if (each.in_bytes(ranks) > 0) ranges.push_back({each.in, each.in_bytes(ranks), model::Access::read});
    if (each.out_bytes(ranks) > 0) ranges.push_back({each.out, each.out_bytes(ranks), model::Access::write});
  }
  const auto running = std::make_shared<Running>(bundle, bundle.member->line_of(*bundle.stream));
  return bundle.stream->device->transfer(
      *bundle.stream, ranges, bundle.hangs, [running] { return running->ready(); }, [running] { running->run(); });
}

class EmulatedNccl final : public Nccl {
 public:
  EmulatedNccl(std::shared_ptr<NcclWorld> world, std::uint64_t seed, std::optional<PlantedFault> fault)
      : world_(std::move(world)), chance_(seed), fault_(std::move(fault)) {}

  ~EmulatedNccl() override {
    for (const std::shared_ptr<Member>& member : members_) member->waiting.clear();  // which know the member
  }

  std::int32_t version() const override { return 23000; }
  Result<NcclId> unique_id() override {
    const Result<bool> hangs = enter("unique_id");
    if (!hangs) return hangs.error();
    id_hangs_ = id_hangs_ || *hangs;
    return world_->make_id();
  }
  Result<NcclComm> begin(std::int32_t ranks, const NcclId& id, std::int32_t rank) override;
  Result<bool> is_ready(NcclComm comm) override;
  void abort(NcclComm comm) override {
    if (Member* const member = find(comm)) {
      if (member->holds_a_graph()) {
        std::fputs("ncclCommAbort() waits for a graph of its transfers that nobody destroys\n", stderr);
        std::abort();
      }
      member->aborted = true;
      member->waiting.clear();
    }
  }
  Result<void> finish(NcclComm comm) override;
  Result<void> destroy(NcclComm comm) override;
  Result<void> group_start() override;
  Result<void> group_end() override;

  Result<void> all_gather(NcclComm comm, Stream stream, const std::byte* in, std::byte* out, std::int64_t count,
                          Dtype dtype) override {
    return call(comm, stream, {TransferKind::all_gather, in, out, count, dtype, 0});
  }
  Result<void> reduce_scatter(NcclComm comm, Stream stream, const std::byte* in, std::byte* out, std::int64_t count,
                              Dtype dtype) override {
    return call(comm, stream, {TransferKind::reduce_scatter, in, out, count, dtype, 0});
  }
  Result<void> all_reduce(NcclComm comm, Stream stream, const std::byte* in, std::byte* out, std::int64_t count,
                          Dtype dtype) override {
    return call(comm, stream, {TransferKind::all_reduce, in, out, count, dtype, 0});
  }
  Result<void> broadcast(NcclComm comm, Stream stream, const std::byte* in, std::byte* out, std::int64_t count,
                         Dtype dtype, std::int32_t root) override {
    return call(comm, stream, {TransferKind::broadcast, in, out, count, dtype, root});
  }
  Result<void> reduce(NcclComm comm, Stream stream, const std::byte* in, std::byte* out, std::int64_t count,
                      Dtype dtype, std::int32_t root) override {
    return call(comm, stream, {TransferKind::reduce, in, out, count, dtype, root});
  }
  Result<void> send(NcclComm comm, Stream stream, const std::byte* in, std::int64_t count, Dtype dtype,
                    std::int32_t peer) override {
    return call(comm, stream, {TransferKind::send, in, nullptr, count, dtype, peer});
  }
  Result<void> receive(NcclComm comm, Stream stream, std::byte* out, std::int64_t count, Dtype dtype,
                       std::int32_t peer) override {
    return call(comm, stream, {TransferKind::receive, nullptr, out, count, dtype, peer});
  }

 private:
  /// Whether a hang is planted here; the error that is.
  Result<bool> enter(std::string_view call);
  Error fail(Error error) {
    if (!error_) error_ = std::move(error);
    return *error_;
  }
  Error misuse(const std::string& what) { return fail({Errc::internal, "NCCL: " + what, "", ""}); }
  Member* find(NcclComm comm) {
    for (const auto& member : members_)
      if (reinterpret_cast<NcclComm>(member.get()) == comm && !member->aborted) return member.get();
    return nullptr;
  }
  /// One that may be called now.
  Result<std::shared_ptr<Member>> at_rest(NcclComm comm);
  Result<void> call(NcclComm comm, Stream stream, Transfer transfer);
  [[nodiscard]] std::optional<std::string> wrong(const Member& member, const Transfer& transfer) const;
  Result<void> accept(Bundle bundle);

  std::shared_ptr<NcclWorld> world_;
  Random chance_;
  std::optional<PlantedFault> fault_;
  std::int64_t occurrences_ = 0;
  std::optional<Error> error_;
  std::deque<std::shared_ptr<Member>> members_;
  bool id_hangs_ = false;  // planted: nobody can join
  int groups_ = 0;         // begun and not ended
  bool group_hangs_ = false;
  std::vector<Bundle> bundles_;  // of the group
};

Result<bool> EmulatedNccl::enter(std::string_view call) {
  if (error_) return *error_;
  if (!fault_ || fault_->call != "nccl_" + std::string(call) || ++occurrences_ != fault_->occurrence) return false;
  if (fault_->kind == PlantedFault::Kind::hang) return true;
  return fail({Errc::unavailable,
               fault_->call + "() fails on the emulated device, as was planted at its call number " +
                   std::to_string(fault_->occurrence),
               "", ""});
}

Result<NcclComm> EmulatedNccl::begin(std::int32_t ranks, const NcclId& id, std::int32_t rank) {
  Result<bool> hangs = enter("begin");
  if (!hangs) return hangs.error();
  hangs = *hangs || id_hangs_;
  const Result<std::shared_ptr<Clique>> clique = world_->clique(id, ranks);
  if (!clique) return fail(clique.error());
  auto member = std::make_shared<Member>();
  member->clique = *clique;
  member->rank = rank;
  member->hangs = *hangs;
  if (!*hangs)
    if (Result<void> r = member->clique->join(rank); !r) return fail(r.error());
  members_.push_back(member);
  return reinterpret_cast<NcclComm>(member.get());
}

Result<bool> EmulatedNccl::is_ready(NcclComm comm) {
  const Result<bool> hangs = enter("is_ready");
  if (!hangs) return hangs.error();
  Member* const member = find(comm);
  if (member == nullptr) return misuse("is_ready() of a communicator that is none, or no more");
  if (*hangs) member->hangs = true;
  if (auto error = member->clique->error()) return fail(std::move(*error));
  if (member->hangs || !member->clique->all_joined()) return false;
  if (member->questions > 0) {
    --member->questions;
    return false;
  }
  for (; !member->waiting.empty(); member->waiting.pop_front())
    if (Result<void> r = member->waiting.front()(); !r) return fail(r.error());
  return !member->finishing || (!member->is_in_a_graph() && member->clique->all_left());
}

Result<std::shared_ptr<Member>> EmulatedNccl::at_rest(NcclComm comm) {
  const Member* const found = find(comm);
  if (found == nullptr) return misuse("a call of a communicator that is none, or no more");
  if (found->hangs || found->finishing || found->questions > 0 || !found->waiting.empty() ||
      !found->clique->all_joined())
    return misuse("a call of a communicator that is not ready");
  return *std::ranges::find_if(members_, [&](const auto& member) { return member.get() == found; });
}

Result<void> EmulatedNccl::finish(NcclComm comm) {
  const Result<bool> hangs = enter("finish");
  if (!hangs) return hangs.error();
  const Result<std::shared_ptr<Member>> member = at_rest(comm);
  if (!member) return member.error();
  const Line& line = *(*member)->outside;
  if (line.ended < line.enqueued) return misuse("finish() before the stream has come to all transfers");
  (*member)->finishing = true;
  (*member)->hangs = *hangs;
  if (!*hangs) (*member)->clique->leave();
  return {};
}

Result<void> EmulatedNccl::destroy(NcclComm comm) {
  const Result<bool> hangs = enter("destroy");
  if (!hangs) return hangs.error();
  Member* const member = find(comm);
  if (member == nullptr || !member->finishing || member->is_in_a_graph() || !member->clique->all_left())
    return misuse("destroy() of a communicator that has not finished");
  member->aborted = true;
  return {};
}

Result<void> EmulatedNccl::group_start() {
  const Result<bool> hangs = enter("group_start");
  if (!hangs) return hangs.error();
  group_hangs_ = group_hangs_ || *hangs;
  ++groups_;
  return {};
}

Result<void> EmulatedNccl::group_end() {
  const Result<bool> hangs = enter("group_end");
  if (!hangs) return hangs.error();
  if (groups_ == 0) return misuse("group_end() without group_start()");
  group_hangs_ = group_hangs_ || *hangs;
  if (--groups_ > 0) return {};
  const std::vector<Bundle> bundles = std::exchange(bundles_, {});
  const bool hang = std::exchange(group_hangs_, false);
  for (Bundle bundle : bundles) {
    bundle.hangs = bundle.hangs || hang;
    if (Result<void> r = accept(std::move(bundle)); !r) return r;
  }
  return {};
}

std::optional<std::string> EmulatedNccl::wrong(const Member& member, const Transfer& transfer) const {
  const int ranks = member.clique->ranks();
  if (transfer.count < 0) return "a negative count";
  if (transfer.peer < 0 || transfer.peer >= ranks) return "no such peer or root";
  const bool of_two = transfer.kind == TransferKind::send || transfer.kind == TransferKind::receive;
  if (of_two && transfer.peer == member.rank) return "a message to itself";
  if (transfer.in == nullptr || transfer.out == nullptr) return std::nullopt;
  const std::int64_t in = transfer.in_bytes(ranks);
  const std::int64_t out = transfer.out_bytes(ranks);
  const bool meet = transfer.in < transfer.out + out && transfer.out < transfer.in + in;
  const bool in_place = transfer.kind == TransferKind::all_gather ? transfer.in == transfer.out + member.rank * in
                        : transfer.kind == TransferKind::reduce_scatter
                            ? transfer.out == transfer.in + member.rank * out
                            : transfer.in == transfer.out;
  if (meet && !in_place) return "buffers that overlap and are not in place";
  return std::nullopt;
}

Result<void> EmulatedNccl::call(NcclComm comm, Stream stream, Transfer transfer) {
  const Result<bool> hangs = enter(to_string(transfer.kind));
  if (!hangs) return hangs.error();
  const Result<std::shared_ptr<Member>> member = at_rest(comm);
  if (!member) return member.error();
  if (const auto why = wrong(**member, transfer))
    return misuse(std::string(to_string(transfer.kind)) + "() with " + *why);
  const bool root = transfer.peer == (*member)->rank;
  if (transfer.kind == TransferKind::broadcast) {
    if (!root) transfer.in = nullptr;
    if (transfer.in == transfer.out) transfer.out = nullptr;
  }
  if (transfer.kind == TransferKind::reduce && !root) transfer.out = nullptr;
  DeviceStream* const on = &of(stream);
  if (groups_ == 0) return accept({*member, on, {transfer}, *hangs});
  const auto same = std::ranges::find_if(bundles_, [&](const Bundle& bundle) { return bundle.member == *member; });
  if (same == bundles_.end()) {
    bundles_.push_back({*member, on, {transfer}, *hangs});
    return {};
  }
  if (same->stream != on) return misuse("a group whose calls of one communicator are on several streams");
  same->transfers.push_back(transfer);
  same->hangs = same->hangs || *hangs;
  return {};
}

Result<void> EmulatedNccl::accept(Bundle bundle) {
  // Nothing to move is nothing to wait for.
  std::erase_if(bundle.transfers, [](const Transfer& transfer) { return transfer.count == 0; });
  if (bundle.transfers.empty() && !bundle.hangs) return {};
  bundle.member->questions = chance_.below(3);
  if (bundle.member->questions == 0) {
    if (Result<void> r = put_on_stream(bundle); !r) return fail(r.error());
    return {};
  }
  const std::shared_ptr<Member>& member = bundle.member;
  member->waiting.push_back([bundle = std::move(bundle)] { return put_on_stream(bundle); });
  return {};
}

}  // namespace
}  // namespace emulated

std::shared_ptr<emulated::NcclWorld> make_nccl_world() {
  return std::make_shared<emulated::NcclWorld>();
}

std::unique_ptr<Nccl> make_emulated_nccl(std::shared_ptr<emulated::NcclWorld> world, std::uint64_t seed,
                                         const std::optional<PlantedFault>& fault) {
  return std::make_unique<emulated::EmulatedNccl>(std::move(world), seed, fault);
}

std::span<const std::string_view> emulated_nccl_calls() {
  static constexpr std::array<std::string_view, 14> kCalls{
      "nccl_unique_id",   "nccl_begin",     "nccl_is_ready",   "nccl_finish",         "nccl_destroy",
      "nccl_group_start", "nccl_group_end", "nccl_all_gather", "nccl_reduce_scatter", "nccl_all_reduce",
      "nccl_broadcast",   "nccl_reduce",    "nccl_send",       "nccl_receive"};
  return kCalls;
}

}  // namespace shard::cuda
