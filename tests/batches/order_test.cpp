// Does each order of data show what it says, whatever the number of files, the batch and the rank that asks?
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "executor/data/permutation.h"
#include "tests/batches/token_files.h"

namespace shard::test {
namespace {

TEST(Permutation, IsABijectionOfAnySizeForAnySeedAndEpoch) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 1000; ++i) {
    const auto n = static_cast<std::int64_t>(1 + random() % (i % 50 == 0 ? 20'000 : 300));
    const data::Permutation order(random(), random() % 10, n);
    std::vector<bool> seen(static_cast<std::size_t>(n), false);
    for (std::int64_t k = 0; k < n; ++k) {
      const std::int64_t at = order(k);
      ASSERT_TRUE(at >= 0 && at < n && !seen[static_cast<std::size_t>(at)]) << n;
      seen[static_cast<std::size_t>(at)] = true;
    }
  }
}

TEST(Permutation, IsAnotherOneForAnotherSeedOrEpochAndLeavesFewInPlace) {
  constexpr std::int64_t kN = 10'000;
  const data::Permutation first(1, 0, kN), other(2, 0, kN), next(1, 1, kN);
  int in_place = 0, as_other = 0, as_next = 0, ascending = 0;
  for (std::int64_t k = 0; k < kN; ++k) {
    in_place += first(k) == k;
    as_other += first(k) == other(k);
    as_next += first(k) == next(k);
    ascending += k > 0 && first(k) > first(k - 1);
  }
  // One in the mean of each; half of all.
  EXPECT_LT(std::max({in_place, as_other, as_next}), 10);
  EXPECT_NEAR(ascending, kN / 2, 300);
}

/// Files of random lengths, whose tokens are all different: a sequence tells its place.
struct Files {
  Folder folder;
  std::vector<std::int64_t> lengths;
  std::int64_t windows = 0;
  Files(std::mt19937& random, std::int64_t sequence) {
    std::int64_t from = 0;
    for (unsigned f = 0; f < 1 + random() % 4; ++f) {
      const auto length = static_cast<std::int64_t>(sequence + 1 + random() % 200);
      write(folder / ("train_" + std::to_string(f) + ".bin"), bytes_of(counting<std::uint16_t>(length, from)));
      from += length;
      lengths.push_back(length);
      windows += (length - 1) / sequence;
    }
  }
  /// Whether the sequence is one window of one file.
  [[nodiscard]] bool is_window(const std::vector<std::int32_t>& tokens, std::int64_t sequence) const {
    if (tokens != counting<std::int32_t>(sequence + 1, tokens[0])) return false;
    std::int64_t from = 0;
    for (const std::int64_t length : lengths) {
      const std::int64_t at = tokens[0] - from;
      if (at >= 0 && at + sequence < length) return at % sequence == 0;
      from += length;
    }
    return false;
  }
};

TEST(Order, EveryWindowOfEveryEpochIsSeenOnceAndCrossesNoFile) {
  std::mt19937 random(9);
  for (int i = 0; i < 100; ++i) {
    const auto sequence = static_cast<std::int64_t>(1 + random() % 12);
    const Files files(random, sequence);
    for (const DataOrder order : {DataOrder::sequential, DataOrder::shuffled}) {
      const BatchShape shape{.batch = 1, .sequence = sequence, .seed = random(), .order = order};
      const auto source = open_data(files.folder.path(), gpt2_of(2000), shape);
      ASSERT_TRUE(source) << to_string(source.error());
      std::vector<std::vector<std::int32_t>> epochs;
      for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
        std::set<std::int32_t> seen;
        std::vector<std::int32_t> starts;
        for (std::int64_t k = 0; k < files.windows; ++k) {
          const auto got = micro_batch(**source, shape, epoch * files.windows + k);
          ASSERT_TRUE(got);
          EXPECT_TRUE(files.is_window((*got)[0], sequence));
          EXPECT_TRUE(seen.insert((*got)[0][0]).second);
          starts.push_back((*got)[0][0]);
        }
        if (order == DataOrder::sequential) {
          EXPECT_TRUE(std::ranges::is_sorted(starts));
        }
        epochs.push_back(starts);
      }
      if (order == DataOrder::sequential) {
        EXPECT_EQ(epochs[0], epochs[1]);
      } else if (files.windows > 20) {
        EXPECT_NE(epochs[0], epochs[1]);
      }
    }
  }
}

TEST(Order, OfAStepIsTheSameHoweverItIsCutIntoMicroBatches) {
  std::mt19937 random(11);
  const Files files(random, 4);
  for (const DataOrder order : {DataOrder::sequential, DataOrder::shuffled}) {
    std::vector<std::vector<std::int32_t>> first;
    for (const std::int64_t batch : {1, 2, 3, 6}) {
      const BatchShape shape{.batch = batch, .sequence = 4, .seed = 7, .order = order};
      const auto source = open_data(files.folder.path(), gpt2_of(2000), shape);
      ASSERT_TRUE(source);
      std::vector<std::vector<std::int32_t>> all;
      for (std::int64_t number = 0; number < 60 / batch; ++number) {
        const auto got = micro_batch(**source, shape, number);
        ASSERT_TRUE(got);
        all.insert(all.end(), got->begin(), got->end());
      }
      if (first.empty()) first = all;
      EXPECT_EQ(all, first);
    }
  }
}

TEST(Order, AnEndThatIsKeptApartIsSeenByEvaluationsAlone) {
  const Folder folder;
  write(folder / "a.bin", bytes_of(counting<std::uint16_t>(500)));
  write(folder / "b.bin", bytes_of(counting<std::uint16_t>(300, 500)));
  const BatchShape training{.batch = 1, .sequence = 4, .order = DataOrder::shuffled, .end = 0.7};
  const BatchShape validation{.batch = 1, .sequence = 4, .order = DataOrder::sequential, .begin = 0.7};
  const auto a = open_data(folder.path(), gpt2_of(2000), training);
  const auto b = open_data(folder.path(), gpt2_of(2000), validation);
  ASSERT_TRUE(a && b);
  std::set<std::int32_t> trained, evaluated;
  for (std::int64_t k = 0; k < 400; ++k) {
    const auto of_training = micro_batch(**a, training, k);
    const auto of_validation = micro_batch(**b, validation, k);
    ASSERT_TRUE(of_training && of_validation);
    trained.insert((*of_training)[0].begin(), (*of_training)[0].end());
    evaluated.insert((*of_validation)[0].begin(), (*of_validation)[0].end());
  }
  EXPECT_GT(evaluated.size(), 200U);
  for (const std::int32_t t : evaluated) EXPECT_FALSE(trained.contains(t));
}

TEST(Order, RandomDataHasNone) {
  const auto source = open_data("random", gpt2_of(2000), {.order = DataOrder::shuffled});
  ASSERT_FALSE(source);
  EXPECT_EQ(source.error().code, Errc::contradiction);
}

}  // namespace
}  // namespace shard::test
