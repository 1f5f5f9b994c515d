// Do we answer what DeepSpeed's estimators answer, to the byte?
#include "sim/like/deepspeed_estimate.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

namespace shard::like {
namespace {

TEST(DeepSpeedEstimate, EveryRowOfTheOracle) {
  std::ifstream rows(TEST_DATA "/data/deepspeed_estimates/estimates.tsv");
  std::string line;
  std::getline(rows, line);  // source
  std::getline(rows, line);  // columns
  int seen = 0;
  while (std::getline(rows, line)) {
    std::istringstream cells(line);
    EstimateQuery q;
    std::string model;
    std::int64_t parameters = 0, largest_layer = 0, host = 0, gpu = 0;
    cells >> q.stage >> model >> parameters >> largest_layer >> q.gpus_per_node >> q.nodes >> q.offload_optimizer >>
        q.offload_parameters >> q.zero_init >> host >> gpu;
    ASSERT_TRUE(cells) << line;
    const Estimate answer = estimate({Elems{parameters}, Elems{largest_layer}}, q);
    EXPECT_EQ(answer.host.count(), host) << line;
    EXPECT_EQ(answer.gpu.count(), gpu) << line;
    ++seen;
  }
  EXPECT_EQ(seen, 264);
}

TEST(DeepSpeedEstimate, TheLargestLayerIsWhatOneModuleOwnsItself) {
  const ParameterList parameters = {{"a.weight", {2, 3}, Elems{6}},
                                    {"a.inner.weight", {9}, Elems{9}},
                                    {"a.bias", {4}, Elems{4}},
                                    {"b.weight", {7}, Elems{7}}};
  const EstimatedModel model = estimated_model(parameters);
  EXPECT_EQ(model.parameters, Elems{26});
  EXPECT_EQ(model.largest_layer, Elems{10});
}

TEST(DeepSpeedEstimate, ATableHasEightAnswers) {
  const std::vector<Estimate> all = estimates({Elems{100}, Elems{10}}, 2, 1);
  ASSERT_EQ(all.size(), 8u);
  EXPECT_EQ(all[1].gpu, Bytes{2 * 100 + 18 * 100 / 2});
  EXPECT_EQ(all[7].query.stage, 3);
  EXPECT_FALSE(all[7].query.zero_init);
}

}  // namespace
}  // namespace shard::like
