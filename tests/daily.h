// A part of a large set of cases, another part each day, so that the suite stays short and sees all of them in time.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

namespace shard::daily {

/// Days since 1970 (UTC), or what SHARDSCOPE_TEST_SEED says: a failure of another day comes again by it.
inline std::uint64_t seed() {
  if (const char* const said = std::getenv("SHARDSCOPE_TEST_SEED")) return std::strtoull(said, nullptr, 10);
  const auto now = std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now());
  return static_cast<std::uint64_t>(now.time_since_epoch().count());
}

/// The numbers from 1 to `last`, in another order each day.
inline std::vector<std::size_t> order_of(std::size_t last) {
  std::vector<std::size_t> order(last);
  for (std::size_t i = 0; i < last; ++i) order[i] = i + 1;
  std::mt19937_64 random(seed());
  std::ranges::shuffle(order, random);
  return order;
}

/// The first case and others, one in `every` of all, in their order; all of them with SHARDSCOPE_TEST_SEED=all. Says
/// which.
template <typename Case>
std::vector<Case> part_of(const std::vector<Case>& all, std::size_t every) {
  const char* const said = std::getenv("SHARDSCOPE_TEST_SEED");
  if (all.empty() || (said != nullptr && std::string(said) == "all")) return all;
  std::vector<std::size_t> order = order_of(all.size() - 1);
  order.resize(std::min(order.size(), all.size() / every));
  std::ranges::sort(order);
  std::vector<Case> part{all.front()};
  for (const std::size_t i : order) part.push_back(all[i]);
  std::printf("%zu of %zu cases (SHARDSCOPE_TEST_SEED=%llu)\n", part.size(), all.size(),
              static_cast<unsigned long long>(seed()));
  return part;
}

/// The seed of the `index`-th of a suite's `tests`, out of `of`: 0 for the first, for others another part each day; all
/// in their order where there are as many tests as seeds. Says which.
inline unsigned pick(unsigned index, unsigned tests, unsigned of) {
  if (index == 0 || tests >= of) return index;
  const auto picked = static_cast<unsigned>(order_of(of - 1)[index - 1]);
  std::printf("seed %u of %u (SHARDSCOPE_TEST_SEED=%llu)\n", picked, of, static_cast<unsigned long long>(seed()));
  return picked;
}

}  // namespace shard::daily
