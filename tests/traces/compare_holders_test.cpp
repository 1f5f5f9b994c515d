// Is what grew between two recordings named, whatever moved in the file?
#include "traces/compare_holders.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "tests/traces/stacks_of.h"

namespace shard {
namespace {

using test::add_stack;
using test::Line;

struct Block {
  std::vector<Line> stack;
  std::int64_t bytes = 0;
};

Trace trace_of(const std::vector<Block>& blocks) {
  Trace trace;
  for (const Block& block : blocks) {
    const auto id = static_cast<std::int32_t>(trace.memory.size());
    trace.memory.push_back({.rank = Rank{0},
                            .buffer = BufferId{id},
                            .delta_bytes = block.bytes,
                            .time_ns = id,
                            .stack = block.stack.empty() ? StackId{} : add_stack(trace, block.stack)});
  }
  return trace;
}

HolderComparison compared_by(const std::vector<Block>& a, const std::vector<Block>& b, HeldBy by = HeldBy::site) {
  const Trace first = trace_of(a), second = trace_of(b);
  const Result<Held> in_a = held_at(first, {.by = by}), in_b = held_at(second, {.by = by});
  EXPECT_TRUE(in_a && in_b);
  return compare_holders(first, *in_a, second, *in_b);
}

const Line kLoop{"/me/train.py", 60, "main"};
const Line kForward{"/me/train.py", 21, "forward"};

TEST(CompareHolders, TheLargestDifferenceIsFirst) {
  const HolderComparison c = compared_by({{{kLoop}, 4096}, {{kForward, kLoop}, 512}, {{}, 1024}},
                                         {{{kLoop}, 4096}, {{kForward, kLoop}, 512}, {{kForward, kLoop}, 2048}});
  ASSERT_EQ(c.holders.size(), 3U);
  EXPECT_EQ(c.holders[0].name, (Pair<std::string>{"train.py:21 forward", "train.py:21 forward"}));
  EXPECT_EQ(c.holders[0].bytes, (Pair<std::int64_t>{512, 2560}));
  EXPECT_EQ(c.holders[0].blocks, (Pair<std::int64_t>{1, 2}));
  EXPECT_EQ(c.holders[1].name, (Pair<std::string>{"(no stack)", ""}));
  EXPECT_EQ(c.holders[2].bytes, (Pair<std::int64_t>{4096, 4096}));
  EXPECT_EQ(to_text(c, 1),
            "held by                   a       b    b - a\n"
            "train.py:21 forward   512 B  2560 B  +2048 B\n"
            "(2 others)           5120 B  4096 B  -1024 B\n");
}

TEST(CompareHolders, ALineThatMovedIsTheSame) {
  Line moved = kForward;
  moved.line = 25;
  const HolderComparison one = compared_by({{{kForward}, 512}}, {{{moved}, 1024}});
  ASSERT_EQ(one.holders.size(), 1U);
  EXPECT_EQ(one.holders[0].bytes, (Pair<std::int64_t>{512, 1024}));
  EXPECT_NE(to_text(one, 5).find("train.py:21 forward (b: train.py:25)"), std::string::npos) << to_text(one, 5);
  // Of several lines nobody knows which one moved where.
  Line other = moved;
  other.line = 30;
  EXPECT_EQ(compared_by({{{kForward}, 512}}, {{{moved}, 1024}, {{other}, 512}}).holders.size(), 3U);
}

TEST(CompareHolders, ByStackCallersTellOneLineApart) {
  const Line other{"/me/eval.py", 7, "main"};
  const HolderComparison c = compared_by({{{kForward, kLoop}, 512}, {{kForward, other}, 512}},
                                         {{{kForward, kLoop}, 512}, {{kForward, other}, 4096}}, HeldBy::stack);
  ASSERT_EQ(c.holders.size(), 2U);
  EXPECT_EQ(c.holders[0].stack, (std::vector<std::string>{"train.py:21 forward", "eval.py:7 main"}));
  EXPECT_NE(to_text(c, 1).find("\n  < eval.py:7 main\n"), std::string::npos) << to_text(c, 1);
  EXPECT_EQ(to_json(c)[0]["stack"][1], "eval.py:7 main");
}

TEST(CompareHolders, DifferencesAddUp) {
  std::mt19937 random(20261129);
  for (int run = 0; run < 200; ++run) {
    const auto draw = [&] {
      std::vector<Block> blocks(1 + random() % 12);
      for (Block& block : blocks) {
        block.bytes = static_cast<std::int64_t>(512 * (1 + random() % 9));
        for (std::uint32_t depth = random() % 4; depth > 0; --depth)
          block.stack.push_back({"/me/f" + std::to_string(random() % 2) + ".py", static_cast<int>(1 + random() % 4),
                                 "g" + std::to_string(random() % 2)});
      }
      return blocks;
    };
    const std::vector<Block> a = draw(), b = draw();
    const auto sum = [](const std::vector<Block>& blocks) {
      std::int64_t bytes = 0;
      for (const Block& block : blocks) bytes += block.bytes;
      return bytes;
    };
    for (const HeldBy by : {HeldBy::site, HeldBy::stack}) {
      Pair<std::int64_t> bytes, blocks;
      for (const HolderPair& pair : compared_by(a, b, by).holders) {
        bytes = {bytes.first + pair.bytes.first, bytes.second + pair.bytes.second};
        blocks = {blocks.first + pair.blocks.first, blocks.second + pair.blocks.second};
      }
      EXPECT_EQ(bytes, (Pair<std::int64_t>{sum(a), sum(b)}));
      EXPECT_EQ(blocks, (Pair<std::int64_t>{static_cast<std::int64_t>(a.size()), static_cast<std::int64_t>(b.size())}));
    }
  }
}

}  // namespace
}  // namespace shard
