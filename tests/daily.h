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

/// The first case and others, one in `every` of all, in their order; all of them with SHARDSCOPE_TEST_SEED=all. Says
/// which.
template <typename Case>
std::vector<Case> part_of(const std::vector<Case>& all, std::size_t every) {
  const char* const said = std::getenv("SHARDSCOPE_TEST_SEED");
  if (all.empty() || (said != nullptr && std::string(said) == "all")) return all;
  std::vector<std::size_t> order(all.size() - 1);
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i + 1;
  std::mt19937_64 random(seed());
  std::ranges::shuffle(order, random);
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
  std::vector<unsigned> order(of - 1);
  for (unsigned i = 0; i < of - 1; ++i) order[i] = i + 1;
  std::mt19937_64 random(seed());
  std::ranges::shuffle(order, random);
  std::printf("seed %u of %u (SHARDSCOPE_TEST_SEED=%llu)\n", order[index - 1], of,
              static_cast<unsigned long long>(seed()));
  return order[index - 1];
}

}  // namespace shard::daily
