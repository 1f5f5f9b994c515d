// How far are the laws of kernels from what others measured, and do they behave as time does?
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <map>
#include <random>
#include <sstream>

#include "sim/cluster/read_cluster.h"
#include "sim/cost/laws/attention.h"
#include "sim/cost/laws/exchange.h"
#include "sim/cost/laws/moved.h"
#include "sim/cost/laws/product.h"
#include "tests/cost/law_bounds.h"

namespace shard::cost {
namespace {

using cluster::AttentionKernel;
using cluster::Cluster;

Cluster gpu(const std::string& name) {
  // Not among the examples: an A100 of 300 W, whose clocks go with the cube root of the power.
  const bool pcie = name == "a100-80gb-pcie";
  Result<Cluster> c = cluster::read_cluster(pcie ? "a100-80gb-x8" : name);
  EXPECT_TRUE(c) << name;
  if (pcie) {
    c->memory_bandwidth = BytesPerSecond{1935e9};
    c->kernel_laws->clock_share = std::cbrt(300.0 / 400);
  }
  return *std::move(c);
}

template <typename... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream s;
  (s << ... << parts);
  return s.str();
}

using Row = std::vector<std::string>;

/// Without the comments and the names of the columns.
std::vector<Row> rows(const std::string& name) {
  std::ifstream file(std::string(TEST_DATA) + "/cost/data/" + name);
  std::vector<Row> list;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#') || line.starts_with("card,")) continue;
    Row row;
    std::stringstream cells(line);
    for (std::string cell; std::getline(cells, cell, ',');) row.push_back(cell);
    list.push_back(std::move(row));
  }
  return list;
}

/// Collections that ran each kernel for so long that the card sat at its power limit.
bool sustained(const Row& row) {
  return (row[0] == "b200-180gb-x8" && row[1] == "trtllm/1.3.0rc15") ||
         (row[0] == "gb200-186gb-x4" && row[1] == "trtllm/1.3.0rc17");
}

AttentionKernel kernel_of(const std::string& name) {
  return name == "newest" ? AttentionKernel::newest : AttentionKernel::flash_2;
}

Collective collective_of(const std::string& name) {
  if (name == "all_reduce") return Collective::all_reduce;
  return name == "all_gather" ? Collective::all_gather : Collective::reduce_scatter;
}

struct Group {
  std::string law, card, collection, kind;
  auto operator<=>(const Group&) const = default;
};
using Errors = std::map<Group, std::vector<double>>;

class Cards {
 public:
  const Cluster& operator[](const std::string& name) {
    const auto found = cards_.find(name);
    return found == cards_.end() ? cards_.emplace(name, gpu(name)).first->second : found->second;
  }

 private:
  std::map<std::string, Cluster> cards_;
};

void add(Errors& errors, Group group, Seconds predicted, const std::string& microseconds) {
  const double measured = std::stod(microseconds) * 1e-6;
  errors[std::move(group)].push_back(100 * std::abs(predicted.count() - measured) / measured);
}

void add_products(Errors& errors, Cards& cards) {
  for (const Row& r : rows("products.csv")) {
    const Cluster& card = cards[r[0]];
    const ProductShape shape{.m = std::stoll(r[3]),
                             .n = std::stoll(r[4]),
                             .k = std::stoll(r[5]),
                             .result_bytes = r[2] == "weight_gradient" ? 4.0 : 2.0};
    const bool hot = sustained(r);
    const cluster::ProductLaw& law = hot ? card.kernel_laws->sustained() : card.kernel_laws->product;
    add(errors, {"product", r[0], r[1], r[2] + (hot ? ", sustained" : "")}, product_time(shape, law, card), r[6]);
  }
}

void add_attention(Errors& errors, Cards& cards) {
  for (const Row& r : rows("attention.csv")) {
    const AttentionShape shape{.batch = std::stoll(r[6]),
                               .heads = std::stoll(r[7]),
                               .queries = std::stoll(r[8]),
                               .keys = std::stoll(r[8]),
                               .head_size = std::stoll(r[9]),
                               .causal = r[5] == "1",
                               .backward = r[4] == "backward"};
    add(errors, {"attention", r[0], r[1], text(r[4], " ", r[2], ", ", r[3])},
        attention_time(shape, kernel_of(r[3]), cards[r[0]]), r[10]);
  }
}

void add_exchanges(Errors& errors, Cards& cards) {
  for (const Row& r : rows("exchanges.csv"))
    add(errors, {"exchange", r[0], r[1], text(r[2], " ", r[3])},
        exchange_time(collective_of(r[2]), std::stod(r[4]), {.ranks = std::stoll(r[3])}, cards[r[0]]), r[5]);
}

