// Two windows: heads (made at once, so that aborts and deaths are seen from then on) and rings with arenas.
#include "executor/comm/mpi_shared.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "executor/comm/backing_store.h"
#include "executor/comm/shared.h"
#include "executor/comm/validate.h"
#include "traces/base/run_place.h"

namespace shard {
namespace {

constexpr std::int64_t kPage = 4096;
/// Room left for the buffers through which MPI itself talks, which lie in the same place; 80 KiB per rank were measured
/// with Open MPI 4.1.4 and 4 ranks.
constexpr Bytes kMpiBuffers{512 * 1024};

/// A shared window: one page-aligned stretch of zeroed memory per rank. Open MPI puts its own head before the first
/// rank's memory, so every stretch is asked for one page longer and its start rounded up.
class SharedWindow {
 public:
  [[nodiscard]] static Bytes footprint(Bytes bytes) { return round_up(bytes, kPage) + Bytes{kPage}; }

  [[nodiscard]] Result<void> allocate(const MpiRuntime& runtime, Bytes bytes) {
    void* own = nullptr;
    const auto size = static_cast<MPI_Aint>(footprint(bytes).count());
    const BlockingCall call("MPI_Win_allocate_shared");
    if (const int code = MPI_Win_allocate_shared(size, 1, MPI_INFO_NULL, runtime.host(), &own, &window_);
        code != MPI_SUCCESS) {
      window_ = MPI_WIN_NULL;
      return mpi_error(code, "MPI_Win_allocate_shared", runtime.rank());
    }
    for (int rank = 0; rank < runtime.size(); ++rank) {
      MPI_Aint their_size = 0;
      int unit = 0;
      void* base = nullptr;
      MPI_Win_shared_query(window_, rank, &their_size, &unit, &base);
      const auto address = reinterpret_cast<std::uintptr_t>(base);
      const std::uintptr_t aligned = (address + kPage - 1) / kPage * kPage;
      bases_.push_back(static_cast<std::byte*>(base) + (aligned - address));
    }
    return {};
  }
  /// Collective.
  void free() {
    const BlockingCall call("MPI_Win_free");
    if (window_ != MPI_WIN_NULL) MPI_Win_free(&window_);
  }
  [[nodiscard]] std::byte* base(int rank) const { return bases_[static_cast<std::size_t>(rank)]; }

 private:
  MPI_Win window_ = MPI_WIN_NULL;
  std::vector<std::byte*> bases_;
};

/// What ranks tell one another before arenas are made.
struct ArenaWish {
  std::int64_t bytes = 0;
  std::int64_t available = 0;
  std::int32_t in_flight = 0;
  std::int32_t segments = 0;
  std::int32_t groups = 0;
  std::int32_t unused = 0;
};

class MpiShared final : public SharedCommunicator {
 public:
  MpiShared(std::shared_ptr<MpiRuntime> runtime, CommOptions options, SharedWindow heads, SharedRegion region,
            PeerWatch watch)
      : SharedCommunicator(std::move(region), runtime->rank(), options, std::move(watch)),
        runtime_(std::move(runtime)),
        options_(options),
        heads_(std::move(heads)) {}
  ~MpiShared() override;

  [[nodiscard]] std::string_view name() const override { return "mpi-shared"; }
  [[nodiscard]] Result<std::span<std::byte>> make_arena(Bytes bytes, CommLimits limits) override;
  [[nodiscard]] Result<std::vector<std::string>> exchange(std::string_view own) override {
    return exchange(own, "an exchange");
  }

 private:
  [[nodiscard]] Result<std::vector<std::string>> exchange(std::string_view own, const char* what) {
    if (calls_.failed()) return calls_.check_peers().error();
    auto texts = runtime_->exchange(
        own, until_deadline(options_.deadline, rank(), what, [this] { return calls_.check_peers(); }));
    if (!texts) return calls_.fail(texts.error());
    return texts;
  }

