// Are sizes read and printed as documented?
#include "sim/cli/sizes.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>

namespace shard::cli {
namespace {

std::int64_t read(const char* text) {
  const auto count = parse_count(text, "--x");
  EXPECT_TRUE(count) << text;
  return count ? *count : -1;
}

TEST(Sizes, SuffixesAreDecimalOrBinary) {
  EXPECT_EQ(read("0"), 0);
  EXPECT_EQ(read("1000"), 1000);
  EXPECT_EQ(read("32Mi"), 33554432);
  EXPECT_EQ(read("64M"), 64000000);
  EXPECT_EQ(read("1Gi"), 1073741824);
  EXPECT_EQ(read("512k"), 512000);
  EXPECT_EQ(read("512KI"), 524288);
  EXPECT_EQ(read("2T"), 2000000000000);
  EXPECT_EQ(read("1.5Gi"), 1610612736);
  EXPECT_EQ(read("0.5k"), 500);
  EXPECT_EQ(read("1152921504606846976"), std::int64_t{1} << 60);
}

TEST(Sizes, JunkNamesTheOptionAndTheForm) {
  for (const char* text : {"", "-1", "+1", "32Mx", "Mi", "1e6", " 1", "1 ", "1.", ".5k", "0x10", "1.1234567M", "12B"}) {
    const auto count = parse_count(text, "--chunk-size");
    ASSERT_FALSE(count) << text;
    EXPECT_EQ(count.error().code, Errc::usage);
    EXPECT_EQ(count.error().where, "--chunk-size");
    EXPECT_NE(count.error().help.find("32Mi"), std::string::npos);
  }
  EXPECT_EQ(parse_count("0.3", "").error().what, "'0.3' is not a whole number");
}

TEST(Sizes, WhatIsAboveTheLargestSizeIsRefused) {
  for (const char* text : {"1152921504606846977", "9223372036854775807", "9223372036854775808", "99999999999999999999",
                           "1048577Ti", "8388608Ti", "9223372036854776k"}) {
    const auto count = parse_count(text, "--x");
    ASSERT_FALSE(count) << text;
    EXPECT_EQ(count.error().what, "'" + std::string(text) + "' is too large");
  }
  EXPECT_EQ(read("1048576Ti"), std::int64_t{1} << 60);
}

TEST(Sizes, BytesTakeAB) {
  EXPECT_EQ(*parse_bytes("40GB", ""), Bytes{40000000000});
  EXPECT_EQ(*parse_bytes("40GiB", ""), Bytes{std::int64_t{40} << 30});
  EXPECT_EQ(*parse_bytes("7b", ""), Bytes{7});
  EXPECT_EQ(parse_bytes("GB", "").error().what, "'GB' is not a size");
}

TEST(Sizes, ShortCountIsReadBackUnchanged) {
  EXPECT_EQ(short_count(33554432), "32Mi");
  EXPECT_EQ(short_count(64000000), "64M");
  EXPECT_EQ(short_count(1001), "1001");
  EXPECT_EQ(short_count(0), "0");
  std::mt19937_64 random(7);
  for (int i = 0; i < 1000; ++i) {
    const auto count = static_cast<std::int64_t>(random() >> (4 + i % 59)) / 1024 * (i % 2 == 0 ? 1024 : 1000);
    EXPECT_EQ(read(short_count(count).c_str()), count);
  }
}

TEST(Sizes, PrintedInElementsAndMiB) {
  EXPECT_EQ(elements_and_mib(Elems{33554432}, 4), "33,554,432 elements (32Mi, 128.0 MiB)");
  EXPECT_EQ(elements_and_mib(Elems{10}, 4), "10 elements (40 B)");
  EXPECT_EQ(mib(Bytes{1048576}), "1.0 MiB");
}

TEST(Sizes, DurationsKeepThreeDigits) {
  EXPECT_EQ(duration(Seconds{0.000412}), "412 us");
  EXPECT_EQ(duration(Seconds{0.00124}), "1.24 ms");
  EXPECT_EQ(duration(Seconds{0.9999}), "1.00 s");
  EXPECT_EQ(duration(Seconds{252}), "4 min 12 s");
}

}  // namespace
}  // namespace shard::cli
