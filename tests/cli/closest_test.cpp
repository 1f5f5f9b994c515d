// Is the name that was meant found, and nothing suggested where nothing is near?
#include "sim/cli/closest.h"

#include <gtest/gtest.h>

#include <vector>

namespace shard::cli {
namespace {

const std::vector<std::string> kOptions{"model", "world-size", "stage", "unit", "chunk-size", "chunk-bytes"};

TEST(Closest, FindsTheNameThatWasMeant) {
  EXPECT_EQ(closest("chunk_size", kOptions), "chunk-size");
  EXPECT_EQ(closest("chunksise", kOptions), "chunk-size");
  EXPECT_EQ(closest("Stage", kOptions), "stage");
  EXPECT_EQ(closest("world", kOptions), "world-size");
  EXPECT_EQ(closest("mdoel", kOptions), "model");
}

TEST(Closest, SuggestsNothingThatIsFar) {
  EXPECT_EQ(closest("temperature", kOptions), std::nullopt);
  EXPECT_EQ(closest("", kOptions), std::nullopt);
  EXPECT_EQ(closest("x", kOptions), std::nullopt);
}

TEST(Closest, SuggestListsAllWhereNoneIsNear) {
  EXPECT_EQ(suggest("unti", kOptions, "--"), "did you mean '--unit'?");
  const std::vector<std::string> units{"tensor", "bucket"};
  EXPECT_EQ(suggest("zzz", units), "one of tensor, bucket");
}

}  // namespace
}  // namespace shard::cli