const Errors& all_errors() {
  static const Errors errors = [] {
    Errors e;
    Cards cards;
    add_products(e, cards);
    add_attention(e, cards);
    add_exchanges(e, cards);
    for (auto& [group, list] : e) std::ranges::sort(list);
    return e;
  }();
  return errors;
}

/// Of sorted values: the least that so large a share of them does not exceed.
double quantile(const std::vector<double>& sorted, double share) {
  const auto count = static_cast<double>(sorted.size());
  return sorted[static_cast<std::size_t>(std::max(0.0, std::ceil(count * share) - 1))];
}

const Bound* bound_of(const Group& g) {
  for (const Bound& b : kBounds)
    if (g == Group{b.law, b.card, b.collection, b.kind}) return &b;
  return nullptr;
}

TEST(LawErrors, Table) {
  std::cout << "law|card|collection|kind|rows|median %|90th percentile %|over 25 %\n";
  for (const auto& [g, list] : all_errors())
    std::cout << g.law << '|' << g.card << '|' << g.collection << '|' << g.kind << '|' << list.size() << '|'
              << std::fixed << std::setprecision(1) << quantile(list, 0.5) << '|' << quantile(list, 0.9)
              << (quantile(list, 0.5) > 25 ? "|bad\n" : "|\n");
  EXPECT_FALSE(all_errors().empty());
}

TEST(LawErrors, StayWithinTheirBounds) {
  for (const auto& [g, list] : all_errors()) {
    SCOPED_TRACE(text(g.law, ", ", g.card, ", ", g.collection, ", ", g.kind));
    const Bound* bound = bound_of(g);
    if (!bound) {
      ADD_FAILURE() << "rows without a bound: add what LawErrors.Table prints, rounded up, to law_bounds.h";
      continue;
    }
    EXPECT_LE(quantile(list, 0.5), bound->median);
    EXPECT_LE(quantile(list, 0.9), bound->ninetieth);
  }
}

TEST(LawErrors, EveryBoundHasRows) {
  for (const Bound& b : kBounds)
    EXPECT_TRUE(all_errors().contains({b.law, b.card, b.collection, b.kind}))
        << b.law << ", " << b.card << ", " << b.collection << ", " << b.kind;
}

class Drawn {
 public:
  explicit Drawn(unsigned seed) : engine_(seed) {}
  std::int64_t to(std::int64_t most) { return std::uniform_int_distribution<std::int64_t>(1, most)(engine_); }

 private:
  std::mt19937 engine_;
};

constexpr int kDraws = 2000;
const std::vector<std::string> kCards{"a100-80gb-x8",   "h100-80gb-x8", "h200-141gb-x8",  "b200-180gb-x8",
                                      "gb200-186gb-x4", "l40s-48gb-x8", "gb300-279gb-x4", "v100-32gb-x8"};

/// What rounding of sums may make shorter.
constexpr double kRounding = 1 - 1e-12;

double peak_of(const Cluster& card) {
  return (card.peak_bf16 ? *card.peak_bf16 : *card.peak_fp16).count() * card.kernel_laws->clock_share;
}

TEST(ProductLaw, GrowsWithRowsAndColumnsAndWithTwiceTheDepth) {
  Cards cards;
  Drawn drawn(1);
  for (int i = 0; i < kDraws; ++i) {
    const Cluster& card = cards[kCards[static_cast<std::size_t>(i) % kCards.size()]];
    const ProductShape s{.m = drawn.to(8192), .n = drawn.to(8192), .k = drawn.to(8192)};
    const auto time = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
      return product_time({.m = m, .n = n, .k = k}, card.kernel_laws->product, card).count();
    };
    const double t = time(s.m, s.n, s.k) * kRounding;
    SCOPED_TRACE(text(card.name, " ", s.m, " x ", s.n, " x ", s.k));
    EXPECT_GE(time(s.m + drawn.to(512), s.n, s.k), t);
    EXPECT_GE(time(s.m, s.n + drawn.to(512), s.k), t);
    EXPECT_GE(time(s.m, s.n, 2 * s.k), t);
    EXPECT_GE(time(2 * s.m, 2 * s.n, 2 * s.k), t);
  }
}

TEST(ProductLaw, IsNeverFasterThanTheCard) {
  Cards cards;
  Drawn drawn(2);
  for (int i = 0; i < kDraws; ++i) {
    const Cluster& card = cards[kCards[static_cast<std::size_t>(i) % kCards.size()]];
    const ProductShape s{.m = drawn.to(20000), .n = drawn.to(20000), .k = drawn.to(20000)};
    const auto m = static_cast<double>(s.m), n = static_cast<double>(s.n), k = static_cast<double>(s.k);
    for (const cluster::ProductLaw& law : {card.kernel_laws->product, card.kernel_laws->sustained()}) {
      const double t = product_time(s, law, card).count();
      EXPECT_GE(t, kRounding * 2 * m * n * k / (peak_of(card) * law.peak_share)) << card.name;
      EXPECT_GE(t, kRounding * 2 * (m * k + k * n + m * n) / card.memory_bandwidth.count()) << card.name;
    }
  }
}

