// How near are laws to kernels that others recorded, and do they say nothing where nothing is known?
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "sim/cluster/read_cluster.h"
#include "sim/price/recording.h"
#include "tests/trace_import/files.h"
#include "traces/import/kineto_program.h"

namespace shard {
namespace {

price::LawsBeside beside_laws_of(const char* cluster, Result<import::KinetoProgram> recording) {
  EXPECT_TRUE(recording) << to_string(recording.error());
  const Result<cluster::Cluster> card = cluster::read_cluster(cluster);
  EXPECT_TRUE(card);
  return recording && card ? price::laws_beside(*recording, *card) : price::LawsBeside{};
}

/// A kernel that an operator of these arguments launched, 10 us long.
price::LawsBeside beside_of(const std::string& op, const std::string& arguments, const std::string& kernel,
                            const std::string& grid, const std::string& category = "kernel") {
  const std::string text =
      R"([{"ph":"X","cat":"cpu_op","name":")" + op + R"(","tid":1,"ts":1,"dur":9,"args":{"External id":5)" + arguments +
      R"(}},{"ph":"X","cat":")" + category + R"(","name":")" + kernel +
      R"(","tid":7,"ts":20,"dur":10,"args":{"External id":5,"bytes":512,"block":[128,1,1],"grid":)" + grid + "}}]";
  import::ByteSource source = import::ByteSource::memory(files::bytes(text), "file");
  return beside_laws_of("a100-40gb-x8", import::read_kineto_program(source));
}

// DLRM on one of 128 A100: most of its time is kernels of FBGEMM, which have no law.
TEST(PricedRecording, SumsOfARecordingWithShapesAreNear) {
  const auto path = files::recording("kineto-gpu-sampled.json.gz");
  SKIP_WITHOUT(path);
  const price::LawsBeside beside = beside_laws_of("a100-40gb-x8", import::read_kineto_program(path));
  EXPECT_LT(std::abs(beside.error()), 0.15);
  EXPECT_GT(beside.coverage(), 0.3);
  for (const price::Beside& each : beside.laws)
    if (each.name == "products") {
      EXPECT_LT(std::abs(each.by_law.count() / each.measured.count() - 1), 0.15);
    }
  ASSERT_FALSE(beside.not_known.empty());
  EXPECT_NE(beside.not_known.front().name.find("split_embedding_backward"), std::string::npos);
}

// Without shapes loops over elements alone are known, by their grids.
TEST(PricedRecording, WithoutShapesOnlyLoopsHaveALaw) {
  const auto path = files::recording("kineto-gpu-alexnet.json.gz");
  SKIP_WITHOUT(path);
  const price::LawsBeside beside = beside_laws_of("a100-40gb-x8", import::read_kineto_program(path));
  EXPECT_LT(std::abs(beside.error()), 0.15);
  EXPECT_LT(beside.coverage(), 0.3);
  for (const price::Beside& each : beside.laws) EXPECT_TRUE(each.name == "elementwise" || each.name == "copies");
}

TEST(PricedRecording, ProductsOfUnknownShapesHaveNoLaw) {
  const char* const shapes = R"(,"Input Dims":[[64,64],[64,64]],"Input type":["float","float"])";
  EXPECT_EQ(beside_of("aten::mm", "", "ampere_sgemm_32x32_tn", "[4,4,1]").coverage(), 0);
  EXPECT_EQ(beside_of("aten::mm", shapes, "ampere_sgemm_32x32_tn", "[4,4,1]").coverage(), 1);
  EXPECT_EQ(beside_of("aten::fft_r2c", shapes, "ampere_sgemm_32x32_tn", "[4,4,1]").coverage(), 0);
}

TEST(PricedRecording, SumsOfFewBlocksAreSlower) {
  const char* const shapes = R"(,"Input Dims":[[4096,4096]],"Input type":["float"])";
  const char* const sum = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float> >";
  const Seconds few = beside_of("aten::sum", shapes, sum, "[2,1,1]").by_law;
  const Seconds many = beside_of("aten::sum", shapes, sum, "[1024,1,1]").by_law;
  EXPECT_GT(few.count(), 20 * many.count());
}

// A split product's second kernel adds its parts up, whatever the sizes of what was multiplied.
TEST(PricedRecording, PartsOfASplitProductAreAsLargeAsItsResult) {
  const char* const shapes = R"(,"Input Dims":[[16,1048576],[1048576,16]],"Input type":["float","float"])";
  const price::LawsBeside beside = beside_of("aten::mm", shapes, "void splitKreduce_kernel<float>", "[1,1,1]");
  EXPECT_EQ(beside.coverage(), 1);
  EXPECT_LT(beside.by_law.count(), 5e-6);
}

// Where the operator does not say whether it is causal, the kernel's template does, mangled or not.
TEST(PricedRecording, AKernelsNameSaysWhetherAttentionIsCausal) {
  const char* const shapes =
      R"(,"Input Dims":[[2,4096,16,64],[2,4096,16,64],[2,4096,16,64]],"Input type":["Half","Half","Half"])";
  const auto takes = [shapes](const char* kernel) {
    return beside_of("aten::_flash_attention_forward", shapes, kernel, "[32,2,16]").by_law.count();
  };
  const double causal =
      takes("void flash_fwd_kernel<Flash_fwd_kernel_traits<64, half_t, Base<64> >, false, true, false>");
  const double full =
      takes("void flash_fwd_kernel<Flash_fwd_kernel_traits<64, half_t, Base<64> >, false, false, false>");
  EXPECT_GT(full, 1.8 * causal);
  EXPECT_EQ(takes("_Z16flash_fwd_kernelI23Flash_fwd_kernel_traitsILi64ELb0ELb0E4BaseILi64EEELb0ELb1ELb0EEv"), causal);
  EXPECT_EQ(takes("_Z16flash_fwd_kernelI23Flash_fwd_kernel_traitsILi64ELb0ELb0E4BaseILi64EEELb0ELb0ELb0EEv"), full);
}

TEST(PricedRecording, ASmallFillIsShorterThanAKernel) {
  EXPECT_LT(beside_of("aten::zero_", "", "Memset (Device)", "[1,1,1]", "gpu_memset").by_law.count(), 1.5e-6);
}

}  // namespace
}  // namespace shard
