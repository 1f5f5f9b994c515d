// Is a kernel's output found among its arguments, also where it stands behind a table of strides?
#include "profiler/standin/kernel_output.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "profiler/standin/device_memory.h"

namespace shard::standin {
namespace {

constexpr std::size_t kRoom = std::size_t{1} << 20;
constexpr const char* kByStridesName =
    "_ZN2at6native18elementwise_kernelILi128ELi4EZNS0_22gpu_kernel_impl_nocastEEEviT1_";

/// What PyTorch hands to elementwise_kernel, as it lies on the stack: a table of sizes and strides of 25 dimensions,
/// most of it never written, and behind it the tensors.
class Function {
 public:
  Function(const std::vector<std::uint32_t>& sizes, const std::vector<std::byte*>& tensors, std::mt19937_64& random) {
    for (std::size_t at = 0; at < bytes_.size(); at += 8) put(at, random());
    put(0, static_cast<int>(sizes.size()));
    const std::size_t count = tensors.size();
    std::uint32_t stride = 4;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      put(4 + i * 12, sizes[i]);
      for (std::size_t tensor = 0; tensor < count; ++tensor)
        // Each but the output may be broadcast.
        put(4 + 25 * 12 + (i * count + tensor) * 4, tensor > 0 && random() % 2 == 0 ? 0 : stride);
      stride *= sizes[i];
    }
    const std::size_t pointers = (4 + 25 * 12 + 25 * count * 4 + 7) / 8 * 8;
    for (std::size_t tensor = 0; tensor < count; ++tensor) put(pointers + tensor * 8, tensors[tensor]);
  }
  void* begin() { return bytes_.data(); }

 private:
  template <class Value>
  void put(std::size_t at, Value value) {
    std::memcpy(bytes_.data() + at, &value, sizeof value);
  }
  alignas(8) std::array<std::byte, 2048> bytes_;
};

TEST(KernelOutput, IsTheFirstOfThePointersBehindATableOfStrides) {
  auto* const memory = static_cast<std::byte*>(allocate(64 * kRoom));
  std::mt19937_64 random(7);
  const int which = output_by_name(kByStridesName);
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::uint32_t> sizes(1 + random() % 4);
    int elements = 1;
    for (std::uint32_t& size : sizes)
      elements *= static_cast<int>(size = static_cast<std::uint32_t>(1 + random() % 20));
    std::vector<std::byte*> tensors(1 + random() % 5);
    for (std::byte*& each : tensors) each = memory + random() % 60 * kRoom;
    Function function(sizes, tensors, random);
    void* arguments[] = {&elements, function.begin(), nullptr};
    const Written written = output_of(arguments, which);
    ASSERT_EQ(written.begin, tensors[0]) << "of " << tensors.size() << " tensors, round " << round;
    ASSERT_EQ(written.bytes, static_cast<std::size_t>(elements) * 4);
  }
  release(memory);
}

TEST(KernelOutput, IsTheFirstPointerOfAnythingElse) {
  auto* const memory = static_cast<std::byte*>(allocate(kRoom));
  std::int64_t elements = 12;
  std::byte* output = memory;
  std::byte* input = memory + 512;
  void* arguments[] = {&elements, &output, &input, nullptr};
  EXPECT_EQ(output_of(arguments, output_by_name("_ZN2at6native29vectorized_elementwise_kernelILi4E")).begin, output);
  EXPECT_EQ(output_of(arguments, output_by_name("_ZN3cub17DeviceReduceKernel")).begin, input);
  EXPECT_EQ(output_of(arguments, output_by_name("_ZN2at6native24index_elementwise_kernel")).begin, nullptr);
  release(memory);
}

TEST(KernelOutput, IsNotGuessedBehindATableOfOtherElements) {
  auto* const memory = static_cast<std::byte*>(allocate(kRoom));
  std::mt19937_64 random(7);
  Function function({5, 7}, {memory, memory + 512}, random);
  int elements = 36;
  void* arguments[] = {&elements, function.begin(), nullptr};
  EXPECT_EQ(output_of(arguments, output_by_name(kByStridesName)).begin, nullptr);
  release(memory);
}

}  // namespace
}  // namespace shard::standin
