// Do JSON and text say what the emulation found?
#include "sim/like/report.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/like/recipe.h"

namespace shard::like {
namespace {

using nlohmann::json;

TEST(Report, JsonHasTheMomentsInOrder) {
  const LikeResult r = test::like(test::recipe_model(), test::recipe(1));
  const json j = to_json(r);
  EXPECT_EQ(j["like"], "pytorch@1.8");
  EXPECT_EQ(j["moments"].size(), 4u);
  EXPECT_EQ(j["moments"][0]["name"], "after the local model");
  EXPECT_EQ(j["moments"][3]["name"], "after step");
  EXPECT_EQ(j["moments"][3]["max_allocated_bytes"], 1361863680);
  EXPECT_EQ(j["peak_allocated_bytes"], 1361863680);
  EXPECT_EQ(j["peak_device_bytes"], j["peak_reserved_bytes"]);
  EXPECT_EQ(j["optimizer_state_bytes"], 320160000);
  EXPECT_TRUE(j["device_capacity_bytes"].is_null());
  EXPECT_EQ(j["fits"], true);
  for (const json& moment : j["moments"]) {
    std::int64_t blocks = 0, categories = 0;
    for (const json& b : moment["blocks"])
      blocks += b["blocks"].get<std::int64_t>() * b["block_bytes"].get<std::int64_t>();
    for (const json& c : moment["by_category"]) categories += c.get<std::int64_t>();
    EXPECT_EQ(blocks, moment["max_allocated_bytes"]);
    EXPECT_EQ(categories, moment["max_allocated_bytes"]);
    EXPECT_GE(moment["max_reserved_bytes"], moment["max_allocated_bytes"]);
  }
}

TEST(Report, HoldersAreTheLargestFirst) {
  const json holders = to_json(test::like(test::recipe_model(), test::recipe(0)), 3)["largest_holders"];
  ASSERT_EQ(holders.size(), 3u);
  EXPECT_EQ(holders[0]["bytes"], 20 * 16777216);
  EXPECT_EQ(holders[0]["buffers"], 20);
  EXPECT_GE(holders[1]["bytes"], holders[2]["bytes"]);
}

TEST(Report, BlocksAlikeAreOneGroup) {
  const Bytes kib{1024};
  const std::vector<BlockGroup> groups = group_blocks({{"a.10", Category::parameter, kib, kib},
                                                       {"b", Category::parameter, kib, kib},
                                                       {"a.2", Category::parameter, kib, kib},
                                                       {"a.3", Category::gradient, kib, kib},
                                                       {"a.4", Category::parameter, kib, Bytes{2048}}});
  ASSERT_EQ(groups.size(), 4u);
  EXPECT_EQ(groups[0].name, "a.*");
  EXPECT_EQ(groups[0].together().count(), 2048);
  EXPECT_EQ(groups[1].name, "b");
  EXPECT_EQ(groups[3].name, "a.4");
}

TEST(Report, TextNamesMomentsAndHolders) {
  const LikeResult result = test::like(test::recipe_model(), test::recipe(0));
  const std::string text = verdict_text(result, show_exact) + details_text(result, who(result), show_exact);
  EXPECT_THAT(text, testing::ContainsRegex("before step +992,921,600"));
  EXPECT_THAT(text, testing::HasSubstr("optimizer_state"));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("fits")));
}

}  // namespace
}  // namespace shard::like
