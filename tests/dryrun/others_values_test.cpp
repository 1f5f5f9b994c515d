// Does the host see what other ranks sent, when it looks, and nothing that something else was written over?
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <random>
#include <string>

#include "profiler/standin/absent.h"
#include "profiler/standin/device_memory.h"
#include "profiler/standin/exchange.h"
#include "profiler/standin/expected.h"
#include "profiler/standin/reduce.h"

namespace shard::standin {
namespace {

Bytes bytes_of(const std::vector<std::int64_t>& values) {
  Bytes bytes(values.size() * sizeof(std::int64_t));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

template <class T>
T value_at(const void* device) {
  T value{};
  copy(&value, device, sizeof(value));
  return value;
}

/// A piece of device memory that is given back at the end.
class Piece {
 public:
  explicit Piece(std::size_t bytes) : address_(allocate(bytes)) {}
  Piece(const Piece&) = delete;
  Piece& operator=(const Piece&) = delete;
  ~Piece() { release(address_); }
  [[nodiscard]] char* at(std::size_t offset = 0) const { return static_cast<char*>(address_) + offset; }

 private:
  void* address_;
};

TEST(Promises, AreFetchedOnceAndWhenTheHostLooks) {
  const Piece piece(4096), other(4096);
  int fetched = 0;
  promise(piece.at(), 16, std::make_shared<Source>([&] {
            ++fetched;
            return std::optional(bytes_of({5, 7}));
          }));
  EXPECT_TRUE(is_promised(piece.at(8), 8));
  copy(other.at(64), piece.at(8), 8);  // within device memory: a promise, too
  EXPECT_EQ(fetched, 0);
  EXPECT_EQ(value_at<std::int64_t>(other.at(64)), 7);
  EXPECT_EQ(value_at<std::int64_t>(piece.at()), 5);
  EXPECT_EQ(value_at<std::int64_t>(piece.at(8)), 7);
  EXPECT_EQ(fetched, 1);
  EXPECT_FALSE(is_promised(piece.at(), 16));
}

TEST(Promises, OfEqualRanksThoseThatLieSideBySideAreOne) {
  const Piece piece(4096);
  for (const std::size_t at : {0U, 16U})
    promise(piece.at(at), 8, absent("what is not asked for", bytes_of({static_cast<std::int64_t>(at) + 1})));
  const std::int64_t own = 9;
  copy(piece.at(8), &own, sizeof(own));
  EXPECT_EQ(values_if_equal(piece.at(), 24), bytes_of({1, 9, 17}));
  EXPECT_EQ(values_if_equal(piece.at(8), 16), bytes_of({9, 17}));
  EXPECT_EQ(values_if_equal(piece.at(), 32), std::nullopt) << "nobody knows the end";
  promise(piece.at(16), 8, absent("what is not asked for", std::nullopt));
  EXPECT_EQ(values_if_equal(piece.at(), 24), std::nullopt);
}

TEST(Expected, ANumberIsFoundAndWhatIsAskedOfItHolds) {
  const Piece piece(4096);
  expect(300);
  EXPECT_EQ(value_at<std::int64_t>(piece.at()), 300);
  EXPECT_TRUE(value_at<bool>(piece.at(512)));
  expect(-1);
  EXPECT_FALSE(value_at<bool>(piece.at(512)));
}

TEST(Values, OfWhatTheHostComputesMoreIsKept) {
  std::vector<std::int64_t> long_one(400000, 3), read(long_one.size());
  const std::size_t bytes = long_one.size() * sizeof(std::int64_t);
  const Piece piece(bytes);
  copy(piece.at(), long_one.data(), bytes);
  EXPECT_FALSE(has_values(piece.at(), bytes));
  copy_computed(piece.at(), long_one.data(), bytes);
  copy(read.data(), piece.at(), bytes);
  EXPECT_EQ(read, long_one);
}

TEST(Promises, ACopyOfSeveralWithinDeviceMemoryAsksNobody) {
  const Piece piece(4096), other(4096);
  int fetched = 0;
  for (const std::size_t at : {0U, 8U, 24U})
    promise(piece.at(at), 8, std::make_shared<Source>([&fetched, at] {
              ++fetched;
              return std::optional(bytes_of({static_cast<std::int64_t>(at)}));
            }));
  copy(other.at(512), piece.at(), 32);
  EXPECT_EQ(fetched, 0);
  EXPECT_EQ(value_at<std::int64_t>(other.at(512 + 8)), 8);
  EXPECT_EQ(value_at<std::int64_t>(other.at(512 + 24)), 24);
  EXPECT_EQ(fetched, 2);
}

TEST(Promises, WhatEqualRanksWouldHaveSentIsKnownWithoutAsking) {
  const Piece piece(4096);
  bool asked = false;
  promise(piece.at(), 16,
          std::make_shared<Source>(
              [&] {
                asked = true;
                return std::optional<Bytes>();
              },
              bytes_of({4, 6})));
  EXPECT_EQ(values_if_equal(piece.at(8), 8), bytes_of({6}));
  EXPECT_FALSE(values_if_equal(piece.at(8), 16));
  EXPECT_FALSE(asked);
}

TEST(Promises, EndWhereSomethingElseIsWritten) {
  const auto seven = [] { return std::make_shared<Source>([] { return std::optional(bytes_of({7})); }); };
  const Piece piece(4096);
  const std::int64_t three = 3;
  promise(piece.at(), 8, seven());
  copy(piece.at(), &three, 8);
  EXPECT_EQ(value_at<std::int64_t>(piece.at()), 3);
  promise(piece.at(), 8, seven());
  fill(piece.at(), 0, 8);
  EXPECT_EQ(value_at<std::int64_t>(piece.at()), 0);
  promise(piece.at(), 8, seven());
  written_by_kernel(piece.at(), 1);
  EXPECT_EQ(value_at<std::int64_t>(piece.at()), 0);
  promise(piece.at(), 8, seven());
  forget_values(piece.at(), 4);
  EXPECT_EQ(value_at<std::int64_t>(piece.at()), 0);
}

TEST(Promises, ThatNobodyKeepsAreZeros) {
  const Piece piece(4096);
  promise(piece.at(), 8, std::make_shared<Source>([] { return std::optional<Bytes>(); }));
  EXPECT_EQ(value_at<std::int64_t>(piece.at()), 0);
  EXPECT_FALSE(values_of(piece.at(), 8));
}

TEST(Promises, OfAbsentRanksAreTheRuleWhereNobodyIsAsked) {
  const Piece piece(4096);
  promise(piece.at(), 8, absent("a broadcast from rank 1", bytes_of({9})));
  EXPECT_EQ(value_at<std::int64_t>(piece.at()), 9);
}

TEST(ValuesOf, ObjectsMayHaveAnUnknownEnd) {
  const Piece piece(4096);
  const std::int64_t three = 3;
  copy(piece.at(), &three, 8);
  EXPECT_FALSE(values_of(piece.at(), 16));
  const std::optional<Bytes> begin = values_of(piece.at(), 16, true);
  ASSERT_TRUE(begin);
  EXPECT_EQ(*begin, bytes_of({3, 0}));
  EXPECT_FALSE(values_of(piece.at(512), 16, true));
}

TEST(Reduce, IsThatOfNccl) {
  const std::vector<Bytes> parts{bytes_of({1, -4, 6}), bytes_of({3, 2, 6}), bytes_of({5, 2, 9})};
  constexpr int kInt64 = 4;
  const std::vector<std::vector<std::int64_t>> expected{{9, 0, 21}, {15, -16, 324}, {5, 2, 9}, {1, -4, 6}, {3, 0, 7}};
  for (int operation = 0; operation < 5; ++operation)
    EXPECT_EQ(reduce(parts, kInt64, operation), bytes_of(expected[static_cast<std::size_t>(operation)])) << operation;
  EXPECT_FALSE(reduce(parts, kInt64, 5)) << "an operation that the program made itself";
  EXPECT_FALSE(reduce(parts, 10, 0)) << "8-bit floats";
  EXPECT_FALSE(reduce({bytes_of({1}), bytes_of({1, 2})}, kInt64, 0));
  EXPECT_FALSE(reduce({}, kInt64, 0));
}

TEST(Reduce, OfFloats) {
  const auto of = [](auto... values) {
    const std::array all{values...};
    Bytes bytes(sizeof(all));
    std::memcpy(bytes.data(), all.data(), sizeof(all));
    return bytes;
  };
  EXPECT_EQ(reduce({of(1.5F, 2.0F), of(0.25F, -2.0F)}, 7, 0), of(1.75F, 0.0F));
  EXPECT_EQ(reduce({of(1.0), of(2.0)}, 8, 4), of(1.5));
}

/// Two processes that hand each other messages of random lengths, in any order of reading and writing.
TEST(Exchange, EveryMessageComesOnceWholeAndInOrder) {
  char folder[] = "/tmp/exchange_test.XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  constexpr int kMessages = 300;
  const auto content = [](int rank, int number) {
    std::mt19937 random(static_cast<unsigned>(1000 * rank + number));
    Bytes bytes(random() % 5000);
    for (std::byte& each : bytes) each = static_cast<std::byte>(random());
    return bytes;
  };
  const auto play = [&](int rank) {
    ::setenv("SHARDSCOPE_STANDIN_RANKS", folder, 1);
    ::setenv("RANK", std::to_string(rank).c_str(), 1);
    ::setenv("WORLD_SIZE", "2", 1);
    std::mt19937 random(static_cast<unsigned>(rank));
    int posted = 0, read = 0;
    while (posted < kMessages || read < kMessages) {
      // Whoever reads waits: it may not have written less than the other reads of it.
      if (posted < kMessages && (posted <= read || random() % 2 == 0)) {
        post("box" + std::to_string(rank), {.kind = posted, .known = 1, .values = content(rank, posted)});
        ++posted;
      } else {
        const std::optional<Message> message =
            fetch("box" + std::to_string(1 - rank), static_cast<std::uint64_t>(read));
        if (!message || message->kind != read || message->values != content(1 - rank, read)) return 1;
        ++read;
      }
    }
    return fetch("box" + std::to_string(1 - rank), 7)->values == content(1 - rank, 7) ? 0 : 2;
  };
  pid_t ranks[2];
  for (int rank = 0; rank < 2; ++rank)
    if ((ranks[rank] = ::fork()) == 0) ::_exit(play(rank));
  for (const pid_t rank : ranks) {
    int status = -1;
    ASSERT_EQ(::waitpid(rank, &status, 0), rank);
    EXPECT_EQ(status, 0);
  }
  std::filesystem::remove_all(folder);
}

TEST(Exchange, OfARankThatHasEndedNothingIsWaitedFor) {
  char folder[] = "/tmp/exchange_test.XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("SHARDSCOPE_STANDIN_RANKS", folder, 1);
    ::setenv("RANK", "1", 1);
    ::setenv("WORLD_SIZE", "2", 1);
    post("box1", {.kind = 1, .known = 0, .values = {}});
    std::ofstream(std::filesystem::path(folder) / (std::string(kEndedPrefix) + "1"));
    std::ofstream(std::filesystem::path(folder) / (std::string(kEndedPrefix) + "0"));
    ::setenv("RANK", "0", 1);
    const bool right = fetch("box1", 0).has_value() && !fetch("box1", 1) && !fetch("never", 0);
    ::_exit(right ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace shard::standin
