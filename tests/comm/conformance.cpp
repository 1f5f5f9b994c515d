// The cases: words of the contract in, bits out. Inputs are functions of (rank, index), so each rank knows all answers.
#include "tests/comm/conformance.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <deque>

#include "sim/target/comm_workspace.h"
#include "tests/comm/reference.h"

namespace shard::test {
namespace {

/// One rank's desk: buffers taken from the arena one after another, calls, and comparisons bit by bit.
class Desk {
 public:
  Desk(Communicator& comm, std::span<std::byte> arena, Findings& findings)
      : comm_(comm), arena_(arena), findings_(findings), before_(comm.totals()) {}

  [[nodiscard]] int world() const { return comm_.size(); }
  [[nodiscard]] int rank() const { return comm_.rank().value; }
  [[nodiscard]] Communicator& comm() { return comm_; }

  /// Bytes offset of a new buffer of `elems` floats, at the next multiple of 64 plus `skew` bytes.
  std::int64_t take(std::int64_t elems, std::int64_t skew = 0) {
    top_ = (top_ + 63) / 64 * 64 + skew;
    const std::int64_t offset = top_;
    top_ += elems * 4;
    if (top_ > static_cast<std::int64_t>(arena_.size())) findings_.push_back("the test's arena is too small");
    return offset;
  }
  [[nodiscard]] float* at(std::int64_t offset) { return reinterpret_cast<float*>(arena_.data() + offset); }

  /// buffer[i] = this rank's value for index first + i.
  void fill(std::int64_t offset, std::int64_t elems, Values values, int input, std::int64_t first = 0) {
    for (std::int64_t i = 0; i < elems; ++i) at(offset)[i] = value_of(values, rank(), first + i, input);
  }
  void clear(std::int64_t offset, std::int64_t elems) { std::fill_n(at(offset), elems, -12345.0F); }

  Ticket start(Collective kind, std::vector<CommSegment> segments, Rank root = Rank{0}) {
    CollectiveRequest request{.op = OpId{next_op_++}, .kind = kind, .segments = segments, .root = root};
    Elems largest{0};
    for (const CommSegment& segment : segments) largest = std::max(largest, segment.elems);
    request.workspace = comm_workspace_bytes(kind, bytes_of(Dtype::f32, largest), world());
    if (comm_.needs_workspace()) request.workspace_offset = take(request.workspace.count() / 4);
    const Result<Ticket> ticket = comm_.start(request);
    if (!ticket) {
      findings_.push_back("start: " + to_string(ticket.error()));
      return Ticket{};
    }
    return *ticket;
  }
  void wait(Ticket ticket) {
    if (const Result<void> done = comm_.wait(ticket); !done) findings_.push_back("wait: " + to_string(done.error()));
  }
  void call(Collective kind, std::vector<CommSegment> segments, Rank root = Rank{0}) {
    wait(start(kind, std::move(segments), root));
  }

  /// Reports the first element that is not bitwise expected(i).
  template <class Expected>
  void expect(const std::string& what, std::int64_t offset, std::int64_t elems, Expected expected) {
    for (std::int64_t i = 0; i < elems; ++i) {
      const float want = expected(i);
      const float got = at(offset)[i];
      if (std::bit_cast<std::uint32_t>(want) == std::bit_cast<std::uint32_t>(got)) continue;
      findings_.push_back(what + ": element " + std::to_string(i) + " of " + std::to_string(elems) + " is " +
                          std::to_string(got) + ", not " + std::to_string(want));
      return;
    }
  }
  void expect_count(Collective kind, std::int64_t calls, std::int64_t bytes) {
    const CollectiveCount now = comm_.totals()[kind];
    const CollectiveCount then = before_[kind];
    if (now.calls - then.calls == calls && (now.bytes - then.bytes).count() == bytes) return;
    findings_.push_back(std::string(to_string(kind)) + ": counted " + std::to_string(now.calls - then.calls) +
                        " calls and " + std::to_string((now.bytes - then.bytes).count()) + " bytes, not " +
                        std::to_string(calls) + " and " + std::to_string(bytes));
  }
  void expect_true(bool holds, const std::string& what) {
    if (!holds) findings_.push_back(what);
  }

