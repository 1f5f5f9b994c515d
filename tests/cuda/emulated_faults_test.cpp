// Do planted errors and hangs happen at the call they were planted at?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/cuda/emulated_support.h"

namespace shard::cuda {
namespace {

using testing::HasSubstr;

SHARD_KERNEL nothing_kernel() {}

/// Calls everything twice, and waits. The first error, or how waiting ended.
Result<void> call_everything(EmulatedDevice& device) {
#define SHARD_CALL(call) \
  if (const auto result = (call); !result) return result.error()
  for (int round = 0; round < 2; ++round) {
    SHARD_CALL(device->memory_info());
    const auto memory = device->allocate(Bytes{4096});
    SHARD_CALL(memory);
    SHARD_CALL(device->allocate_pinned(Bytes{64}));
    const auto stream = device->make_stream("compute");
    SHARD_CALL(stream);
    const auto begin = device->make_event();
    SHARD_CALL(begin);
    const auto end = device->make_event();
    SHARD_CALL(end);
    SHARD_CALL(device->record(*begin, *stream));
    SHARD_CALL(device->wait(*stream, *begin));
    SHARD_CALL(device->begin_op(*stream, {Rank{0}, OpId{1}, "everything", {}}));
    SHARD_CALL(device->fill(*stream, *memory, 0, 4096));
    SHARD_CALL(device->copy(*stream, *memory, *memory + 2048, 16));
    SHARD_CALL(device->call_host(
        *stream, [](void*) {}, nullptr));
    const auto product = device->prepare_product({.m = 2, .n = 2, .k = 2}, Bytes{});
    SHARD_CALL(product);
    SHARD_CALL(device->multiply(*stream, *product, {*memory, *memory + 64, nullptr, *memory + 128, {}}));
    launch(*stream, {}, nothing_kernel);
    SHARD_CALL(device->end_op(*stream));
    SHARD_CALL(device->begin_capture(*stream));
    SHARD_CALL(device->fill(*stream, *memory, 1, 16));
    const auto graph = device->end_capture(*stream);
    SHARD_CALL(graph);
    SHARD_CALL(device->launch_graph(*graph, *stream));
    SHARD_CALL(device->record(*end, *stream));
    for (int question = 0;; ++question) {
      const auto done = device->is_done(*end);
      SHARD_CALL(done);
      if (*done) break;
      if (question == 1000) return Error{Errc::retryable, "never done", "", ""};
    }
    SHARD_CALL(device->seconds_between(*begin, *end));
  }
#undef SHARD_CALL
  return {};
}

class PlantedAt : public testing::TestWithParam<std::string_view> {
 protected:
  std::string outcome(std::int64_t occurrence, PlantedFault::Kind kind) {
    EmulatedDevice device({.fault = PlantedFault{std::string(GetParam()), occurrence, kind}});
    return said(call_everything(device));
  }
};

TEST_P(PlantedAt, AnErrorIsReturnedByThatCallOrTheNext) {
  for (const std::int64_t occurrence : {1, 2})
    EXPECT_EQ(outcome(occurrence, PlantedFault::Kind::error),
              std::string(GetParam()) + "() fails on the emulated device, as was planted at its call number " +
                  std::to_string(occurrence));
}

TEST_P(PlantedAt, AHangNeverEnds) {
  EXPECT_EQ(outcome(1, PlantedFault::Kind::hang), "never done");
}

TEST_P(PlantedAt, CallsThatAreNeverMadeDoNotFail) {
  EXPECT_EQ(outcome(1000, PlantedFault::Kind::error), "no error");
}

INSTANTIATE_TEST_SUITE_P(EveryCall, PlantedAt, testing::ValuesIn(emulated_calls().begin(), emulated_calls().end()),
                         [](const auto& call) { return std::string(call.param); });

TEST(EmulatedFaults, EverythingFailsAfterOneError) {
  EmulatedDevice device({.fault = PlantedFault{"fill", 1, PlantedFault::Kind::error}});
  const Stream stream = device.stream();
  auto* const memory = device.room<float>(1);
  EXPECT_EQ(device->fill(stream, memory, 0, 4).error().code, Errc::unavailable);
  EXPECT_THAT(said(device->make_event()), HasSubstr("fill() fails"));
  EXPECT_THAT(said(device->end_op(stream)), HasSubstr("fill() fails"));
}

// As cudaFree() and cudaFreeHost() do.
TEST(EmulatedFaults, FreeingWaitsForAllWork) {
  EmulatedDevice device;
  const Stream stream = device.stream();
  bool called = false;
  std::byte* const memory = device->allocate(Bytes{4}).value();
  EXPECT_TRUE(device->call_host(
      stream, [](void* it) { *static_cast<bool*>(it) = true; }, &called));
  EXPECT_FALSE(called);
  device->free(memory);
  EXPECT_TRUE(called);
}

TEST(EmulatedFaultsDeathTest, FreeingBehindAHangWaitsForGoodUnlessTheDeviceIsGivenUp) {
  for (const bool pinned : {false, true})
    for (const bool of_all : {false, true}) {
      EmulatedDevice device({.fault = PlantedFault{of_all ? "memory_info" : "fill", 1, PlantedFault::Kind::hang}});
      const Stream stream = device.stream();
      std::byte* const memory = device->allocate(Bytes{4}).value();
      std::byte* const locked = device->allocate_pinned(Bytes{4}).value();
      EXPECT_TRUE(device->fill(stream, memory, 0, 4));
      EXPECT_TRUE(device->memory_info());
      const auto free = [&] { pinned ? device->free_pinned(locked) : device->free(memory); };
      EXPECT_DEATH(free(), "waits for work of the device that never ends");
      device->abandon();
      free();
      EXPECT_THAT(said(device->memory_info()), HasSubstr("given up"));
    }
}

TEST(EmulatedFaults, AHangHoldsItsStreamOnly) {
  EmulatedDevice device({.fault = PlantedFault{"launch", 2, PlantedFault::Kind::hang}});
  const Stream stuck = device.stream("stuck");
  const Stream other = device.stream("other");
  launch(stuck, {}, nothing_kernel);
  EXPECT_TRUE(device.finish(stuck));
  launch(stuck, {}, nothing_kernel);
  launch(other, {}, nothing_kernel);
  EXPECT_TRUE(device.finish(other));
  const Event event = device->make_event().value();
  EXPECT_TRUE(device->record(event, stuck));
  for (int question = 0; question < 100; ++question) EXPECT_FALSE(*device->is_done(event));
}

}  // namespace
}  // namespace shard::cuda
