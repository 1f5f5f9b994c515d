// Units as types: a quantity and its unit travel together, so bytes and elements cannot be mixed.
#pragma once

#include <compare>
#include <cstdint>

namespace shard {

/// A quantity of one unit. Same-unit sums and integer scaling only; anything else needs `count()`.
template <class Tag, class Rep>
class Unit {
 public:
  using rep = Rep;
  constexpr Unit() = default;
  constexpr explicit Unit(Rep count) : count_(count) {}
  [[nodiscard]] constexpr Rep count() const { return count_; }

  constexpr Unit& operator+=(Unit other) {
    count_ += other.count_;
    return *this;
  }
  constexpr Unit& operator-=(Unit other) {
    count_ -= other.count_;
    return *this;
  }
  friend constexpr Unit operator+(Unit a, Unit b) { return Unit{static_cast<Rep>(a.count_ + b.count_)}; }
  friend constexpr Unit operator-(Unit a, Unit b) { return Unit{static_cast<Rep>(a.count_ - b.count_)}; }
  friend constexpr Unit operator*(Unit a, Rep factor) { return Unit{static_cast<Rep>(a.count_ * factor)}; }
  friend constexpr Unit operator*(Rep factor, Unit a) { return a * factor; }
  friend constexpr auto operator<=>(Unit, Unit) = default;

 private:
  Rep count_{};
};

/// Memory and message sizes. 1 MiB = 2^20 bytes, 1 MB = 10^6 bytes.
using Bytes = Unit<struct BytesTag, std::int64_t>;
/// Number of tensor elements; ZeRO configurations count chunks and buckets in these.
using Elems = Unit<struct ElemsTag, std::int64_t>;
using Seconds = Unit<struct SecondsTag, double>;
/// Floating-point operations; a multiply-add counts two.
using Flops = Unit<struct FlopsTag, double>;
using FlopsPerSecond = Unit<struct FlopsPerSecondTag, double>;
/// 1 GB/s = 1e9 bytes per second, never 2^30.
using BytesPerSecond = Unit<struct BytesPerSecondTag, double>;

constexpr Seconds operator/(Bytes bytes, BytesPerSecond rate) {
  return Seconds{static_cast<double>(bytes.count()) / rate.count()};
}
constexpr Seconds operator/(Flops work, FlopsPerSecond rate) {
  return Seconds{work.count() / rate.count()};
}

/// `value` rounded up to the next multiple of `multiple` (> 0).
template <class Tag>
constexpr Unit<Tag, std::int64_t> round_up(Unit<Tag, std::int64_t> value, std::int64_t multiple) {
  return Unit<Tag, std::int64_t>{(value.count() + multiple - 1) / multiple * multiple};
}

}  // namespace shard
