// Are the offsets those of the plain, quadratic packing, one by one?
#include <gtest/gtest.h>

#include "tests/memory/random_lifetimes.h"
#include "tests/memory/reference_pack.h"

namespace shard {
namespace {

void expect_equal(const Lifetimes& lifetimes, const PackOptions& options = {}) {
  const Result<Packing> packing = pack(lifetimes.items, lifetimes.events, options);
  const Result<Packing> reference = reference_pack(lifetimes.items, lifetimes.events, options);
  ASSERT_TRUE(packing && reference);
  EXPECT_EQ(packing->offsets, reference->offsets);
  EXPECT_EQ(packing->extent, reference->extent);
  EXPECT_EQ(packing->live_peak, reference->live_peak);
}

TEST(PackReference, RandomLifetimes) {
  for (std::uint32_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    Lifetimes lifetimes = random_lifetimes(seed, 5 + static_cast<int>(seed % 300), 1 + seed % 57, 0.05 * (seed % 31));
    for (std::size_t item = seed % 7; item < lifetimes.items.size(); item += 11) lifetimes.items[item] = Bytes{0};
    expect_equal(lifetimes, {.alignment = std::int64_t{1} << (seed % 10), .orders = 1 + static_cast<int>(seed % 3)});
  }
}

TEST(PackReference, ManyAtOnce) {
  for (std::uint32_t seed = 0; seed < 6; ++seed) expect_equal(random_lifetimes(seed, 3000, 40 + 200 * seed, 0.9));
}

TEST(PackReference, TrainingSteps) {
  for (const int layers : {1, 5, 24})
    for (const int micro_batches : {1, 2, 5})
      for (const bool gather : {false, true})
        for (const bool recompute : {false, true})
          expect_equal(transformer(layers, micro_batches, gather, recompute, static_cast<std::uint32_t>(layers)));
}

}  // namespace
}  // namespace shard
