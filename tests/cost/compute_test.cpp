// Is the roofline a roofline, and is a device divided as rates.h says?
#include "sim/cost/compute.h"

#include <gtest/gtest.h>

#include "sim/cost/optimizer.h"
#include "sim/cost/transfer.h"
#include "sim/strategy/strategy.h"

namespace shard::cost {
namespace {

constexpr Rates kRound{FlopsPerSecond{100e9}, FlopsPerSecond{50e9}, FlopsPerSecond{10e9}, BytesPerSecond{10e9},
                       Seconds{1e-6}};

TEST(Roofline, TheSlowerOfArithmeticAndTrafficDecides) {
  // 1 us + max(1e6 / 100e9 = 10 us, 50'000 / 10e9 = 5 us)
  EXPECT_DOUBLE_EQ(roofline(Flops{1e6}, Bytes{50'000}, kRound.matrix, kRound.memory, kRound.launch).count(), 11e-6);
  // 1 us + max(10 us, 500'000 / 10e9 = 50 us)
  EXPECT_DOUBLE_EQ(roofline(Flops{1e6}, Bytes{500'000}, kRound.matrix, kRound.memory, kRound.launch).count(), 51e-6);
}

TEST(Optimizer, AdamOfAMillionElementsIsBoundBy28BytesEach) {
  // 1 us + 28e6 / 10e9 = 2801 us; 14e6 flops / 10e9 = 1400 us hide behind it
  EXPECT_DOUBLE_EQ(optimizer_time(Flops{14e6}, Bytes{28'000'000}, kRound).count(), 2801e-6);
}

TEST(Transfer, GoesOverTheLinkOrIsACopy) {
  const cluster::HostLink link{Seconds{10e-6}, BytesPerSecond{25e9}};
  EXPECT_DOUBLE_EQ(transfer_time(Bytes{25'000'000}, link, kRound).count(), 1011e-6);          // 1 + 10 + 1000 us
  EXPECT_DOUBLE_EQ(transfer_time(Bytes{25'000'000}, std::nullopt, kRound).count(), 5001e-6);  // 1 + 2 * 2500 us
}

TEST(Touched, AnEmbeddingTouchesOnlyTheRowsOfItsTokens) {
  model::Attributes a;
  a.rows = 10;
  a.out_columns = 8;
  EXPECT_EQ(touched(model::OperatorKind::embedding, a, Dtype::f32, Bytes{50257 * 8 * 4}), Bytes{10 * 8 * 4});
  EXPECT_EQ(touched(model::OperatorKind::embedding, a, Dtype::f32, Bytes{10 * 4}), Bytes{10 * 4});
  EXPECT_EQ(touched(model::OperatorKind::embedding, a, Dtype::bf16, Bytes{50257 * 8 * 2}), Bytes{10 * 8 * 2});
  EXPECT_EQ(touched(model::OperatorKind::linear, a, Dtype::f32, Bytes{50257 * 8 * 4}), Bytes{50257 * 8 * 4});
}

TEST(Rates, RanksOfACpuShareItsCoresAndItsBandwidth) {
  cluster::Cluster c;
  c.device = cluster::DeviceKind::cpu;
  c.cores = 4;
  c.peak_fp32 = FlopsPerSecond{400e9};
  c.memory_bandwidth = BytesPerSecond{20e9};
  const auto with = [&](std::int32_t ranks_per_device, std::int32_t threads) {
    return rates(c, cluster::Layout{.ranks = 8, .hosts = 1, .ranks_per_device = ranks_per_device},
                 {.threads = threads});
  };
  EXPECT_DOUBLE_EQ(with(1, 1).matrix.count(), 100e9);
  EXPECT_DOUBLE_EQ(with(1, 4).matrix.count(), 400e9);
  EXPECT_DOUBLE_EQ(with(1, 16).matrix.count(), 400e9);
  EXPECT_DOUBLE_EQ(with(2, 4).matrix.count(), 200e9);
  EXPECT_DOUBLE_EQ(with(8, 1).matrix.count(), 50e9);
  EXPECT_DOUBLE_EQ(with(2, 4).memory.count(), 10e9);
}

TEST(Rates, ACudaDeviceIgnoresThreads) {
  cluster::Cluster c;
  c.peak_fp32 = FlopsPerSecond{400e9};
  c.matrix_efficiency = 0.5;
  EXPECT_DOUBLE_EQ(rates(c, cluster::Layout{}, plan::Target{}).matrix.count(), 200e9);
}

// Products run at their precision's peak, everything else in fp32; what a description leaves out is fp32's.
TEST(Rates, ProductsRunAtThePeakOfTheirPrecision) {
  cluster::Cluster c;
  c.peak_fp32 = FlopsPerSecond{20e12};
  c.peak_tf32 = FlopsPerSecond{150e12};
  c.peak_bf16 = FlopsPerSecond{300e12};
  c.matrix_efficiency = 0.5;
  c.attention_efficiency = 0.25;
  const auto in = [&](plan::Precision precision) {
    return rates(c, cluster::Layout{}, plan::Strategy{.precision = precision}.target());
  };
  EXPECT_DOUBLE_EQ(in(plan::Precision::fp32).matrix.count(), 10e12);
  EXPECT_DOUBLE_EQ(in(plan::Precision::tf32).matrix.count(), 75e12);
  EXPECT_DOUBLE_EQ(in(plan::Precision::bf16).matrix.count(), 150e12);
  EXPECT_DOUBLE_EQ(in(plan::Precision::fp16).matrix.count(), 10e12);
  EXPECT_DOUBLE_EQ(in(plan::Precision::bf16).attention.count(), 75e12);
  EXPECT_EQ(in(plan::Precision::bf16).elementwise, in(plan::Precision::fp32).elementwise);
}

}  // namespace
}  // namespace shard::cost