  std::shared_ptr<MpiRuntime> runtime_;
  CommOptions options_;
  SharedWindow heads_;
  SharedWindow arenas_;
};

MpiShared::~MpiShared() {
  // Freeing windows and MPI_Finalize wait for all ranks inside MPI, where a dead one would not be noticed: so meet here
  // first, and end MPI only when everyone came.
  const bool all_came = !calls_.failed() && exchange({}, "the end").has_value();
  if (all_came) {
    // Nobody is marked as left: a peer may still be in that last exchange.
    arenas_.free();
    heads_.free();
  } else {
    RankHead& own = *calls_.region().heads[static_cast<std::size_t>(rank().value)];
    own.state.store(RankHead::left, std::memory_order_release);
    runtime_->abandon();
  }
}

Result<std::span<std::byte>> MpiShared::make_arena(Bytes bytes, CommLimits limits) {
  const std::string directory = window_directory();
  const Bytes slots{static_cast<std::int64_t>(SlotRings::bytes(limits))};
  const Bytes own = round_up(slots, kPage) + bytes;
  const ArenaWish wish{SharedWindow::footprint(own).count(), room_in(directory).count(), limits.in_flight,
                       limits.segments, limits.groups};
  const auto wishes = exchange({reinterpret_cast<const char*>(&wish), sizeof wish}, "making arenas");
  if (!wishes) return wishes.error();
  Bytes needed{kPage};  // the window's own head
  Bytes available{wish.available};
  for (const std::string& text : *wishes) {
    ArenaWish other;
    std::copy_n(text.data(), sizeof other, reinterpret_cast<char*>(&other));
    needed += Bytes{other.bytes} + kMpiBuffers;
    available = std::min(available, Bytes{other.available});
    if (other.in_flight != limits.in_flight || other.segments != limits.segments || other.groups != limits.groups)
      return calls_.fail({Errc::internal, "ranks ask for different CommLimits", rank_name(rank()), ""});
  }
  // All ranks come to the same answer from the same numbers, so nobody is left waiting.
  if (Result<void> room = check_room(directory, needed, available); !room) return room.error();
  if (Result<void> made = arenas_.allocate(*runtime_, own); !made) return calls_.fail(made.error());
  std::vector<SlotRings> rings;
  std::vector<std::byte*> arenas;
  for (int peer = 0; peer < size(); ++peer) {
    rings.emplace_back(arenas_.base(peer), limits);
    arenas.push_back(arenas_.base(peer) + round_up(slots, kPage).count());
  }
  std::byte* const arena = arenas[static_cast<std::size_t>(rank().value)];
  calls_.open_arenas(std::move(rings), std::move(arenas), bytes, limits);
  return std::span<std::byte>{arena, static_cast<std::size_t>(bytes.count())};
}

}  // namespace

Result<std::unique_ptr<Communicator>> make_mpi_shared(std::shared_ptr<MpiRuntime> runtime, CommOptions options) {
  const auto give_up = [&](Error error) {
    runtime->abandon();
    return error;
  };
  const std::string directory = window_directory();
  const Bytes head{sizeof(RankHead)};
  const std::int64_t world = runtime->size();
  if (Result<void> room =
          check_room(directory, Bytes{kPage} + world * SharedWindow::footprint(head), room_in(directory));
      !room)
    return give_up(room.error());
  SharedWindow heads;
  if (Result<void> made = heads.allocate(*runtime, head); !made) return give_up(made.error());

  SharedRegion region;
  for (int rank = 0; rank < world; ++rank) region.heads.push_back(reinterpret_cast<RankHead*>(heads.base(rank)));
  RankHead& own = *region.heads[static_cast<std::size_t>(runtime->rank().value)];
  own.process.store(getpid(), std::memory_order_relaxed);
  own.state.store(RankHead::present, std::memory_order_release);
  const WaitCheck deadline =
      until_deadline(options.deadline, runtime->rank(), "the start", []() -> Result<void> { return {}; });
  if (const auto all_present = runtime->exchange({}, deadline); !all_present) return give_up(all_present.error());
  std::vector<std::int32_t> processes;
  for (const RankHead* peer : region.heads) processes.push_back(peer->process.load(std::memory_order_relaxed));
  return std::unique_ptr<Communicator>(std::make_unique<MpiShared>(std::move(runtime), options, std::move(heads),
                                                                   std::move(region), PeerWatch(processes)));
}

}  // namespace shard
