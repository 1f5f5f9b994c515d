// The cases of element types and groups: every rank knows every member's input, so each can say what it must see.
#include <algorithm>
#include <cstring>
#include <deque>
#include <numeric>

#include "executor/comm/members.h"
#include "sim/target/comm_workspace.h"
#include "tests/comm/conformance.h"
#include "tests/comm/reference.h"

namespace shard::test {
namespace {

constexpr Dtype kTypes[] = {Dtype::f32, Dtype::i32, Dtype::f16, Dtype::bf16, Dtype::i64};
constexpr Dtype kSummed[] = {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::i64};
constexpr Collective kKinds[] = {Collective::all_gather, Collective::reduce_scatter, Collective::all_reduce,
                                 Collective::broadcast, Collective::reduce};

/// What all members call: the same on each of them.
struct Wish {
  Collective kind = Collective::all_gather;
  Dtype dtype = Dtype::f32;
  RankGroup group{};                 ///< as it is written in the request
  int root = 0;                      ///< member number
  std::vector<std::int64_t> each{};  ///< per segment: elements per member
  bool in_place = false;
  int input = 0;
};

/// One rank's desk: buffers taken from the arena one after another, calls, and comparisons bit by bit.
class Desk {
 public:
  Desk(Communicator& comm, std::span<std::byte> arena, Findings& findings)
      : comm_(comm), arena_(arena), findings_(findings) {}

  [[nodiscard]] int world() const { return comm_.size(); }
  [[nodiscard]] int rank() const { return comm_.rank().value; }
  /// Gives all buffers back.
  void clear() { top_ = 0; }

  /// Starts the call, of which this rank must be a member.
  void start(const Wish& wish) {
    Call call{.wish = wish, .group = resolved(wish.group, world())};
    const bool has_shard = wish.kind == Collective::all_gather || wish.kind == Collective::reduce_scatter;
    const std::int64_t element = bytes_per_element(wish.dtype);
    const int members = call.group.count;
    const int own = call.group.member_of(rank());
    Elems largest{0};
    std::int64_t first = 0;
    for (const std::int64_t each : wish.each) {
      take(rank() * 3 + 1, 1);  // offsets differ between ranks
      CommSegment segment{.elems = Elems{each * members}};
      segment.full_offset = take(each * members, element);
      if (has_shard)
        segment.shard_offset = wish.in_place ? segment.full_offset + own * each * element : take(each, element);
      if (wish.kind == Collective::all_gather) {
        fill(segment.full_offset, each * members, wish, -1);
        fill(segment.shard_offset, each, wish, first);
      } else {
        fill(segment.full_offset, each * members, wish, first);
      }
      largest = std::max(largest, segment.elems);
      first += each * members;
      call.segments.push_back(segment);
    }
    CollectiveRequest request{.op = OpId{wish.input},
                              .kind = wish.kind,
                              .segments = call.segments,
                              .dtype = wish.dtype,
                              .group = wish.group,
                              .root = Rank{call.group.rank_of(wish.root)}};
    request.workspace = comm_workspace_bytes(wish.kind, bytes_of(wish.dtype, largest), members);
    if (comm_.needs_workspace()) request.workspace_offset = take(request.workspace.count(), 1);
    const Result<Ticket> ticket = comm_.start(request);
    if (!ticket) return findings_.push_back("start: " + to_string(ticket.error()));
    call.ticket = *ticket;
    calls_.push_back(std::move(call));
  }

  [[nodiscard]] std::size_t in_flight() const { return calls_.size(); }
  /// Waits for call `index` of those in flight and looks at what it left.
  void finish(std::size_t index) {
    if (index >= calls_.size()) return;  // a finding already
    const Call call = calls_[index];
    calls_.erase(calls_.begin() + static_cast<std::ptrdiff_t>(index));
    if (const Result<void> done = comm_.wait(call.ticket); !done)
      return findings_.push_back("wait: " + to_string(done.error()));
    check(call);
  }
  void finish_all() {
    while (!calls_.empty()) finish(0);
  }
  /// One call from start to end, with the buffers given back.
  void call(const Wish& wish) {
    if (!resolved(wish.group, world()).contains(rank())) return;
    start(wish);
    finish_all();
    clear();
  }

