// How far are the laws from kernels that were recorded?
#include "sim/price/recording.h"

#include <gmock/gmock.h>

#include <array>
#include <span>

#include "sim/cluster/read_cluster.h"
#include "sim/price/price.h"

namespace shard::price {
namespace {

LawsBeside beside(const std::string& file, const char* card) {
  const auto recording = import::read_kineto_program(std::filesystem::path(TEST_DATA) / "price" / "data" / file);
  EXPECT_TRUE(recording) << recording.error().what;
  return laws_beside(*recording, *cluster::read_cluster(card));
}

TEST(Recording, KernelsOfAnH100TakeWhatTheLawsSayTogether) {
  const LawsBeside found = beside("h100.json", "h100-80gb-x8");
  EXPECT_GT(found.coverage(), 0.9);
  EXPECT_LT(std::abs(found.error()), 0.15);
  for (const Beside& law : found.laws) {
    if (law.measured < found.measured * 0.1) continue;
    EXPECT_NEAR(law.by_law.count() / law.measured.count(), 1, 0.25) << law.name;
  }
}

/// A recording as text.
LawsBeside beside_text(const std::string& events) {
  const std::string text = "{\"traceEvents\":[" + events + "]}";
  import::ByteSource source = import::ByteSource::memory(std::as_bytes(std::span(text)), "test");
  const auto recording = import::read_kineto_program(source);
  EXPECT_TRUE(recording) << recording.error().what;
  return laws_beside(*recording, *cluster::read_cluster("a100-80gb-x8"));
}

constexpr const char* kOperator =
    R"({"ph":"X","cat":"cpu_op","name":"aten::add","pid":1,"tid":5,"ts":10,"dur":20,"args":{"External id":3,)"
    R"("Input Dims":[[1024,1024],[1024,1024]],"Input type":["float","float"]}})";

/// Medians of products in 16 bits of recordings of AMD-AGI/TraceLens, tests/traces: gaunernst_bert-small-uncased and
/// Falconsai_nsfw_image_detection on H100, vLLM's eager_trace on B200.
TEST(Recording, SmallProductsTakeWhatTheyTookInAProgram) {
  struct Row {
    const char* cluster;
    const char* kernel;
    std::int64_t m, n, k;
    double microseconds;
  };
  const char *const older = "cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_64x6_tn_align8",
                    *const newer = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64", *const b200 = "nvjet";
  const std::array<Row, 9> rows{{{"h100-80gb-x8", older, 141, 512, 512, 5.79},
                                 {"h100-80gb-x8", older, 141, 2048, 512, 6.14},
                                 {"h100-80gb-x8", newer, 141, 512, 2048, 8.22},
                                 {"h100-80gb-x8", older, 788, 768, 768, 8.26},
                                 {"h100-80gb-x8", newer, 788, 3072, 768, 13.89},
                                 {"h100-80gb-x8", newer, 788, 768, 3072, 13.50},
                                 {"b200-180gb-x8", b200, 888, 640, 2880, 8.06},
                                 {"b200-180gb-x8", b200, 888, 128, 2880, 6.50},
                                 {"b200-180gb-x8", b200, 888, 2880, 512, 6.33}}};
  for (const Row& row : rows) {
    KernelCall call;
    call.name = row.kernel;
    call.product = ProductCall{.m = row.m, .n = row.n, .k = row.k};
    const auto priced = price(call, *cluster::read_cluster(row.cluster));
    EXPECT_NEAR(priced->time.count() * 1e6 / row.microseconds, 1, 0.21) << row.m << " x " << row.n << " x " << row.k;
  }
}

TEST(Recording, FindsTheOperatorByTheCallThatLaunchedOrByItsId) {
  const std::string kernel =
      R"({"ph":"X","cat":"kernel","name":"elementwise_kernel","pid":0,"tid":7,"ts":99,"dur":12,"args":)"
      R"({"grid":[99999,1,1],"block":[128,1,1],"correlation":8,"External id":ID}})";
  const std::string launch =
      R"({"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":5,"ts":15,"dur":2,"args":{"correlation":8}})";
  const auto with_id = [&](const char* id) {
    std::string text = kernel;
    return text.replace(text.find("ID"), 2, id);
  };
  const double by_call = beside_text(std::string(kOperator) + "," + launch + "," + with_id("8")).by_law.count();
  const double by_id = beside_text(std::string(kOperator) + "," + with_id("3")).by_law.count();
  const double by_grid = beside_text(std::string(kOperator) + "," + with_id("99")).by_law.count();
  EXPECT_GT(by_call, 0);
  EXPECT_DOUBLE_EQ(by_call, by_id);
  EXPECT_GT(by_grid, 2 * by_id) << "of the grid alone, which is larger here";
}

TEST(Recording, LeavesOutCollectivesAndTheHostsCopiesAndNamesTheRest) {
  const LawsBeside found = beside_text(R"x(
{"ph":"X","cat":"kernel","name":"ncclDevKernel_AllGather","pid":0,"tid":7,"ts":1,"dur":1000,"args":{}},
{"ph":"X","cat":"gpu_memcpy","name":"Memcpy HtoD (Pinned -> Device)","pid":0,"tid":7,"ts":1,"dur":500,"args":{"bytes":9}},
{"ph":"X","cat":"gpu_memcpy","name":"Memcpy DtoD (Device -> Device)","pid":0,"tid":7,"ts":1,"dur":5,"args":{"bytes":1000}},
{"ph":"X","cat":"kernel","name":"mine","pid":0,"tid":7,"ts":1,"dur":70,"args":{}})x");
  EXPECT_DOUBLE_EQ(found.exchanges.count(), 1e-3);
  EXPECT_DOUBLE_EQ(found.host_copies.count(), 5e-4);
  EXPECT_DOUBLE_EQ(found.without_law.count(), 7e-5);
  ASSERT_EQ(found.not_known.size(), 1u);
  EXPECT_EQ(found.not_known[0].name, "mine");
  EXPECT_DOUBLE_EQ(found.coverage(), 5e-6 / 75e-6);
}

}  // namespace
}  // namespace shard::price
