// Arguments are pointers to values on the stack: all that is known of a value is where it begins. PyTorch's kernels
// have their output before their inputs, but for reductions, which have the input first, and for those of tensors that
// are broadcast or have gaps, which have pointers behind a table of sizes and strides.
#include "profiler/standin/kernel_output.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "profiler/standin/device_memory.h"

namespace shard::standin {
namespace {

constexpr std::size_t kMostArguments = 16, kLongestArgument = 2048;
/// Of output_by_name: a number of elements, and a function with PyTorch's table of strides (Strides, below).
constexpr int kByStrides = -1;

/// The end of this thread's stack, where the compiler's stubs keep arguments.
std::uintptr_t stack_end() {
  thread_local std::uintptr_t end = 0;
  if (end != 0) return end;
  pthread_attr_t attributes;
  void* begin = nullptr;
  std::size_t bytes = 0;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
  pthread_attr_getstack(&attributes, &begin, &bytes);
  pthread_attr_destroy(&attributes);
  return end = reinterpret_cast<std::uintptr_t>(begin) + bytes;
}

template <class Value>
Value value_at(std::uintptr_t address) {
  Value value{};
  std::memcpy(&value, reinterpret_cast<const void*>(address), sizeof(value));
  return value;
}
const void* pointer_at(std::uintptr_t address) {
  return value_at<const void*>(address);
}

/// The only argument of a reduction holds input, output, and a second output or nothing, one behind the other, and then
/// nothing (ATen/native/cuda/Reduce.cuh). What is not used of the tables before them is whatever the stack held.
const void* output_of_reduction(std::uintptr_t begin, std::uintptr_t end) {
  for (std::uintptr_t word = (begin + 7) / 8 * 8; word + 32 <= end; word += 8) {
    const void* const second = pointer_at(word + 16);
    if (is_given(pointer_at(word)) && is_given(pointer_at(word + 8)) && (second == nullptr || is_given(second)) &&
        pointer_at(word + 24) == nullptr)
      return pointer_at(word + 8);
  }
  return nullptr;
}

/// OffsetCalculator of PyTorch (ATen/cuda/detail/OffsetCalculator.cuh): a number of dimensions, a divisor with two
/// numbers to divide by it for each of 25, and then strides in bytes of each of the tensors, by dimension.
struct Strides {
  static constexpr std::size_t kMostDimensions = 25, kDivisor = 12;
  std::uintptr_t begin;

  [[nodiscard]] int dimensions() const { return value_at<int>(begin); }
  [[nodiscard]] std::uint32_t size(std::size_t dimension) const {
    return value_at<std::uint32_t>(begin + 4 + dimension * kDivisor);
  }
  [[nodiscard]] std::uint32_t stride(std::size_t dimension, std::size_t tensor, std::size_t tensors) const {
    return value_at<std::uint32_t>(strides_begin() + (dimension * tensors + tensor) * 4);
  }
  [[nodiscard]] std::uintptr_t strides_begin() const { return begin + 4 + kMostDimensions * kDivisor; }
  /// Behind the strides of so many tensors, where a pointer may stand.
  [[nodiscard]] std::uintptr_t end(std::size_t tensors) const {
    return (strides_begin() + kMostDimensions * tensors * 4 + 7) / 8 * 8;
  }
  /// From the first byte of a tensor to the first of its last element.
  [[nodiscard]] std::size_t extent(std::size_t tensor, std::size_t tensors) const {
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(dimensions()); ++i)
      bytes += std::size_t{size(i) - 1} * stride(i, tensor, tensors);
    return bytes;
  }
  /// The same to its end.
  [[nodiscard]] std::size_t bytes(std::size_t tensor, std::size_t tensors) const {
    std::uint32_t element = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(dimensions()); ++i)
      if (const std::uint32_t each = stride(i, tensor, tensors); each > 0 && (element == 0 || each < element))
        element = each;
    return extent(tensor, tensors) + std::max<std::size_t>(element, 1);
  }
  /// Whether the sizes are those of so many elements.
  [[nodiscard]] bool are_of(std::int64_t elements) const {
    const int count = dimensions();
    if (count < 1 || count > static_cast<int>(kMostDimensions)) return count == 0 && elements == 1;
    std::int64_t product = 1;
    for (std::size_t i = 0; i < static_cast<std::size_t>(count) && product > 0 && product <= elements; ++i)
      product *= size(i);
    return product == elements;
  }
};

/// The output is the first of as many pointers as there are tensors. What the table does not use is whatever the stack
/// held, so all of them have to reach where their strides say.
Written output_by_strides(int elements, Strides strides, std::uintptr_t stack) {
  if (strides.end(1) > stack || !strides.are_of(elements)) return {};
  for (const std::size_t tensors : {3, 2, 1, 4, 5, 6}) {
    const std::uintptr_t pointers = strides.end(tensors);
    if (pointers + tensors * sizeof(void*) > stack) continue;
    bool all = true;
    for (std::size_t i = 0; i < tensors && all; ++i) {
      const auto* const pointer = static_cast<const std::byte*>(pointer_at(pointers + i * sizeof(void*)));
      all = is_given(pointer) && is_given(pointer + strides.extent(i, tensors));
    }
    if (all) return {pointer_at(pointers), strides.bytes(0, tensors)};
  }
  return {};
}

/// The pointers at which values begin, in the arguments' order; an empty tensor has no address, so that a sum of
/// nothing has its output first.
const void* nth_pointer(std::span<const std::uintptr_t> at, int wanted) {
  int pointers = 0;
  const void* last = nullptr;
  for (const std::uintptr_t each : at) {
    const void* const pointer = pointer_at(each);
    if (!is_given(pointer)) continue;
    last = pointer;
    if (++pointers == wanted) return pointer;
  }
  return last;
}

}  // namespace

int output_by_name(const char* name) {
  constexpr struct {
    const char* part;
    int output;
  } kKernels[] = {{"3cub", 2},
                  {"index_elementwise", 0},
                  {"6thrust", 0},
                  {"compute_cuda_kernel", 3},  // of repeat_interleave
                  {"embedding_backward_feature_kernel", 3},
                  {"EmbeddingBag_updateOutputKernel", 4},
                  {"18elementwise_kernel", kByStrides}};
  for (const auto& each : kKernels)
    if (std::strstr(name, each.part) != nullptr) return each.output;
  return kFirstPointer;
}

Written output_of(void* const* arguments, int which) {
  if (arguments == nullptr || which == 0) return {};
  const auto begin = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)), end = stack_end();
  // Of a number that nobody says: up to the first that points elsewhere.
  std::array<std::uintptr_t, kMostArguments> at{};
  std::size_t count = 0;
  const auto on_stack = [&](std::uintptr_t address) {
    return address >= begin && address < end && end - address >= sizeof(void*);
  };
  while (count < kMostArguments && on_stack(reinterpret_cast<std::uintptr_t>(arguments + count))) {
    at[count] = reinterpret_cast<std::uintptr_t>(arguments[count]);
    if (!on_stack(at[count])) break;
    ++count;
  }
  if (count == 1) return {output_of_reduction(at[0], std::min(at[0] + kLongestArgument, end))};
  const std::span<const std::uintptr_t> values(at.data(), count);
  if (which != kByStrides || count < 2) return {nth_pointer(values, which)};
  const Written written = output_by_strides(value_at<int>(at[0]), {at[1]}, end);
  return written.begin != nullptr ? written : Written{nth_pointer(values.first(2), kFirstPointer)};
}

}  // namespace shard::standin
