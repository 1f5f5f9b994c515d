// Is memory of the emulated device kept apart from the host's, poisoned, guarded, and limited?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

#include "tests/cuda/emulated_support.h"

namespace shard::cuda {
namespace {

using model::Access;
using testing::HasSubstr;

SHARD_KERNEL add_kernel(std::int64_t n, const float* x, float* y) {
  for (std::int64_t i = first_element(); i < n; i += element_stride()) y[i] += x[i];
}
SHARD_KERNEL set_kernel(std::int64_t at, float value, float* y) {
  y[at] = value;
}
SHARD_KERNEL nothing_kernel() {}

struct Inside {
  std::int64_t number = 0;
  const float* x = nullptr;
};
SHARD_KERNEL inside_kernel(Inside inside, float* y) {
  y[0] = inside.x[inside.number];
}

TEST(EmulatedMemory, WhatIsGivenOutReadsAsNaN) {
  EmulatedDevice device;
  const Stream stream = device.stream();
  for (const float each : device.read(stream, device.room<float>(100), 100)) EXPECT_NE(each, each);
  auto* const pinned = device->allocate_pinned(Bytes{64}).value();
  for (int byte = 0; byte < 64; ++byte) EXPECT_EQ(pinned[byte], std::byte{0xFF});
}

TEST(EmulatedMemory, CapacityIsKept) {
  EmulatedDevice device({.capacity = Bytes{10240}});
  auto* const half = device->allocate(Bytes{5000}).value();
  EXPECT_EQ(device->memory_info()->free, Bytes{5120});
  EXPECT_EQ(device->allocate(Bytes{5121}).error().code, Errc::does_not_fit);
  auto* const rest = device->allocate(Bytes{5120}).value();
  EXPECT_EQ(device->memory_info()->free, Bytes{});
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(half) % 512, 0U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(rest) % 512, 0U);
  device->free(half);
  EXPECT_EQ(device->memory_info()->free, Bytes{5120});
  EXPECT_EQ(device->memory_info()->total, Bytes{10240});
}

TEST(EmulatedMemory, ManyAllocationsReuseWhatWasFreed) {
  EmulatedDevice device({.capacity = Bytes{4096}});
  // More addresses than are reserved.
  std::byte* kept = device->allocate(Bytes{1000}).value();
  for (int i = 0; i < 30'000; ++i) {
    std::byte* const next = device->allocate(Bytes{1000 + i % 1000}).value();
    ASSERT_NE(next, kept);
    device->free(kept);
    kept = next;
  }
}

TEST(EmulatedMemoryDeathTest, TheHostCannotFollowAPointerOfTheDevice) {
  EmulatedDevice device;
  const Stream stream = device.stream();
  float* const memory = device.make(stream, std::vector<float>{1.0F});
  EXPECT_TRUE(device.finish(stream));
  EXPECT_DEATH(static_cast<void>(*const_cast<volatile float*>(memory)), "");
  EXPECT_DEATH(std::memset(memory, 0, 4), "");
}

TEST(EmulatedMemory, ArithmeticOnPointersOfTheDeviceWorks) {
  EmulatedDevice device;
  const Stream stream = device.stream();
  float* const x = device.make(stream, std::vector<float>{1, 2, 3, 4});
  float* const y = device.make(stream, std::vector<float>{10, 20, 30, 40});
  launch(stream, {}, add_kernel, 2, x + 1, y + 2);
  EXPECT_THAT(device.read(stream, y, 4), testing::ElementsAre(10, 20, 32, 43));
}

TEST(EmulatedMemoryDeathTest, PointersInsideOtherArgumentsCannotBeFollowed) {
  EmulatedDevice device;
  const Stream stream = device.stream();
  float* const x = device.make(stream, std::vector<float>{1, 2, 3, 4});
  float* const y = device.room<float>(1);
  launch(stream, {}, inside_kernel, Inside{2, x}, y);
  EXPECT_DEATH(static_cast<void>(device.finish(stream)), "");
}

TEST(EmulatedMemory, KernelsUsePinnedMemory) {
  EmulatedDevice device;
  const Stream stream = device.stream();
  auto* const pinned = reinterpret_cast<float*>(device->allocate_pinned(Bytes{8}).value());
  pinned[0] = 1;
  pinned[1] = 2;
  float* const x = device.make(stream, std::vector<float>{5, 6});
  launch(stream, {}, add_kernel, 2, x, pinned);
  EXPECT_EQ(pinned[0], 1) << "before the stream came to it";
  EXPECT_TRUE(device.finish(stream));
  EXPECT_EQ(pinned[0], 6);
  EXPECT_EQ(pinned[1], 8);
}

TEST(EmulatedMemory, PointersThatAKernelCannotHaveAreRefused) {
  const auto refusal = [](auto make_pointer) {
    EmulatedDevice device;
    const Stream stream = device.stream();
    float* const y = device.room<float>(4);
    EXPECT_TRUE(device->begin_op(stream, {Rank{1}, OpId{5}, "add", {}}));
    launch(stream, {}, add_kernel, 1, make_pointer(device), y);
    return said(device->end_op(stream));
  };
  std::vector<float> host(4);
  EXPECT_EQ(refusal([&](EmulatedDevice&) { return host.data(); }),
            "rank 1 op 5 'add': argument 2 of a kernel points to memory of the host that is not pinned");
  EXPECT_THAT(refusal([&](EmulatedDevice& device) { return device.room<float>(1) + 2000; }),
              HasSubstr("argument 2 of a kernel points to memory of the device that is not allocated"));
  EXPECT_THAT(refusal([&](EmulatedDevice& device) {
                auto* const freed = device.room<float>(4);
                device->free(reinterpret_cast<std::byte*>(freed));
                return freed;
              }),
              HasSubstr("argument 2 of a kernel points to memory of the device that is not allocated"));
  EXPECT_EQ(refusal([&](EmulatedDevice& device) { return device.room<float>(4); }), "no error");
}

TEST(EmulatedMemory, ARefusedLaunchOutsideOfOpsIsToldByTheNextCall) {
  EmulatedDevice device;
  const Stream stream = device.stream("compute");
  float host = 0;
  launch(stream, {}, set_kernel, 0, 1.0F, &host);
  launch(stream, {}, nothing_kernel);
  EXPECT_THAT(said(device->make_event()), HasSubstr("work of no op on stream 'compute': argument 3 of a kernel"));
  EXPECT_EQ(host, 0);
}

TEST(EmulatedMemory, CopiesAndFillsStayWithinAllocations) {
  std::array<std::byte, 64> host{};
  const auto outcome = [&](auto work) {
    EmulatedDevice device;
    const Stream stream = device.stream();
    return said(work(device, stream, device->allocate(Bytes{32}).value()));
  };
  const auto to = [&](std::int64_t offset, std::int64_t bytes) {
    return outcome([&](EmulatedDevice& device, Stream stream, std::byte* memory) {
      return device->copy(stream, memory + offset, host.data(), bytes);
    });
  };
  EXPECT_EQ(to(0, 32), "no error");
  EXPECT_THAT(to(1, 32), HasSubstr("reaches beyond"));
  EXPECT_THAT(to(-1, 8), HasSubstr("is of the device, and not allocated"));
  EXPECT_THAT(to(4096, 8), HasSubstr("is of the device, and not allocated"));
  EXPECT_THAT(outcome([&](EmulatedDevice& device, Stream stream, std::byte* memory) {
                return device->copy(stream, host.data(), memory + 16, 32);
              }),
              HasSubstr("reaches beyond"));
  EXPECT_THAT(outcome([&](EmulatedDevice& device, Stream stream, std::byte*) {
                return device->fill(stream, host.data(), 0, 32);
              }),
              HasSubstr("neither of the device nor pinned"));
}

#if !defined(__SANITIZE_ADDRESS__)
TEST(EmulatedMemory, AWriteNextToAnAllocationIsTold) {
  for (const std::int64_t at : {-1, 4, 100}) {
    EmulatedDevice device;
    const Stream stream = device.stream();
    float* const y = device.room<float>(4);
    const auto done = as_op(*device, stream, 3, {}, [&] { launch(stream, {}, set_kernel, at, 1.0F, y); });
    EXPECT_TRUE(done);
    EXPECT_THAT(said(device.finish(stream)), HasSubstr("rank 0 op 3 'three': a kernel wrote next to 16 bytes"));
  }
}
#else
TEST(EmulatedMemoryDeathTest, WhatAnOpDidNotDeclareCannotBeTouched) {
  EmulatedDevice device;
  const Stream stream = device.stream();
  float* const y = device.room<float>(64);
  EXPECT_TRUE(
      as_op(*device, stream, 3, {range_of(y, 4, Access::update)}, [&] { launch(stream, {}, set_kernel, 8, 1.0F, y); }));
  EXPECT_DEATH(static_cast<void>(device.finish(stream)), "use-after-poison");
}
#endif

TEST(EmulatedMemory, WhatAnOpDidNotDeclareIsRefused) {
  const auto outcome = [](const std::vector<int>& declared, auto work) {
    EmulatedDevice device;
    const Stream stream = device.stream();
    float* const memory = device.room<float>(64);
    // Of 16 elements each: 0 is read, 1 written.
    const std::vector<Range> ranges{range_of(memory, 16, Access::read), range_of(memory + 32, 16, Access::write)};
    std::vector<Range> some;
    for (const int each : declared) some.push_back(ranges[static_cast<std::size_t>(each)]);
    Result<void> inside;
    const auto ended = as_op(*device, stream, 6, some, [&] { inside = work(device, stream, memory); });
    return said(inside ? ended : inside);
  };
  const auto launched = [](EmulatedDevice&, Stream stream, float* memory) {
    launch(stream, {}, add_kernel, 16, memory, memory + 32);
    return Result<void>();
  };
  EXPECT_EQ(outcome({0, 1}, launched), "no error");
  EXPECT_EQ(outcome({}, launched), "no error") << "an op without ranges says nothing of them";
  EXPECT_THAT(outcome({0}, launched), HasSubstr("rank 0 op 6 'six': argument 3 of a kernel is at offset 128"));
  EXPECT_THAT(outcome({1}, launched), HasSubstr("argument 2 of a kernel"));
  const auto copied = [](EmulatedDevice& device, Stream stream, float* memory) {
    return device->copy(stream, memory + 32, memory, 64);
  };
  EXPECT_EQ(outcome({0, 1}, copied), "no error");
  EXPECT_THAT(outcome({0}, copied), HasSubstr("64 bytes at offset 128 of 256 bytes of the device are written"));
  EXPECT_THAT(outcome({1}, copied), HasSubstr("are read, which the op did not declare"));
  EXPECT_THAT(outcome({0, 1}, [](EmulatedDevice& device, Stream stream,
                                 float* memory) { return device->fill(stream, memory, 0, 4); }),
              HasSubstr("are written, which the op did not declare"));
}

TEST(EmulatedMemory, ResultsHoldNaNUntilTheOpWritesThem) {
  for (const bool poisons : {true, false}) {
    EmulatedDevice device({.poison_results = poisons});
    const Stream stream = device.stream();
    float* const x = device.make(stream, std::vector<float>{1, 2, 3});
    float* const y = device.make(stream, std::vector<float>{4, 5, 6});
    const std::vector<Range> ranges{range_of(x, 3, Access::update), range_of(y, 3, Access::write)};
    // Two kernels: what the first one wrote stays.
    EXPECT_TRUE(as_op(*device, stream, 1, ranges, [&] {
      launch(stream, {}, set_kernel, 0, 7.0F, y);
      launch(stream, {}, set_kernel, 2, 9.0F, y);
    }));
    const std::vector<float> got = device.read(stream, y, 3);
    EXPECT_EQ(got[0], 7);
    EXPECT_EQ(got[1] != got[1], poisons);
    EXPECT_EQ(got[2], 9);
    EXPECT_THAT(device.read(stream, x, 3), testing::ElementsAre(1, 2, 3));
  }
}

/// Long ranges are poisoned once, and again behind whoever wrote to a part of them.
TEST(EmulatedMemory, LongResultsHoldNaNWhoeverWroteToThemBefore) {
  using Write = void (*)(EmulatedDevice&, Stream, float* memory);
  const Write ways[] = {
      [](EmulatedDevice&, Stream stream, float* memory) { launch(stream, {}, set_kernel, 70000, 7.0F, memory); },
      [](EmulatedDevice& device, Stream stream, float* memory) {
        const std::vector<float> seven{7.0F};
        EXPECT_TRUE(device->copy(stream, memory + 70000, seven.data(), sizeof(float)));
      },
      [](EmulatedDevice& device, Stream stream, float* memory) {
        EXPECT_TRUE(device->fill(stream, memory + 70000, 0, sizeof(float)));
      }};
  for (const Write way : ways) {
    EmulatedDevice device;
    const Stream stream = device.stream();
    float* const y = device.make(stream, std::vector<float>(100000, 1.0F));
    const std::vector<Range> ranges{range_of(y, 100000, Access::write)};
    const auto op_that_sets = [&](int number, auto&& write) {
      EXPECT_TRUE(as_op(*device, stream, number, ranges, write));
    };
    op_that_sets(1, [&] { launch(stream, {}, set_kernel, 3, 5.0F, y); });
    op_that_sets(2, [&] { way(device, stream, y); });
    const std::vector<float> written = device.read(stream, y, 100000);
    EXPECT_EQ(written[70000], written[70000]);
    EXPECT_NE(written[3], written[3]);
    op_that_sets(3, [&] { launch(stream, {}, set_kernel, 4, 9.0F, y); });
    const std::vector<float> got = device.read(stream, y, 100000);
    EXPECT_EQ(got[4], 9);
    EXPECT_EQ(std::ranges::count_if(got, [](float each) { return each != each; }), 99999);
  }
}

TEST(EmulatedMemory, ResultsInPlaceOfOperandsAreNotPoisoned) {
  EmulatedDevice device;
  const Stream stream = device.stream();
  float* const x = device.make(stream, std::vector<float>{1, 2, 3});
  EXPECT_TRUE(as_op(*device, stream, 1, {range_of(x, 3, Access::read), range_of(x + 1, 1, Access::write)},
                    [&] { launch(stream, {}, set_kernel, 1, 7.0F, x); }));
  EXPECT_THAT(device.read(stream, x, 3), testing::ElementsAre(1, 7, 3));
}

TEST(EmulatedMemory, FreeingWhatMayStillBeUsedIsTold) {
  EmulatedDevice device;
  const Stream stream = device.stream();
  auto* const memory = reinterpret_cast<std::byte*>(device.make(stream, std::vector<float>{1, 2, 3}));
  device->free(memory);
  EXPECT_THAT(said(device->make_event()), HasSubstr("freed before it is known to have finished"));
}

}  // namespace
}  // namespace shard::cuda