 private:
  struct Call {
    Wish wish;
    RankGroup group;
    std::vector<CommSegment> segments{};
    Ticket ticket{};
  };

  std::int64_t take(std::int64_t elems, std::int64_t element) {
    const std::int64_t offset = (top_ + 63) / 64 * 64 + (element == 1 ? 0 : element * (rank() % 4));
    top_ = offset + elems * element;
    if (top_ <= static_cast<std::int64_t>(arena_.size())) return offset;
    findings_.push_back("the test's arena is too small");
    return 0;
  }
  /// This rank's input from index `first` on; what no member has where that is negative.
  void fill(std::int64_t offset, std::int64_t elems, const Wish& wish, std::int64_t first) {
    const std::int64_t element = bytes_per_element(wish.dtype);
    for (std::int64_t i = 0; i < elems; ++i) {
      const std::uint64_t bits =
          first < 0 ? 0x1234567812345678U : element_of(wish.dtype, rank(), first + i, wish.input);
      std::memcpy(arena_.data() + offset + i * element, &bits, static_cast<std::size_t>(element));  // little endian
    }
  }
  /// Reports the first element that is not bitwise expected(i).
  template <class Expected>
  void expect(const Call& call, const char* what, std::int64_t offset, std::int64_t elems, Expected expected) {
    const std::int64_t element = bytes_per_element(call.wish.dtype);
    for (std::int64_t i = 0; i < elems; ++i) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, arena_.data() + offset + i * element, static_cast<std::size_t>(element));
      const std::uint64_t wanted = expected(i);
      if (bits == wanted) continue;
      findings_.push_back(std::string(to_string(call.wish.kind)) + " of " + to_string(call.wish.dtype) + " among " +
                          describe(call.group) + ", input " + std::to_string(call.wish.input) + ", " + what +
                          ": element " + std::to_string(i) + " of " + std::to_string(elems) + " has bits " +
                          std::to_string(bits) + ", not " + std::to_string(wanted));
      return;
    }
  }
  void check(const Call& call) {
    const Wish& wish = call.wish;
    const int own = call.group.member_of(rank());
    std::int64_t first = 0;
    for (std::size_t s = 0; s < call.segments.size(); ++s) {
      const CommSegment& segment = call.segments[s];
      const std::int64_t each = wish.each[s];
      const std::int64_t elems = segment.elems.count();
      const auto of_rank = [&](int from) {
        return [&, from](std::int64_t i) { return element_of(wish.dtype, from, first + i, wish.input); };
      };
      const auto sum = [&](std::int64_t i) { return sum_of(wish.dtype, call.group, first + i, wish.input); };
      switch (wish.kind) {
        case Collective::all_gather:
          expect(call, "full", segment.full_offset, elems, [&](std::int64_t i) {
            return element_of(wish.dtype, call.group.rank_of(static_cast<int>(i / each)), first + i % each, wish.input);
          });
          break;
        case Collective::reduce_scatter:
          expect(call, "shard", segment.shard_offset, each, [&](std::int64_t i) { return sum(own * each + i); });
          if (!wish.in_place) expect(call, "full keeps its values", segment.full_offset, elems, of_rank(rank()));
          break;
        case Collective::all_reduce: expect(call, "full", segment.full_offset, elems, sum); break;
        case Collective::broadcast:
          expect(call, "full", segment.full_offset, elems, of_rank(call.group.rank_of(wish.root)));
          break;
        case Collective::reduce:
          if (own == wish.root) expect(call, "full", segment.full_offset, elems, sum);
          break;
      }
      first += elems;
    }
  }

  Communicator& comm_;
  std::span<std::byte> arena_;
  Findings& findings_;
  std::int64_t top_ = 0;
  std::deque<Call> calls_;
};

