// Are numbers printed as people read them?
#include "traces/base/numbers.h"

#include <gtest/gtest.h>

namespace shard {
namespace {

TEST(Numbers, ThousandsAreApart) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1000), "1,000");
  EXPECT_EQ(with_commas(-999), "-999");
  EXPECT_EQ(with_commas(-1234567), "-1,234,567");
}

TEST(Numbers, HaveNoExponentWherePeopleCount) {
  EXPECT_EQ(show_number(44440.4), "44,440");
  EXPECT_EQ(show_number(1.23e9), "1,230,000,000");
  EXPECT_EQ(show_number(131072), "131,072");
  EXPECT_EQ(show_number(9999.6), "10,000");
  EXPECT_EQ(show_number(999.99), "1,000");
  EXPECT_EQ(show_number(1152), "1,152");
  EXPECT_EQ(show_number(12.131), "12.13");
  EXPECT_EQ(show_number(0.04181, 3), "0.0418");
  EXPECT_EQ(show_number(0.5), "0.5");
  EXPECT_EQ(show_number(200), "200");
  EXPECT_EQ(show_number(0), "0");
  EXPECT_EQ(show_number(-2.5), "-2.5");
  EXPECT_EQ(show_number(1e30), "1e+30");
}

TEST(Numbers, SizesAreInTheUnitThatFits) {
  EXPECT_EQ(show_bytes(Bytes{640}), "640 B");
  EXPECT_EQ(show_bytes(Bytes{16} * (1 << 20)), "16.00 MiB");
  EXPECT_EQ(show_bytes(Bytes{-42412802048}), "-39.50 GiB");
  EXPECT_EQ(show_bytes(Bytes{1 << 19}), "0.50 MiB");
  EXPECT_EQ(show_bytes(Bytes{INT64_MIN}), "-8589934592.00 GiB");
  EXPECT_EQ(show_mib(Bytes{640}), "0.00 MiB");
  EXPECT_EQ(show_mib(Bytes{3 << 19}, 1), "1.5 MiB");
}

TEST(Numbers, TimesKeepTheirDigits) {
  EXPECT_EQ(duration(Seconds{412e-6}), "412 us");
  EXPECT_EQ(duration(Seconds{1.2351e-3}), "1.24 ms");
  EXPECT_EQ(duration(Seconds{9.994e-3}), "9.99 ms");
  EXPECT_EQ(duration(Seconds{9.996e-3}), "10.0 ms");
  EXPECT_EQ(duration(Seconds{99.96e-9}), "100 ns");
  EXPECT_EQ(duration(Seconds{0.9996e-3}), "1.00 ms");
  EXPECT_EQ(duration(Seconds{1.23456}, 4), "1.235 s");
  EXPECT_EQ(duration(Seconds{0.99996}, 4), "1.000 s");
  EXPECT_EQ(duration(Seconds{412.34e-3}, 4), "412.3 ms");
  EXPECT_EQ(duration(Seconds{252}), "4 min 12 s");
  EXPECT_EQ(duration(Seconds{7199}), "119 min 59 s");
  EXPECT_EQ(duration(Seconds{7500}), "2 h 5 min");
  EXPECT_EQ(duration(Seconds{42944823}), "497 days 1 h");
  EXPECT_EQ(duration(Seconds{0}), "0 s");
}

TEST(Numbers, ATimeAndItsIntervalHaveOneUnit) {
  EXPECT_EQ(duration_between(Seconds{0.412}, Seconds{0.36}, Seconds{0.48}), "412 ms (360 to 480)");
  EXPECT_EQ(duration_between(Seconds{1.2}, Seconds{0.9}, Seconds{1.6}), "1.2 s (0.9 to 1.6)");
  EXPECT_EQ(duration_between(Seconds{41e-6}, Seconds{33e-6}, Seconds{50e-6}), "41 us (33 to 50)");
  EXPECT_EQ(duration_between(Seconds{252}, Seconds{200}, Seconds{300}), "4 min 12 s (3 min 20 s to 5 min 0 s)");
}

TEST(Numbers, TheShortestDigitsGiveTheSameNumber) {
  EXPECT_EQ(shortest(0.1), "0.1");
  EXPECT_EQ(shortest(0.1F), "0.1");
  EXPECT_EQ(shortest(1e-30), "1e-30");
}

}  // namespace
}  // namespace shard
