// Strides and views.
#include "sim/like/eager/tensor.h"

#include <algorithm>

namespace shard::like::eager {

Dims contiguous_strides(const Dims& sizes) {
  Dims strides = sizes;
  std::int64_t next = 1;
  for (std::size_t i = sizes.rank; i-- > 0;) {
    strides[i] = next;
    next *= std::max<std::int64_t>(sizes[i], 1);
  }
  return strides;
}

bool is_contiguous(const Dims& sizes, const Dims& strides) {
  std::int64_t next = 1;
  for (std::size_t i = sizes.rank; i-- > 0;) {
    if (sizes[i] == 1) continue;
    if (strides[i] != next) return false;
    next *= sizes[i];
  }
  return true;
}

namespace {

/// Dimensions from the innermost out.
std::array<std::size_t, Dims::kMost> by_stride(const Dims& sizes, const Dims& strides) {
  std::array<std::size_t, Dims::kMost> order{};
  for (std::size_t i = 0; i < sizes.rank; ++i) order[i] = sizes.rank - 1 - i;
  std::stable_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(sizes.rank),
                   [&](std::size_t a, std::size_t b) { return strides[a] < strides[b]; });
  return order;
}

}  // namespace

bool is_dense(const Dims& sizes, const Dims& strides) {
  std::int64_t next = 1;
  const auto order = by_stride(sizes, strides);
  for (std::size_t k = 0; k < sizes.rank; ++k) {
    if (sizes[order[k]] == 1) continue;
    if (strides[order[k]] != next) return false;
    next *= sizes[order[k]];
  }
  return true;
}

Dims dense_strides(const Dims& sizes, const Dims& strides) {
  Dims dense = sizes;
  std::int64_t next = 1;
  const auto order = by_stride(sizes, strides);
  for (std::size_t k = 0; k < sizes.rank; ++k) {
    dense[order[k]] = next;
    next *= std::max<std::int64_t>(sizes[order[k]], 1);
  }
  return dense;
}

std::optional<Dims> view_strides(const Dims& sizes, const Dims& strides, const Dims& wanted) {
  Dims result = wanted;
  auto at = static_cast<std::ptrdiff_t>(wanted.rank) - 1;
  std::int64_t base = sizes.rank > 0 ? strides.back(0) : 1;
  std::int64_t old_elements = 1, new_elements = 1;
  for (std::size_t d = sizes.rank; d-- > 0;) {
    old_elements *= sizes[d];
    // The end of a run of dimensions that lie one in the other.
    if (d != 0 && (sizes[d - 1] == 1 || strides[d - 1] == old_elements * base)) continue;
    while (at >= 0 && (new_elements < old_elements || wanted[static_cast<std::size_t>(at)] == 1)) {
      result[static_cast<std::size_t>(at)] = new_elements * base;
      new_elements *= wanted[static_cast<std::size_t>(at)];
      --at;
    }
    if (new_elements != old_elements) return std::nullopt;
    if (d > 0) {
      base = strides[d - 1];
      old_elements = new_elements = 1;
    }
  }
  if (at != -1) return std::nullopt;
  return result;
}

Dims broadcast(const Dims& a, const Dims& b) {
  const Dims& longer = a.rank >= b.rank ? a : b;
  const Dims& shorter = a.rank >= b.rank ? b : a;
  Dims result = longer;
  for (std::size_t i = 0; i < shorter.rank; ++i) {
    std::int64_t& size = result[longer.rank - 1 - i];
    if (size == 1) size = shorter.back(i);
  }
  return result;
}

Tensor Tensor::view(const Dims& sizes, const Dims& strides) const {
  Tensor other;
  other.object_ = std::make_shared<Object>(Object{.storage = object_->storage,
                                                  .base = object_->base ? object_->base : object_,
                                                  .sizes = sizes,
                                                  .strides = strides,
                                                  .scalar = object_->scalar});
  return other;
}

Tensor Tensor::seen_as(const Dims& sizes) const {
  Tensor other = view(sizes, contiguous_strides(sizes));
  other.object_->base = nullptr;
  return other;
}

}  // namespace shard::like::eager
