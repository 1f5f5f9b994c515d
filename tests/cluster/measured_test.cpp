// Are measured laws written and read back equal, and does every wrong figure name its place?
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sim/cluster/examples.h"
#include "sim/cluster/read_cluster.h"
#include "sim/cluster/write_cluster.h"

namespace shard::cluster {
namespace {

Measured two_laws() {
  return {.method = "made up",
          .figures = {{.name = "products of 4096", .value = 5e14, .unit = "flops/s", .method = "the best of three"}},
          .occupancies = {{.ranks = 2,
                           .threads = 1,
                           .between_seconds = 1e-6,
                           .meeting_seconds = 2.5e-5,
                           .waiting_share = 0.01,
                           .laws = {{.kind = "linear forward",
                                     .dtype = Dtype::bf16,
                                     .call_seconds = 3e-6,
                                     .flop_seconds = 1.25e-11,
                                     .weight_byte_seconds = 1e-10,
                                     .byte_seconds = 0,
                                     .corrections = {{0, 1.5}, {4096, 0.9}},
                                     .samples = 12,
                                     .median_error = 0.03},
                                    {.kind = "all_gather", .byte_seconds = 3e-10, .corrections = {}, .samples = 1}}}}};
}

Cluster cpu() {
  Cluster c = *read_cluster("cpu-local");
  c.streams_overlap = false;
  c.measured = two_laws();
  return c;
}

TEST(Written, EveryExampleIsReadBackEqual) {
  for (const ExampleCluster& e : example_clusters()) {
    const std::string text = to_json(*read_cluster(e.name));
    const Result<Cluster> back = parse_cluster(text, "written");
    ASSERT_TRUE(back) << e.name << ": " << to_string(back.error());
    EXPECT_EQ(to_json(*back), text) << e.name;
    // No key of the example is lost.
    const nlohmann::json before = nlohmann::json::parse(e.json);
    const nlohmann::json after = nlohmann::json::parse(text);
    for (const auto& item : before.items())
      if (after.contains(item.key()))
        EXPECT_EQ(after[item.key()], item.value()) << e.name << ' ' << item.key();
      else
        ADD_FAILURE() << e.name << " lost " << item.key();
  }
}

TEST(Written, TheHostsBandwidthIsReadBackEqual) {
  Cluster c = *read_cluster("a100-80gb-x8");
  EXPECT_FALSE(c.host_memory_bandwidth);
  c.host_memory_bandwidth = BytesPerSecond{1e11};
  const Result<Cluster> back = parse_cluster(to_json(c), "written");
  ASSERT_TRUE(back) << to_string(back.error());
  EXPECT_EQ(back->host_memory_bandwidth, c.host_memory_bandwidth);
}

TEST(Written, LawsAreReadBackEqual) {
  const Result<Cluster> back = parse_cluster(to_json(cpu()), "written");
  ASSERT_TRUE(back) << to_string(back.error());
  ASSERT_TRUE(back->measured);
  EXPECT_EQ(*back->measured, two_laws());
  EXPECT_FALSE(back->streams_overlap);
}

TEST(Measured, FilesWithoutItAreWhatTheyWere) {
  const Cluster c = *read_cluster("cpu-local");
  EXPECT_FALSE(c.measured);
  EXPECT_TRUE(c.streams_overlap);
}

struct Wrong {
  const char* pointer;  ///< below /measured
  nlohmann::json value;
  const char* what;
};

TEST(Measured, AWrongFigureNamesItsPlace) {
  const std::string law = "/occupancies/0/laws/0";
  const Wrong all[] = {
      {"/occupancies", nlohmann::json::array(), "must not be empty"},
      {"/occupancies", 3, "must be a list"},
      {"/occupancies/0/ranks", 0, "must be a whole number"},
      {"/occupancies/0/waiting_share", -1, "must be 0 or more"},
      {"/occupancies/0/laws/0/kind", "linear", "is no kind of op"},
      {"/occupancies/0/laws/0/dtype", "i32", "must be \"f32\""},
      {"/occupancies/0/laws/0/flop_seconds", "fast", "must be a number"},
      {"/occupancies/0/laws/0/corrections/1/factor", 0, "must be above 0"},
      {"/occupancies/0/laws/0/corrections/1/moved_bytes", 0, "must be sorted"},
      {"/occupancies/0/laws/0/colour", "red", "is not a known key"},
  };
  for (const Wrong& wrong : all) {
    nlohmann::json j = nlohmann::json::parse(to_json(cpu()));
    j["measured"][nlohmann::json::json_pointer(wrong.pointer)] = wrong.value;
    const Result<Cluster> read = parse_cluster(j.dump(), "f.json");
    ASSERT_FALSE(read) << wrong.pointer;
    EXPECT_TRUE(read.error().where.starts_with("f.json#/measured/occupancies")) << read.error().where;
    EXPECT_NE(read.error().what.find(wrong.what), std::string::npos) << read.error().what;
  }
}

}  // namespace
}  // namespace shard::cluster