/// Chance that all ranks share.
class Dice {
 public:
  explicit Dice(int seed) : state_(static_cast<std::uint64_t>(seed)) {}
  std::size_t below(std::size_t n) {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::size_t>(state_ >> 33) % n;
  }
  template <class T, std::size_t N>
  T one_of(const T (&list)[N]) {
    return list[below(N)];
  }

 private:
  std::uint64_t state_;
};

bool sums(Collective kind) {
  return kind != Collective::all_gather && kind != Collective::broadcast;
}

void moves_every_type(Desk& desk) {
  for (const Dtype dtype : kTypes)
    for (const bool in_place : {false, true}) {
      desk.call({.kind = Collective::all_gather, .dtype = dtype, .each = {1, 1003}, .in_place = in_place, .input = 1});
      desk.call({.kind = Collective::broadcast, .dtype = dtype, .root = desk.world() / 2, .each = {777}, .input = 2});
    }
}

void rounds_every_node_of_a_sum(Desk& desk) {
  for (const Dtype dtype : kSummed)
    for (const std::int64_t each : {1, 31, 1003}) {
      for (const bool in_place : {false, true})
        desk.call(
            {.kind = Collective::reduce_scatter, .dtype = dtype, .each = {each}, .in_place = in_place, .input = 3});
      desk.call({.kind = Collective::all_reduce, .dtype = dtype, .each = {each}, .input = 4});
      for (const int root : {0, desk.world() - 1})
        desk.call({.kind = Collective::reduce, .dtype = dtype, .root = root, .each = {each}, .input = 5});
    }
}

/// More than the tiles that a message transport keeps in flight.
void sums_long_buffers(Desk& desk) {
  if (desk.world() > 4) return;  // the arena; tiles do not depend on the number of ranks
  for (const Dtype dtype : {Dtype::bf16, Dtype::i64}) {
    const std::int64_t each = 600'000 / bytes_per_element(dtype);
    desk.call({.kind = Collective::reduce_scatter, .dtype = dtype, .each = {each}, .input = 6});
    desk.call({.kind = Collective::all_reduce, .dtype = dtype, .each = {each}, .input = 7});
  }
}

/// Ways to cut the world into groups of one shape: neighbours, and every n-th rank. Each rank is in one group of each.
std::vector<std::vector<RankGroup>> families(int world) {
  std::vector<std::vector<RankGroup>> all{{RankGroup{}}};
  for (int size = 1; size <= world; ++size) {
    if (world % size != 0) continue;
    const int groups = world / size;
    std::vector<RankGroup> neighbours;
    std::vector<RankGroup> strided;
    for (int g = 0; g < groups; ++g) {
      neighbours.push_back({g * size, 1, size});
      strided.push_back({g, groups, size});
    }
    all.push_back(neighbours);
    all.push_back(strided);
  }
  return all;
}

/// The group of `family` that `rank` is in.
RankGroup group_of(const std::vector<RankGroup>& family, int rank, int world) {
  return *std::ranges::find_if(family, [&](RankGroup group) { return resolved(group, world).contains(rank); });
}

void works_in_groups_of_every_shape(Desk& desk) {
  int input = 10;
  for (const std::vector<RankGroup>& family : families(desk.world())) {
    const RankGroup group = group_of(family, desk.rank(), desk.world());
    const int members = resolved(group, desk.world()).count;
    for (const Collective kind : kKinds) {
      const Dtype dtype = sums(kind) ? kSummed[input % 4] : kTypes[input % 5];
      desk.call(
          {.kind = kind, .dtype = dtype, .group = group, .root = members - 1, .each = {129, 1}, .input = ++input});
    }
  }
}

/// A tensor group, a data group and the world, each with a call on its way; nobody waits in the order of the starts.
void keeps_several_groups_at_work(Desk& desk) {
  const auto all = families(desk.world());
  for (int round = 0; round < 12; ++round) {
    for (std::size_t f = 0; f < all.size(); ++f) {
      const RankGroup group = group_of(all[f], desk.rank(), desk.world());
      const Collective kind = kKinds[(f + static_cast<std::size_t>(round)) % 5];
      desk.start({.kind = kind,
                  .dtype = kSummed[static_cast<std::size_t>(round) % 4],
                  .group = group,
                  .each = {500 + round},
                  .input = 100 + 10 * round + static_cast<int>(f)});
    }
    while (desk.in_flight() > 0) desk.finish(static_cast<std::size_t>(desk.rank() + round) % desk.in_flight());
    desk.clear();
  }
}

