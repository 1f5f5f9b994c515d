// A small set of combinations in which every pair of values of every two factors occurs.
#pragma once

#include <cstddef>
#include <set>
#include <tuple>
#include <vector>

namespace shard {

/// levels[f] is how many values factor f has. Rows hold one value index per factor. Greedy: each row takes, factor by
/// factor, the value that covers most pairs still missing; so the set is small, not minimal, and always the same.
inline std::vector<std::vector<std::size_t>> pairwise(const std::vector<std::size_t>& levels) {
  using Pair = std::tuple<std::size_t, std::size_t, std::size_t, std::size_t>;  // factor, value, factor, value
  std::set<Pair> missing;
  for (std::size_t f = 0; f < levels.size(); ++f)
    for (std::size_t g = f + 1; g < levels.size(); ++g)
      for (std::size_t v = 0; v < levels[f]; ++v)
        for (std::size_t w = 0; w < levels[g]; ++w) missing.insert({f, v, g, w});
  std::vector<std::vector<std::size_t>> rows;
  while (!missing.empty()) {
    const auto [f0, v0, g0, w0] = *missing.begin();
    std::vector<std::size_t> row(levels.size());
    std::vector<bool> fixed(levels.size(), false);
    const auto fix = [&](std::size_t factor, std::size_t value) {
      row[factor] = value;
      fixed[factor] = true;
    };
    fix(f0, v0);
    fix(g0, w0);
    const auto pair_of = [](std::size_t f, std::size_t v, std::size_t g, std::size_t w) {
      return f < g ? Pair{f, v, g, w} : Pair{g, w, f, v};
    };
    for (std::size_t f = 0; f < levels.size(); ++f) {
      if (fixed[f]) continue;
      std::size_t best = 0;
      std::size_t most = 0;
      for (std::size_t v = 0; v < levels[f]; ++v) {
        std::size_t covers = 0;
        for (std::size_t g = 0; g < levels.size(); ++g)
          if (fixed[g] && missing.contains(pair_of(f, v, g, row[g]))) ++covers;
        if (v == 0 || covers > most) {
          best = v;
          most = covers;
        }
      }
      fix(f, best);
    }
    for (std::size_t f = 0; f < levels.size(); ++f)
      for (std::size_t g = f + 1; g < levels.size(); ++g) missing.erase({f, row[f], g, row[g]});
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace shard
