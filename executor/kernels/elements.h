// What a kernel is handed: a pointer to elements and the type they are stored as.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>

#include "executor/numeric/half.h"
#include "traces/base/dtype.h"

namespace shard {

template <class T>
inline constexpr Dtype kDtypeOf = Dtype::f32;
template <>
inline constexpr Dtype kDtypeOf<Bf16> = Dtype::bf16;
template <>
inline constexpr Dtype kDtypeOf<F16> = Dtype::f16;

/// Floating-point elements: f32, bf16 or f16. Not owned; null: there is no such operand. The floating-point elements of
/// one call have one type unless the kernel says otherwise. Kernels compute in fp32: what they read is widened exactly,
/// what they store is rounded to nearest even, once per element.
class Elements {
 public:
  constexpr Elements() = default;
  constexpr Elements(std::nullptr_t) {}                                 // NOLINT(google-explicit-constructor)
  constexpr Elements(float* data) : data_(data), dtype_(Dtype::f32) {}  // NOLINT(google-explicit-constructor)
  constexpr Elements(Bf16* data) : data_(data), dtype_(Dtype::bf16) {}  // NOLINT(google-explicit-constructor)
  constexpr Elements(F16* data) : data_(data), dtype_(Dtype::f16) {}    // NOLINT(google-explicit-constructor)
  Elements(std::byte* data, Dtype dtype) : data_(data), dtype_(dtype) {}
  [[nodiscard]] Dtype dtype() const { return dtype_; }
  [[nodiscard]] bool present() const { return data_ != nullptr; }
  [[nodiscard]] std::byte* bytes() const { return static_cast<std::byte*>(data_); }
  /// The elements from number `first` on.
  [[nodiscard]] Elements from(std::int64_t first) const {
    return {bytes() + first * bytes_per_element(dtype_), dtype_};
  }
  /// Null stays null, of whatever type.
  template <class T>
  [[nodiscard]] T* as() const {
    assert(data_ == nullptr || dtype_ == kDtypeOf<T>);
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
  Dtype dtype_ = Dtype::f32;
};

/// The same, only read.
class ConstElements {
 public:
  constexpr ConstElements() = default;
  constexpr ConstElements(std::nullptr_t) {}                   // NOLINT(google-explicit-constructor)
  constexpr ConstElements(const float* data) : data_(data) {}  // NOLINT(google-explicit-constructor)
  constexpr ConstElements(const Bf16* data)
      : data_(data), dtype_(Dtype::bf16) {}                                      // NOLINT(google-explicit-constructor)
  constexpr ConstElements(const F16* data) : data_(data), dtype_(Dtype::f16) {}  // NOLINT(google-explicit-constructor)
  ConstElements(Elements e) : data_(e.bytes()), dtype_(e.dtype()) {}             // NOLINT(google-explicit-constructor)
  ConstElements(const std::byte* data, Dtype dtype) : data_(data), dtype_(dtype) {}
  [[nodiscard]] Dtype dtype() const { return dtype_; }
  [[nodiscard]] bool present() const { return data_ != nullptr; }
  [[nodiscard]] const std::byte* bytes() const { return static_cast<const std::byte*>(data_); }
  [[nodiscard]] ConstElements from(std::int64_t first) const {
    return {bytes() + first * bytes_per_element(dtype_), dtype_};
  }
  template <class T>
  [[nodiscard]] const T* as() const {
    assert(data_ == nullptr || dtype_ == kDtypeOf<T>);
    return static_cast<const T*>(data_);
  }

 private:
  const void* data_ = nullptr;
  Dtype dtype_ = Dtype::f32;
};

/// fn(T{}) with T the element type: float, Bf16 or F16.
template <class F>
void with_type(Dtype dtype, const F& fn) {
  switch (dtype) {
    case Dtype::f32: return fn(float{});
    case Dtype::bf16: return fn(Bf16{});
    case Dtype::f16: return fn(F16{});
    case Dtype::i32:
    case Dtype::i64: break;
  }
  assert(false && "kernels compute with floating point");
}

}  // namespace shard
