// Is every word that outputs are made of explained?
#include "sim/cli/words.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "traces/base/ids.h"

namespace shard::cli {
namespace {

TEST(Words, NamesOfEveryCategoryMemoryPhaseStreamAndCollective) {
  const auto expect = [](const char* name) { EXPECT_NE(find_word(name), nullptr) << name; };
  for (int i = 0; i < kCategoryCount; ++i) expect(to_string(static_cast<Category>(i)));
  for (int i = 0; i < kMemoryCount; ++i) expect(to_string(static_cast<Memory>(i)));
  for (int i = 0; i < kPhaseCount; ++i) expect(to_string(static_cast<Phase>(i)));
  for (int i = 0; i < kStreamCount; ++i) expect(to_string(static_cast<Stream>(i)));
  for (int i = 0; i < kCollectiveCount; ++i) expect(to_string(static_cast<Collective>(i)));
}

TEST(Words, StandInOrderOnceAndFitAScreen) {
  EXPECT_TRUE(std::ranges::is_sorted(known_words(), {}, [](const Word& each) {
    std::string name(each.name);
    std::ranges::replace(name, '_', ' ');
    return name;
  }));
  for (const Word& each : known_words()) {
    EXPECT_EQ(find_word(each.name), &each) << each.name;
    EXPECT_FALSE(each.meaning.ends_with('.')) << each.name;
  }
  const std::string all = words_help();
  for (std::size_t at = 0; at < all.size(); at = all.find('\n', at) + 1) EXPECT_LE(all.find('\n', at) - at, 100u);
}

TEST(Words, AreFoundByOtherSpellings) {
  EXPECT_EQ(find_word("chunk size"), find_word("chunk elements"));
  EXPECT_EQ(find_word("peak (extent)"), find_word("extent"));
  EXPECT_EQ(find_word("Steady-Step"), find_word("steady_step"));
  EXPECT_EQ(find_word("nothing"), nullptr);
}

}  // namespace
}  // namespace shard::cli