TEST(AttentionLaw, GrowsAndIsNeverFasterThanTheCard) {
  Cards cards;
  Drawn drawn(3);
  for (int i = 0; i < kDraws; ++i) {
    const Cluster& card = cards[kCards[static_cast<std::size_t>(i) % kCards.size()]];
    const std::int64_t queries = drawn.to(16384);
    const AttentionShape s{.batch = drawn.to(16),
                           .heads = drawn.to(64),
                           .queries = queries,
                           .keys = queries,
                           .head_size = 32 * drawn.to(8),
                           .causal = drawn.to(2) == 1,
                           .backward = drawn.to(2) == 1};
    const auto time = [&](const AttentionShape& shape) {
      return attention_time(shape, AttentionKernel::flash_2, card).count();
    };
    const double t = time(s);
    SCOPED_TRACE(text(card.name, " ", s.batch, " x ", s.heads, " x ", s.queries, " x ", s.head_size));
    AttentionShape more = s;
    more.batch += drawn.to(16);
    EXPECT_GE(time(more), t * kRounding);
    more = s, more.queries = more.keys = 2 * s.queries;
    EXPECT_GE(time(more), t * kRounding);
    more = s, more.causal = false;
    EXPECT_GE(time(more), t * kRounding);
    more = s, more.backward = true;
    EXPECT_GE(time(more), t * kRounding);
    const double flops = 4.0 * static_cast<double>(s.batch * s.heads * s.head_size) * static_cast<double>(queries) *
                         static_cast<double>(queries) * (s.causal ? 0.5 : 1);
    EXPECT_GE(t, flops / peak_of(card));
  }
}

TEST(MovedLaw, IsNeverFasterThanMemoryAndReductionsAreSlower) {
  for (const std::string& name : kCards) {
    const Cluster card = gpu(name);
    for (double bytes = 1; bytes < 1e11; bytes *= 7) {
      EXPECT_GT(moved_time(7 * bytes, card), moved_time(bytes, card)) << name;
      EXPECT_GE(moved_time(bytes, card, true), moved_time(bytes, card)) << name;
      EXPECT_GE(moved_time(bytes, card).count(), bytes / card.memory_bandwidth.count()) << name;
    }
  }
}

TEST(ExchangeLaw, OfOneRankCostsNothing) {
  for (const std::string& name : kCards)
    for (const Collective kind : {Collective::all_gather, Collective::reduce_scatter, Collective::all_reduce})
      EXPECT_EQ(exchange_time(kind, 1e9, {.ranks = 1}, gpu(name)).count(), 0) << name;
}

TEST(ExchangeLaw, GrowsWithBytesAndRanks) {
  Cards cards;
  Drawn drawn(4);
  for (int i = 0; i < kDraws; ++i) {
    const Cluster& card = cards[kCards[static_cast<std::size_t>(i) % kCards.size()]];
    const Members members{.ranks = std::int64_t{4} << (drawn.to(9) - 1)};
    const Members twice{.ranks = 2 * members.ranks};
    // Between hosts the data sheet's link is the limit, inside of one what NCCL was measured to reach, which is less.
    const bool leaves_the_host = members.ranks <= card.devices_per_host && twice.ranks > card.devices_per_host;
    const double least = leaves_the_host ? 0.97 : kRounding;
    const auto bytes = static_cast<double>(drawn.to(std::int64_t{1} << 32));
    for (const Collective kind : {Collective::all_gather, Collective::reduce_scatter, Collective::all_reduce}) {
      SCOPED_TRACE(text(card.name, " ", to_string(kind), " of ", bytes, " bytes, ", members.ranks, " ranks"));
      const Seconds t = exchange_time(kind, bytes, members, card);
      EXPECT_GT(exchange_time(kind, 2 * bytes, members, card), t);
      EXPECT_GE(exchange_time(kind, bytes, twice, card).count(), least * t.count());
    }
  }
}

/// Between many hosts a small all-reduce takes a tree and is faster than the ring of an all-gather.
TEST(ExchangeLaw, AnAllReduceTakesAtLeastAsLongAsAnAllGatherInsideOfAHost) {
  for (const std::string& name : kCards) {
    const Cluster card = gpu(name);
    for (std::int64_t ranks = 2; ranks <= card.devices_per_host; ++ranks)
      for (double bytes = 1; bytes < 1e11; bytes *= 3)
        EXPECT_GE(exchange_time(Collective::all_reduce, bytes, {.ranks = ranks}, card),
                  exchange_time(Collective::all_gather, bytes, {.ranks = ranks}, card))
            << name << ", " << ranks << " ranks, " << bytes;
  }
}

}  // namespace
}  // namespace shard::cost
