// Tensors as eager PyTorch counts them: who holds an object, who holds its memory, and how it lies there.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>

#include "sim/like/eager/tape.h"
#include "traces/base/ids.h"
#include "traces/base/units.h"

namespace shard::like::eager {

enum class Scalar : std::uint8_t { f32, f16, bf16, i64, boolean };

[[nodiscard]] constexpr std::int64_t bytes_of(Scalar scalar) {
  switch (scalar) {
    case Scalar::f32: return 4;
    case Scalar::f16:
    case Scalar::bf16: return 2;
    case Scalar::i64: return 8;
    case Scalar::boolean: return 1;
  }
  return 0;
}
[[nodiscard]] constexpr bool is_half(Scalar scalar) {
  return scalar == Scalar::f16 || scalar == Scalar::bf16;
}

/// Sizes or strides, outermost first.
struct Dims {
  static constexpr std::size_t kMost = 6;
  std::array<std::int64_t, kMost> of{};
  std::size_t rank = 0;

  Dims() = default;
  Dims(std::initializer_list<std::int64_t> values) {
    for (const std::int64_t v : values) of[rank++] = v;
  }
  [[nodiscard]] std::int64_t operator[](std::size_t i) const { return of[i]; }
  [[nodiscard]] std::int64_t& operator[](std::size_t i) { return of[i]; }
  /// From the end: back(0) is the last.
  [[nodiscard]] std::int64_t back(std::size_t i) const { return of[rank - 1 - i]; }
  [[nodiscard]] std::int64_t product() const {
    std::int64_t p = 1;
    for (std::size_t i = 0; i < rank; ++i) p *= of[i];
    return p;
  }
  void push(std::int64_t v) { of[rank++] = v; }
  friend bool operator==(const Dims& a, const Dims& b) {
    return std::equal(a.of.begin(), a.of.begin() + a.rank, b.of.begin(), b.of.begin() + b.rank);
  }
};

/// Of a tensor whose elements lie one behind the other, the last dimension innermost.
[[nodiscard]] Dims contiguous_strides(const Dims& sizes);
/// Whether strides are such; dimensions of one element do not count.
[[nodiscard]] bool is_contiguous(const Dims& sizes, const Dims& strides);
/// Whether elements fill their memory without holes, in some order of the dimensions.
[[nodiscard]] bool is_dense(const Dims& sizes, const Dims& strides);
/// Dense strides in the order of `strides` (at::infer_dense_strides).
[[nodiscard]] Dims dense_strides(const Dims& sizes, const Dims& strides);
/// Of `sizes` seen as `wanted`, none where elements would have to be copied (at::detail::computeStride).
[[nodiscard]] std::optional<Dims> view_strides(const Dims& sizes, const Dims& strides, const Dims& wanted);
/// Of a result of several operands (TensorIterator): both, aligned at the end.
[[nodiscard]] Dims broadcast(const Dims& a, const Dims& b);

/// Memory of one or more tensors; given back when the last of them goes.
class Storage {
 public:
  Storage(Tape& tape, BufferId buffer) : tape_(tape), buffer_(buffer) {}
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  ~Storage() { drop(); }
  [[nodiscard]] Tape& tape() const { return tape_; }
  [[nodiscard]] BufferId buffer() const { return buffer_; }
  /// resize_(0): the memory goes, whoever holds the storage.
  void drop() {
    if (buffer_ != BufferId{}) tape_.give_back(buffer_);
    buffer_ = {};
  }
  /// resize_() of one that has none.
  void refill(BufferId buffer) { buffer_ = buffer; }
  [[nodiscard]] bool has_memory() const { return buffer_ != BufferId{}; }

 private:
  Tape& tape_;
  BufferId buffer_;
};

/// Where a tensor's gradient goes: an output of a node of the graph, or nowhere.
struct Source {
  std::int32_t node = -1;
  std::int32_t output = 0;
};

/// What tensors share that are the same object.
struct Object {
  std::shared_ptr<Storage> storage{};
  std::shared_ptr<Object> base{};  ///< of a view: what it is a view of, which lives as long
  Dims sizes{}, strides{};
  Scalar scalar = Scalar::f32;
  Source source{};
  std::int32_t parameter = -1;  ///< a leaf that collects its gradient
};

/// A reference to an object. Single-threaded.
class Tensor {
 public:
  Tensor() = default;
  /// New memory that nobody else holds.
  Tensor(Tape& tape, BufferId buffer, const Dims& sizes, const Dims& strides, Scalar scalar)
      : object_(std::make_shared<Object>(Object{.storage = std::make_shared<Storage>(tape, buffer),
                                                .sizes = sizes,
                                                .strides = strides,
                                                .scalar = scalar})) {}

  [[nodiscard]] explicit operator bool() const { return object_ != nullptr; }
  [[nodiscard]] const Dims& sizes() const { return object_->sizes; }
  [[nodiscard]] std::int64_t size(std::size_t i) const { return object_->sizes[i]; }
  [[nodiscard]] const Dims& strides() const { return object_->strides; }
  [[nodiscard]] Scalar scalar() const { return object_->scalar; }
  [[nodiscard]] std::int64_t elements() const { return object_->sizes.product(); }
  [[nodiscard]] Bytes bytes() const { return Bytes{elements() * bytes_of(scalar())}; }
  [[nodiscard]] bool is_contiguous() const { return eager::is_contiguous(sizes(), strides()); }
  [[nodiscard]] Source source() const { return object_->source; }
  [[nodiscard]] std::int32_t parameter() const { return object_->parameter; }
  [[nodiscard]] bool needs_gradient() const { return object_->source.node >= 0 || object_->parameter >= 0; }
  /// Nobody else holds the object.
  [[nodiscard]] bool alone() const { return object_.use_count() == 1; }
  /// Nor its memory.
  [[nodiscard]] bool alone_in_memory() const { return alone() && object_->storage.use_count() == 1; }
  [[nodiscard]] bool is_view() const { return object_->base != nullptr; }

  /// Another object over the same memory, without history.
  [[nodiscard]] Tensor view(const Dims& sizes, const Dims& strides) const;
  /// The same, lying contiguously, that is the view of nothing (_unsafe_view).
  [[nodiscard]] Tensor seen_as(const Dims& sizes) const;
  /// What backward keeps of a tensor: the memory, not the history.
  [[nodiscard]] Tensor saved() const {
    storage().tape().note_saved();
    return view(sizes(), strides());
  }
  void set_source(Source source) { object_->source = source; }
  void set_parameter(std::int32_t parameter) { object_->parameter = parameter; }
  [[nodiscard]] Storage& storage() const { return *object_->storage; }

 private:
  std::shared_ptr<Object> object_;
};

}  // namespace shard::like::eager
