// Is the closest name what a reader would have meant?
#include "sim/model/closest_name.h"

#include <gtest/gtest.h>

#include <array>

namespace shard::model {
namespace {

constexpr std::array<std::string_view, 4> kNames{"gpt2", "gpt2-medium", "gpt2-large", "llama-7b"};

TEST(ClosestName, MissingLetter) {
  EXPECT_EQ(closest_name("gpt2-medum", kNames), "gpt2-medium");
}
TEST(ClosestName, SwappedLettersAreOneEdit) {
  EXPECT_EQ(closest_name("gtp2", kNames), "gpt2");
}
TEST(ClosestName, CaseDoesNotMatter) {
  EXPECT_EQ(closest_name("LLaMA-7B", kNames), "llama-7b");
}
TEST(ClosestName, NothingClose) {
  EXPECT_EQ(closest_name("bert-large", kNames), std::nullopt);
}
TEST(ClosestName, EmptyOrEndlessNamesHaveNone) {
  EXPECT_EQ(closest_name("", kNames), std::nullopt);
  EXPECT_EQ(closest_name(std::string(100'000, 'g'), kNames), std::nullopt);
}
TEST(ClosestName, Sentence) {
  EXPECT_EQ(did_you_mean("gpt-2", kNames), "did you mean 'gpt2'?");
}

}  // namespace
}  // namespace shard::model
