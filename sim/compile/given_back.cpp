// Ranges by the numbers of their ends, found through a set with one bit each.
#include "sim/compile/given_back.h"

#include <algorithm>
#include <cassert>

namespace shard::plan {
namespace {

constexpr std::size_t kWord = 64;

[[nodiscard]] constexpr std::uint64_t bit(std::size_t n) {
  return std::uint64_t{1} << n % kWord;
}

}  // namespace

NumberSet::NumberSet(std::size_t numbers) : numbers_(numbers) {
  for (std::size_t n = numbers; levels_.empty() || n > 1;) {
    n = (n + kWord - 1) / kWord;
    levels_.emplace_back(std::max<std::size_t>(n, 1), 0);
  }
}

void NumberSet::insert(std::size_t n) {
  for (std::vector<std::uint64_t>& level : levels_) {
    std::uint64_t& word = level[n / kWord];
    const bool known = word != 0;
    word |= bit(n);
    if (known) return;
    n /= kWord;
  }
}

void NumberSet::erase(std::size_t n) {
  for (std::vector<std::uint64_t>& level : levels_) {
    std::uint64_t& word = level[n / kWord];
    word &= ~bit(n);
    if (word != 0) return;
    n /= kWord;
  }
}

std::size_t NumberSet::at_least(std::size_t n) const {
  if (n >= numbers_) return numbers_;
  for (std::size_t l = 0; l < levels_.size(); ++l) {
    const std::size_t word = n / kWord;
    if (word >= levels_[l].size()) return numbers_;
    if (const std::uint64_t rest = levels_[l][word] >> n % kWord; rest != 0) {
      n += static_cast<std::size_t>(std::countr_zero(rest));
      for (; l > 0; --l) n = n * kWord + static_cast<std::size_t>(std::countr_zero(levels_[l - 1][n]));
      return n;
    }
    n = word + 1;
  }
  return numbers_;
}

std::size_t NumberSet::at_most(std::size_t n) const {
  for (std::size_t l = 0; l < levels_.size(); ++l) {
    const std::size_t word = n / kWord;
    if (const std::uint64_t rest = levels_[l][word] << (kWord - 1 - n % kWord); rest != 0) {
      n -= static_cast<std::size_t>(std::countl_zero(rest));
      for (; l > 0; --l) n = n * kWord + kWord - 1 - static_cast<std::size_t>(std::countl_zero(levels_[l - 1][n]));
      return n;
    }
    if (word == 0) return numbers_;
    n = word - 1;
  }
  return numbers_;
}

void RangeOwners::assign(std::size_t first, std::size_t last, std::int32_t owner) {
  assert(first < last);
  if (const std::size_t before = begins_.at_most(first); before != begins_.size() && before != first) {
    Range& cut = ranges_[before];
    if (cut.end > last) {
      begins_.insert(last);
      ranges_[last] = cut;
    }
    cut.end = std::min(cut.end, first);
  }
  for (std::size_t r = begins_.at_least(first); r < last; r = begins_.at_least(r + 1)) {
    begins_.erase(r);
    if (ranges_[r].end > last) {
      begins_.insert(last);
      ranges_[last] = ranges_[r];
    }
  }
  begins_.insert(first);
  ranges_[first] = {.end = last, .owner = owner};
}

}  // namespace shard::plan