 private:
  Communicator& comm_;
  std::span<std::byte> arena_;
  Findings& findings_;
  CollectiveTotals before_;
  std::int64_t top_ = 0;
  std::int32_t next_op_ = 0;
};

/// Elements per rank: one, odd, unaligned parts, and more than the tiles a message transport keeps in flight.
constexpr std::int64_t kSizes[] = {1, 7, 129, 4096, 150'001};

void gathers_every_shard(Desk& desk) {
  for (const std::int64_t size : kSizes) {
    const std::int64_t elems = size * desk.world();
    const std::int64_t shard = desk.take(size, 4);
    const std::int64_t full = desk.take(elems, 8);
    desk.fill(shard, size, Values::random, 1);
    desk.clear(full, elems);
    desk.call(Collective::all_gather, {{shard, full, Elems{elems}}});
    desk.expect("full", full, elems,
                [&](std::int64_t i) { return value_of(Values::random, static_cast<int>(i / size), i % size, 1); });
    desk.expect("shard is untouched", shard, size,
                [&](std::int64_t i) { return value_of(Values::random, desk.rank(), i, 1); });
    if (desk.world() > 4) return;  // the arena; the largest size is covered by the smaller worlds
  }
}

void gathers_in_place(Desk& desk) {
  const std::int64_t size = 1021;
  const std::int64_t elems = size * desk.world();
  const std::int64_t full = desk.take(elems);
  desk.clear(full, elems);
  const std::int64_t shard = full + desk.rank() * size * 4;
  desk.fill(shard, size, Values::random, 2);
  desk.call(Collective::all_gather, {{shard, full, Elems{elems}}});
  desk.expect("full", full, elems,
              [&](std::int64_t i) { return value_of(Values::random, static_cast<int>(i / size), i % size, 2); });
}

void reduce_scatter_of(Desk& desk, Values values, std::int64_t size, bool in_place) {
  const std::int64_t elems = size * desk.world();
  const std::int64_t full = desk.take(elems, 4);
  const std::int64_t first = desk.rank() * size;
  const std::int64_t shard = in_place ? full + first * 4 : desk.take(size, 12);
  desk.fill(full, elems, values, 3);
  desk.call(Collective::reduce_scatter, {{shard, full, Elems{elems}}});
  desk.expect("shard", shard, size, [&](std::int64_t i) { return sum_of(values, desk.world(), first + i, 3); });
  if (in_place) return;
  desk.expect("full keeps its values", full, elems,
              [&](std::int64_t i) { return value_of(values, desk.rank(), i, 3); });
}

void scatters_exact_sums(Desk& desk) {
  reduce_scatter_of(desk, Values::exact, 1000, false);
}
void scatters_tree_sums(Desk& desk) {
  for (const std::int64_t size : kSizes)
    if (size < 100'000 || desk.world() <= 4) reduce_scatter_of(desk, Values::random, size, false);
}
void scatters_in_place(Desk& desk) {
  reduce_scatter_of(desk, Values::random, 1021, true);
}

void all_reduce_of(Desk& desk, Values values, std::int64_t elems) {
  const std::int64_t full = desk.take(elems, 4);
  desk.fill(full, elems, values, 4);
  desk.call(Collective::all_reduce, {{0, full, Elems{elems}}});
  desk.expect("full", full, elems, [&](std::int64_t i) { return sum_of(values, desk.world(), i, 4); });
}

void all_reduces_exact_sums(Desk& desk) {
  all_reduce_of(desk, Values::exact, 1000);
}
void all_reduces_tree_sums(Desk& desk) {
  for (const std::int64_t elems : {1, 2, 15, 17, 1000, 65'537, 300'011}) all_reduce_of(desk, Values::random, elems);
}

void broadcasts_from_every_root(Desk& desk) {
  for (int root = 0; root < desk.world(); ++root) {
    const std::int64_t elems = 20'011;
    const std::int64_t full = desk.take(elems);
    desk.fill(full, elems, Values::random, 5 + root);
    desk.call(Collective::broadcast, {{0, full, Elems{elems}}}, Rank{root});
    desk.expect("full", full, elems, [&](std::int64_t i) { return value_of(Values::random, root, i, 5 + root); });
  }
}

void reduces_to_every_root(Desk& desk) {
  for (int root = 0; root < desk.world(); ++root) {
    const std::int64_t elems = 20'011;
    const std::int64_t full = desk.take(elems);
    desk.fill(full, elems, Values::random, 6 + root);
    desk.call(Collective::reduce, {{0, full, Elems{elems}}}, Rank{root});
    if (desk.rank() == root)
      desk.expect("full", full, elems,
                  [&](std::int64_t i) { return sum_of(Values::random, desk.world(), i, 6 + root); });
  }
}

/// A buffer cut into segments gives the bits of the whole, in one call; arenas need not agree on offsets.
void groups_segments(Desk& desk) {
  const std::vector<std::int64_t> sizes = {3, 0, 1000, 17, 70'000};
  for (const Collective kind : {Collective::reduce_scatter, Collective::all_gather, Collective::all_reduce}) {
    std::vector<CommSegment> segments;
    std::int64_t total = 0;
    for (const std::int64_t size : sizes) {
      desk.take(desk.rank() * 5 + 1);  // offsets differ between ranks
      CommSegment segment{desk.take(size), desk.take(size * desk.world()), Elems{size * desk.world()}};
      desk.fill(segment.full_offset, segment.elems.count(), Values::random, 7, total);
      if (kind == Collective::all_gather) desk.fill(segment.shard_offset, size, Values::random, 7, total);
      segments.push_back(segment);
      total += size * desk.world();
    }
    desk.call(kind, segments);
    desk.expect_count(kind, 1, total * 4);
    std::int64_t first = 0;
    for (std::size_t s = 0; s < sizes.size(); ++s) {
      const std::int64_t size = sizes[s];
      const auto sum = [&](std::int64_t i) { return sum_of(Values::random, desk.world(), first + i, 7); };
      if (kind == Collective::reduce_scatter)
        desk.expect("shard", segments[s].shard_offset, size,
                    [&](std::int64_t i) { return sum(desk.rank() * size + i); });
      if (kind == Collective::all_reduce) desk.expect("full", segments[s].full_offset, size * desk.world(), sum);
      if (kind == Collective::all_gather)
        desk.expect("full", segments[s].full_offset, size * desk.world(), [&](std::int64_t i) {
          return value_of(Values::random, static_cast<int>(i / size), first + i % size, 7);
        });
      first += size * desk.world();
    }
  }
}

/// Calls of all kinds in flight together, asked for newest first; again and again, so that slots are used again.
void keeps_several_in_flight(Desk& desk) {
  const std::int64_t size = 3001;
  const std::int64_t elems = size * desk.world();
  const std::int64_t shard = desk.take(size);
  const std::int64_t gathered = desk.take(elems);
  const std::int64_t gradients = desk.take(elems);
  const std::int64_t own_sum = desk.take(size);
  const std::int64_t all_sum = desk.take(elems);
  const std::int64_t cast = desk.take(elems);
  for (int round = 0; round < 10; ++round) {
    desk.fill(shard, size, Values::random, round);
    desk.fill(gradients, elems, Values::random, 100 + round);
    desk.fill(all_sum, elems, Values::random, 200 + round);
    desk.fill(cast, elems, Values::random, 300 + round);
    const Rank root{round % desk.world()};
    std::deque<Ticket> tickets;
    tickets.push_front(desk.start(Collective::all_gather, {{shard, gathered, Elems{elems}}}));
    tickets.push_front(desk.start(Collective::reduce_scatter, {{own_sum, gradients, Elems{elems}}}));
    tickets.push_front(desk.start(Collective::broadcast, {{0, cast, Elems{elems}}}, root));
    tickets.push_front(desk.start(Collective::all_reduce, {{0, all_sum, Elems{elems}}}));
    for (const Ticket ticket : tickets) desk.wait(ticket);
    desk.expect("gathered", gathered, elems,
                [&](std::int64_t i) { return value_of(Values::random, static_cast<int>(i / size), i % size, round); });
    desk.expect("own sum", own_sum, size, [&](std::int64_t i) {
      return sum_of(Values::random, desk.world(), desk.rank() * size + i, 100 + round);
    });
    desk.expect("sum", all_sum, elems,
                [&](std::int64_t i) { return sum_of(Values::random, desk.world(), i, 200 + round); });
    desk.expect("broadcast", cast, elems,
                [&](std::int64_t i) { return value_of(Values::random, root.value, i, 300 + round); });
  }
}

/// As soon as a call is complete its buffers may be written: a late reader would see the next round's values.
void gives_buffers_back(Desk& desk) {
  const std::int64_t size = 20'000;
  const std::int64_t elems = size * desk.world();
  const std::int64_t shard = desk.take(size);
  const std::int64_t full = desk.take(elems);
  for (int round = 0; round < 8; ++round) {
    desk.fill(shard, size, Values::exact, round);
    desk.call(Collective::all_gather, {{shard, full, Elems{elems}}});
    desk.clear(shard, size);
    desk.expect("gathered", full, elems,
                [&](std::int64_t i) { return value_of(Values::exact, static_cast<int>(i / size), i % size, round); });
    desk.fill(full, elems, Values::exact, 50 + round);
    desk.call(Collective::reduce_scatter, {{shard, full, Elems{elems}}});
    desk.clear(full, elems);
    desk.expect("own sum", shard, size, [&](std::int64_t i) {
      return sum_of(Values::exact, desk.world(), desk.rank() * size + i, 50 + round);
    });
  }
}

void counts_calls_and_bytes(Desk& desk) {
  const std::int64_t elems = 16 * desk.world();
  const std::int64_t shard = desk.take(16);
  const std::int64_t full = desk.take(elems);
  desk.clear(shard, 16);
  desk.clear(full, elems);
  for (int i = 0; i < 3; ++i) desk.call(Collective::all_gather, {{shard, full, Elems{elems}}});
  desk.call(Collective::reduce_scatter, {{shard, full, Elems{elems}}});
  desk.call(Collective::all_reduce, {{0, full, Elems{5}}});
  desk.expect_count(Collective::all_gather, 3, 3 * elems * 4);
  desk.expect_count(Collective::reduce_scatter, 1, elems * 4);
  desk.expect_count(Collective::all_reduce, 1, 5 * 4);
  desk.expect_count(Collective::broadcast, 0, 0);
  desk.expect_count(Collective::reduce, 0, 0);
}

void completes_empty_calls(Desk& desk) {
  for (const Collective kind : {Collective::all_gather, Collective::reduce_scatter, Collective::all_reduce,
                                Collective::broadcast, Collective::reduce}) {
    desk.call(kind, {});
    desk.call(kind, {{0, 0, Elems{0}}});
    desk.expect_count(kind, 2, 0);
  }
}

/// Ranks but the first come after a moment that all know, and the call's data moves no sooner.
void waiting_is_not_moving(Desk& desk) {
  using Clock = std::chrono::steady_clock;  // one clock for all ranks of a host
  const std::int64_t elems = 4096 * desk.world();
  const std::int64_t shard = desk.take(4096);
  const std::int64_t full = desk.take(elems);
  for (const Collective kind : {Collective::reduce_scatter, Collective::all_reduce, Collective::all_gather}) {
    const auto late = (Clock::now() + std::chrono::milliseconds{2}).time_since_epoch().count();
    const Result<std::vector<std::string>> texts = desk.comm().exchange(std::to_string(late));
    desk.expect_true(texts.has_value(), "exchange");
    if (!texts) return;
    const Clock::time_point agreed{Clock::duration{std::stoll(texts->front())}};
    Backoff backoff;
    while (desk.rank() != 0 && Clock::now() < agreed) backoff.pause();
    const Clock::time_point begin = Clock::now();
    const Ticket ticket = desk.start(kind, {{shard, full, Elems{elems}}});
    desk.wait(ticket);
    const Clock::time_point end = Clock::now();
    const std::chrono::nanoseconds moving = desk.comm().moving_time(ticket);
    desk.expect_true(moving.count() >= 0 && moving <= end - begin, "moving is part of the call");
    // A sum needs everybody; with messages the poll that finds the first of it counts whole.
    const bool needs_all = kind != Collective::all_gather && !desk.comm().needs_workspace() && desk.world() > 1;
    if (needs_all) desk.expect_true(moving <= end - agreed, "nothing moves before the others have come");
  }
}

void exchanges_texts(Desk& desk) {
  for (int round = 0; round < 5; ++round) {
    const auto text_of = [&](int rank) {
      return std::string(static_cast<std::size_t>(rank * 7001 + round), static_cast<char>('a' + rank));
    };
    const Result<std::vector<std::string>> texts = desk.comm().exchange(text_of(desk.rank()));
    desk.expect_true(texts.has_value(), texts ? "" : to_string(texts.error()));
    if (!texts) return;
    desk.expect_true(static_cast<int>(texts->size()) == desk.world(), "one text per rank");
    for (int rank = 0; rank < desk.world(); ++rank)
      desk.expect_true((*texts)[static_cast<std::size_t>(rank)] == text_of(rank),
                       "text of rank " + std::to_string(rank));
  }
}

}  // namespace

const std::vector<ConformanceCase>& conformance_cases() {
  const auto with_desk = [](void (*body)(Desk&)) {
    return [body](Communicator& comm, std::span<std::byte> arena, Findings& findings) {
      Desk desk(comm, arena, findings);
      body(desk);
    };
  };
  static const std::vector<ConformanceCase> of_the_world = {
      {"GathersEveryShard", with_desk(gathers_every_shard), true},
      {"GathersInPlace", with_desk(gathers_in_place)},
      {"ScattersExactSums", with_desk(scatters_exact_sums)},
      {"ScattersTreeSums", with_desk(scatters_tree_sums), true},
      {"ScattersInPlace", with_desk(scatters_in_place)},
      {"AllReducesExactSums", with_desk(all_reduces_exact_sums)},
      {"AllReducesTreeSums", with_desk(all_reduces_tree_sums), true},
      {"BroadcastsFromEveryRoot", with_desk(broadcasts_from_every_root)},
      {"ReducesToEveryRoot", with_desk(reduces_to_every_root)},
      {"GroupsSegments", with_desk(groups_segments), true},
      {"KeepsSeveralInFlight", with_desk(keeps_several_in_flight)},
      {"GivesBuffersBack", with_desk(gives_buffers_back)},
      {"CountsCallsAndBytes", with_desk(counts_calls_and_bytes)},
      {"CompletesEmptyCalls", with_desk(completes_empty_calls)},
      {"ExchangesTexts", with_desk(exchanges_texts)},
      {"WaitingIsNotMoving", with_desk(waiting_is_not_moving)},
  };
  static const std::vector<ConformanceCase> all = [] {
    std::vector<ConformanceCase> cases = of_the_world;
    cases.insert(cases.end(), group_cases().begin(), group_cases().end());
    return cases;
  }();
  return all;
}

}  // namespace shard::test
