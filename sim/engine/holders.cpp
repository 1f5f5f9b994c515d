// Groups of buffers by the pattern of their names.
#include "sim/engine/holders.h"

#include <algorithm>
#include <string_view>
#include <tuple>

#include "sim/ir/effects.h"

namespace shard::engine {
namespace {

/// Layers that differ only in their number hold one kind of thing: "h.0.mlp" and "h.1.mlp" become "h.*.mlp".
void append_without_numbers(std::string& out, std::string_view name) {
  for (std::size_t i = 0; i < name.size();) {
    const auto digit = [&](std::size_t k) { return k < name.size() && name[k] >= '0' && name[k] <= '9'; };
    const bool starts = digit(i) && (i == 0 || name[i - 1] == '.' || name[i - 1] == ' ' || name[i - 1] == '[');
    std::size_t end = i;
    while (digit(end)) ++end;
    const bool whole = end == name.size() || name[end] == '.' || name[end] == ' ' || name[end] == ']';
    if (starts && whole) {
      out += '*';
      i = end;
    } else {
      out += name[i++];
    }
  }
}

}  // namespace

std::size_t Holders::group_of(std::size_t buffer) {
  std::int32_t& group = group_of_[buffer];
  if (group >= 0) return static_cast<std::size_t>(group);
  const plan::Buffer& b = plan_.buffers[buffer];
  std::string key(1, static_cast<char>('a' + static_cast<int>(b.category)));
  append_without_numbers(key, b.name);
  const auto [it, is_new] = known_.try_emplace(std::move(key), static_cast<std::int32_t>(groups_.size()));
  if (is_new) groups_.push_back({.pattern = it->first.substr(1), .category = b.category});
  group = it->second;
  return static_cast<std::size_t>(group);
}

std::vector<Holder> Holders::largest(const std::vector<bool>& live, std::size_t count) {
  struct Sum {
    Bytes bytes{0};
    std::int32_t buffers = 0;
    std::size_t first = 0;
    std::size_t group = 0;
  };
  std::vector<Sum> sums;
  for (std::size_t b = 0; b < live.size(); ++b) {
    if (!live[b]) continue;
    const std::size_t group = group_of(b);
    if (group >= sums.size()) sums.resize(groups_.size());
    Sum& sum = sums[group];
    if (sum.buffers++ == 0) sum.first = b;
    sum.bytes += plan::arena_bytes(plan_.buffers[b]);
    sum.group = group;
  }
  std::erase_if(sums, [](const Sum& sum) { return sum.buffers == 0; });
  const auto before = [&](const Sum& a, const Sum& b) {
    if (a.bytes != b.bytes) return a.bytes > b.bytes;
    const Group& x = groups_[a.group];
    const Group& y = groups_[b.group];
    return std::tie(x.pattern, x.category) < std::tie(y.pattern, y.category);
  };
  const std::size_t kept = std::min(count, sums.size());
  std::partial_sort(sums.begin(), sums.begin() + static_cast<std::ptrdiff_t>(kept), sums.end(), before);
  std::vector<Holder> holders;
  for (std::size_t i = 0; i < kept; ++i) {
    const Sum& sum = sums[i];
    const Group& group = groups_[sum.group];
    holders.push_back({.name = sum.buffers > 1 ? group.pattern : std::string(plan_.buffers[sum.first].name),
                       .category = group.category,
                       .bytes = sum.bytes,
                       .buffers = sum.buffers});
  }
  return holders;
}

}  // namespace shard::engine