/// Some ranks have far fewer calls than others: of overlapping groups, and of none.
void leaves_out_those_that_are_no_members(Desk& desk) {
  const int world = desk.world();
  for (int round = 0; round < 40; ++round) {
    const RankGroup first_ones{0, 1, (world + 1) / 2};
    const RankGroup odd_ones{1, 2, world / 2};
    const RankGroup last_two{std::max(world - 2, 0), 1, std::min(world, 2)};
    desk.call(
        {.kind = Collective::all_reduce, .dtype = Dtype::bf16, .group = first_ones, .each = {33}, .input = round});
    if (world > 1 && round % 3 == 0)
      desk.call(
          {.kind = Collective::all_gather, .dtype = Dtype::i32, .group = odd_ones, .each = {20}, .input = 500 + round});
    desk.call(
        {.kind = Collective::broadcast, .dtype = Dtype::i64, .group = last_two, .each = {5}, .input = 900 + round});
    if (round % 10 == 9)
      desk.call({.kind = Collective::reduce_scatter, .dtype = Dtype::f16, .each = {9}, .input = 1300 + round});
  }
}

/// Programs drawn by chance: kinds, types, groups, roots and sizes, up to eight calls in flight, waited for in any
/// order; more calls than tags have numbers for.
void runs_programs_drawn_by_chance(Desk& desk) {
  const int world = desk.world();
  const auto all = families(world);
  Dice shared(world);
  Dice own(1000 + desk.rank());
  for (int op = 0; op < 320; ++op) {
    const std::vector<RankGroup>& family = all[shared.below(all.size())];
    Wish wish{.kind = shared.one_of(kKinds), .group = family[0], .input = 2000 + op};
    wish.dtype = sums(wish.kind) ? shared.one_of(kSummed) : shared.one_of(kTypes);
    const int members = resolved(wish.group, world).count;
    wish.root = static_cast<int>(shared.below(static_cast<std::size_t>(members)));
    for (std::size_t segments = 1 + shared.below(3); segments > 0; --segments)
      wish.each.push_back(static_cast<std::int64_t>(shared.below(4) == 0 ? shared.below(900) : shared.below(20)));
    wish.in_place = shared.below(2) == 0;
    const bool only_one_group = shared.below(4) == 0;  // and the others go on
    const RankGroup chosen = family[shared.below(family.size())];
    wish.group = group_of(family, desk.rank(), world);
    if (only_one_group && wish.group != chosen) continue;
    desk.start(wish);
    while (desk.in_flight() > own.below(8)) desk.finish(own.below(desk.in_flight()));
    if (desk.in_flight() == 0) desk.clear();
  }
  desk.finish_all();
}

}  // namespace

const std::vector<ConformanceCase>& group_cases() {
  const auto with_desk = [](void (*body)(Desk&)) {
    return [body](Communicator& comm, std::span<std::byte> arena, Findings& findings) {
      Desk desk(comm, arena, findings);
      body(desk);
    };
  };
  static const std::vector<ConformanceCase> cases = {
      {"MovesEveryType", with_desk(moves_every_type)},
      {"RoundsEveryNodeOfASum", with_desk(rounds_every_node_of_a_sum)},
      {"SumsLongBuffers", with_desk(sums_long_buffers), true},
      {"WorksInGroupsOfEveryShape", with_desk(works_in_groups_of_every_shape)},
      {"KeepsSeveralGroupsAtWork", with_desk(keeps_several_groups_at_work)},
      {"LeavesOutThoseThatAreNoMembers", with_desk(leaves_out_those_that_are_no_members)},
      {"RunsProgramsDrawnByChance", with_desk(runs_programs_drawn_by_chance)},
  };
  return cases;
}

}  // namespace shard::test
