// Does the emulated device tell what it does as a driver does: work with the call that made it, nodes and their copies?
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "tests/cuda/emulated_support.h"

namespace shard::cuda {
namespace {

/// All that is told, in order.
class Heard final : public EmulatedActivity {
 public:
  struct Call {
    std::string name;
    std::int64_t begin_ns = 0, end_ns = 0;
  };
  std::uint32_t next_correlation() override { return ++correlations; }
  std::uint64_t next_node() override { return ++nodes; }
  void called(std::string_view name, std::uint32_t correlation, std::int64_t begin_ns, std::int64_t end_ns) override {
    calls[correlation] = {std::string(name), begin_ns, end_ns};
  }
  void worked(const EmulatedWork& done) override { work.push_back(done); }
  void memory(const EmulatedMemory& each) override { allocations.push_back(each); }
  void node_made(std::uint64_t node) override { made.push_back(node); }
  void node_cloned(std::uint64_t node, std::uint64_t of) override { origin[node] = of; }
  void stream_waits(std::uint32_t, std::uint32_t stream, std::uint32_t, std::int64_t) override {
    waits.push_back(stream);
  }

  std::uint32_t correlations = 0;
  std::uint64_t nodes = 0;
  std::map<std::uint32_t, Call> calls;
  std::vector<EmulatedWork> work;
  std::vector<EmulatedMemory> allocations;
  std::vector<std::uint64_t> made;
  std::map<std::uint64_t, std::uint64_t> origin;
  std::vector<std::uint32_t> waits;
};

SHARD_KERNEL twice_kernel(std::int64_t n, float* x) {
  for (std::int64_t i = first_element(); i < n; i += element_stride()) x[i] *= 2;
}

void twice(Stream stream, std::int64_t n, float* x) {
  launch(stream, {.blocks_x = blocks_for(n), .threads = kThreads}, twice_kernel, n, x);
}

TEST(EmulatedActivity, WorkHasItsCallAndTheTimeAtWhichItRan) {
  Heard heard;
  EmulatedDevice device({.number = 3, .activity = &heard});
  const Stream stream = device.stream();
  float* const x = device.make<float>(stream, {1, 2, 3});
  const std::int64_t before = EmulatedActivity::now_ns();
  twice(stream, 3, x);
  const std::int64_t enqueued = EmulatedActivity::now_ns();
  ASSERT_TRUE(device->fill(stream, x, 0, 4));
  EXPECT_EQ(device.read(stream, x, 3), (std::vector<float>{0, 4, 6}));

  ASSERT_EQ(heard.work.size(), 4u);
  using Kind = EmulatedWork::Kind;
  const std::vector<Kind> kinds{Kind::copy, Kind::kernel, Kind::fill, Kind::copy};
  const std::vector<std::string> calls{"cudaMemcpyAsync", "cudaLaunchKernel", "cudaMemsetAsync", "cudaMemcpyAsync"};
  const std::vector<std::int64_t> bytes{12, 0, 4, 12};
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const EmulatedWork& work = heard.work[i];
    EXPECT_EQ(work.kind, kinds[i]) << i;
    EXPECT_EQ(heard.calls.at(work.correlation).name, calls[i]) << i;
    EXPECT_EQ(work.bytes, bytes[i]) << i;
    EXPECT_EQ(work.device, 3u);
    EXPECT_EQ(work.node, 0u);
    EXPECT_LE(heard.calls.at(work.correlation).begin_ns, work.begin_ns);
    EXPECT_LE(i == 0 ? 0 : heard.work[i - 1].end_ns, work.begin_ns) << i;
  }
  EXPECT_TRUE(heard.work.front().from_host && !heard.work.front().to_host);
  EXPECT_TRUE(!heard.work.back().from_host && heard.work.back().to_host);
  const EmulatedWork& kernel = heard.work[1];
  EXPECT_EQ(kernel.name, "twice");
  EXPECT_GE(heard.calls.at(kernel.correlation).begin_ns, before);
  EXPECT_GE(kernel.begin_ns, enqueued) << "nothing runs before somebody asks";
}

TEST(EmulatedActivity, AllocationsAndTheirEndHaveTheBytesThatWereAskedFor) {
  Heard heard;
  EmulatedDevice device({.activity = &heard});
  std::byte* const memory = device->allocate(Bytes{1000}).value();
  std::byte* const pinned = device->allocate_pinned(Bytes{77}).value();
  device->free(memory);
  device->free_pinned(pinned);
  ASSERT_EQ(heard.allocations.size(), 4u);
  const std::vector<std::string> calls{"cudaMalloc", "cudaHostAlloc", "cudaFree", "cudaFreeHost"};
  for (std::size_t i = 0; i < 4; ++i) {
    const EmulatedMemory& each = heard.allocations[i];
    EXPECT_EQ(each.acquired, i < 2);
    EXPECT_EQ(each.pinned, i % 2 == 1);
    EXPECT_EQ(each.bytes, i % 2 == 1 ? 77 : 1000);
    EXPECT_EQ(each.address, reinterpret_cast<std::uint64_t>(i % 2 == 1 ? pinned : memory));
    EXPECT_EQ(heard.calls.at(each.correlation).name, calls[i]);
  }
}

TEST(EmulatedActivity, AGraphsWorkIsOfCopiesOfItsNodesAndOfTheLaunch) {
  Heard heard;
  EmulatedDevice device({.activity = &heard});
  const Stream stream = device.stream();
  float* const x = device.make<float>(stream, {1, 2, 3});
  ASSERT_TRUE(device.finish(stream));
  heard.work.clear();
  ASSERT_TRUE(device->begin_capture(stream));
  twice(stream, 3, x);
  twice(stream, 3, x);
  const auto graph = device->end_capture(stream);
  ASSERT_TRUE(graph);
  EXPECT_TRUE(heard.work.empty());
  ASSERT_EQ(heard.made.size(), 2u);
  for (int launch = 0; launch < 2; ++launch) {
    heard.work.clear();
    ASSERT_TRUE(device->launch_graph(*graph, stream));
    ASSERT_TRUE(device.finish(stream));
    ASSERT_EQ(heard.work.size(), 2u);
    std::vector<std::uint64_t> origins;
    for (const EmulatedWork& work : heard.work) {
      EXPECT_EQ(heard.calls.at(work.correlation).name, "cudaGraphLaunch");
      EXPECT_EQ(std::count(heard.made.begin(), heard.made.end(), work.node), 0) << "what runs is a copy";
      origins.push_back(heard.origin.at(work.node));
    }
    EXPECT_EQ(heard.work[0].correlation, heard.work[1].correlation);
    EXPECT_EQ(origins, heard.made);
  }
}

TEST(EmulatedActivity, AStreamThatWaitsForAnEventIsTold) {
  Heard heard;
  EmulatedDevice device({.activity = &heard});
  const Stream first = device.stream("first"), second = device.stream("second");
  const auto event = device->make_event();
  ASSERT_TRUE(device->record(*event, first));
  ASSERT_TRUE(device->wait(second, *event));
  EXPECT_EQ(heard.waits, (std::vector<std::uint32_t>{1}));
}

}  // namespace
}  // namespace shard::cuda
