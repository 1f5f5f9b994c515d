// The shared-memory algorithm over anonymous memory of this process, and an exchange behind a mutex.
#include "executor/comm/in_process.h"

#include <cstring>
#include <mutex>
#include <optional>
#include <utility>

#include "executor/comm/pages.h"
#include "executor/comm/shared.h"
#include "executor/comm/validate.h"
#include "traces/base/deadline.h"

namespace shard {
namespace {

/// What one rank owns and the others see; outlives its communicator.
struct Member {
  RankHead head{};
  Pages rings;
  Pages arena;
  std::string posted;
  std::uint64_t posted_round = 0;
  std::uint64_t read_round = 0;
};

struct Group {
  explicit Group(int world) : members(static_cast<std::size_t>(world)) {}
  std::mutex mutex;  ///< guards posted*, read_round, rings and arena of every member
  std::vector<Member> members;
};

SharedRegion region_of(Group& group) {
  SharedRegion region;
  for (Member& member : group.members) region.heads.push_back(&member.head);
  return region;
}

class InProcess final : public SharedCommunicator {
 public:
  InProcess(std::shared_ptr<Group> group, Rank rank, CommOptions options, std::shared_ptr<Progress> progress,
            std::string_view name)
      : SharedCommunicator(region_of(*group), rank, options, PeerWatch{}),
        group_(std::move(group)),
        options_(options),
        progress_(std::move(progress)),
        name_(name) {
    own().head.state.store(RankHead::present, std::memory_order_release);
  }
  ~InProcess() override { own().head.state.store(RankHead::left, std::memory_order_release); }

  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] Result<std::span<std::byte>> make_arena(Bytes bytes, CommLimits limits) override;
  [[nodiscard]] Result<std::vector<std::string>> exchange(std::string_view text) override;

 private:
  [[nodiscard]] Member& own() { return group_->members[static_cast<std::size_t>(rank().value)]; }
  /// Polls `ready` under the mutex, yielding, until it holds.
  template <class Ready>
  [[nodiscard]] Result<void> await(Ready ready);

  std::shared_ptr<Group> group_;
  CommOptions options_;
  std::shared_ptr<Progress> progress_;
  std::string_view name_;
};

Result<std::span<std::byte>> InProcess::make_arena(Bytes bytes, CommLimits limits) {
  Pages rings(SlotRings::bytes(limits));
  Pages arena(static_cast<std::size_t>(bytes.count()));
  if (rings.get() == nullptr || arena.get() == nullptr)
    return calls_.fail({Errc::does_not_fit, "no memory for an arena of " + std::to_string(bytes.count()) + " bytes",
                        rank_name(rank()), "use fewer ranks or a smaller model"});
  {
    const std::lock_guard lock(group_->mutex);
    own().rings = std::move(rings);
    own().arena = std::move(arena);
  }
  if (const Result<std::vector<std::string>> all_there = exchange({}); !all_there) return all_there.error();
  std::vector<SlotRings> slots;
  std::vector<std::byte*> arenas;
  const std::lock_guard lock(group_->mutex);
  for (const Member& member : group_->members) {
    slots.emplace_back(member.rings.get(), limits);
    arenas.push_back(member.arena.get());
  }
  calls_.open_arenas(std::move(slots), std::move(arenas), bytes, limits);
  return std::span<std::byte>{own().arena.get(), static_cast<std::size_t>(bytes.count())};
}

template <class Ready>
Result<void> InProcess::await(Ready ready) {
  IdleTime idle(*progress_);
  Backoff backoff;
  while (true) {
    {
      const std::lock_guard lock(group_->mutex);
      if (ready()) return {};
    }
    if (Result<void> peers = calls_.check_peers(); !peers) {
      // A peer may have left right after it did what this rank waits for.
      const std::lock_guard lock(group_->mutex);
      if (ready()) return {};
      return calls_.fail(peers.error());
    }
    if (idle.lasted() > options_.deadline)
      return calls_.fail({Errc::retryable,
                          "not all ranks arrived at an exchange within " + in_seconds(options_.deadline),
                          rank_name(rank()), kLookAtThatRank});
    backoff.pause();
  }
}

Result<std::vector<std::string>> InProcess::exchange(std::string_view text) {
  if (calls_.failed()) return calls_.check_peers().error();
  const std::uint64_t round = own().posted_round + 1;  // only this rank writes it
  const auto all = [&](std::uint64_t Member::*counter, std::uint64_t at_least) {
    for (const Member& member : group_->members)
      if (member.*counter < at_least) return false;
    return true;
  };
  // The last round must have been read by all before its texts are replaced.
  if (Result<void> free = await([&] { return all(&Member::read_round, round - 1); }); !free) return free.error();
  {
    const std::lock_guard lock(group_->mutex);
    own().posted = text;
    own().posted_round = round;
  }
  if (Result<void> posted = await([&] { return all(&Member::posted_round, round); }); !posted) return posted.error();
  std::vector<std::string> texts;
  const std::lock_guard lock(group_->mutex);
  for (const Member& member : group_->members) texts.push_back(member.posted);
  own().read_round = round;
  return texts;
}

}  // namespace

std::vector<std::unique_ptr<Communicator>> make_in_process(int world, CommOptions options,
                                                           const std::shared_ptr<Progress>& progress) {
  auto group = std::make_shared<Group>(world);
  std::vector<std::unique_ptr<Communicator>> ranks;
  for (int rank = 0; rank < world; ++rank)
    ranks.push_back(std::make_unique<InProcess>(group, Rank{rank}, options, progress, "in-process"));
  return ranks;
}

std::unique_ptr<Communicator> make_single(CommOptions options) {
  return std::make_unique<InProcess>(std::make_shared<Group>(1), Rank{0}, options, std::make_shared<Progress>(),
                                     "single");
}

}  // namespace shard
