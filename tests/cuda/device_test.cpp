// Does a GPU do what executor/cuda/api/api.h promises: copies, events, graphs, host calls, products?
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>
#include <vector>

#include "executor/cuda/api/load.h"

namespace shard::cuda {
namespace {

/// The first GPU; without one every test of it is skipped, and says why.
class RealGpu : public testing::Test {
 protected:
  void SetUp() override {
    Result<Device> device = open_device(0);
    if (!device) GTEST_SKIP() << "needs a GPU: " << device.error().what;
    device_ = std::move(*device);
  }

  Api& api() { return *device_.api; }
  Stream stream(const char* name) { return api().make_stream(name).value(); }
  Event event() { return api().make_event().value(); }

  void finish(Stream stream) {
    const Event end = event();
    ASSERT_TRUE(api().record(end, stream));
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    for (;;) {
      const Result<bool> done = api().is_done(end);
      ASSERT_TRUE(done) << to_string(done.error());
      if (*done) return;
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "the stream hangs";
      std::this_thread::yield();
    }
  }
  float* on_device(const std::vector<float>& values, Stream stream) {
    const auto bytes = static_cast<std::int64_t>(values.size() * sizeof(float));
    std::byte* memory = api().allocate(Bytes{bytes}).value();
    EXPECT_TRUE(api().copy(stream, memory, values.data(), bytes));
    return reinterpret_cast<float*>(memory);
  }
  std::vector<float> back(const float* memory, std::size_t count, Stream stream) {
    std::vector<float> values(count);
    EXPECT_TRUE(api().copy(stream, values.data(), memory, static_cast<std::int64_t>(count * sizeof(float))));
    finish(stream);
    return values;
  }

 private:
  Device device_;
};

TEST_F(RealGpu, SaysWhatItIs) {
  const DeviceFacts& facts = api().facts();
  EXPECT_FALSE(facts.name.empty());
  EXPECT_GE(facts.compute_capability, 80);
  EXPECT_GT(facts.multiprocessors, 0);
  EXPECT_FALSE(facts.emulated);
  const MemoryInfo memory = api().memory_info().value();
  EXPECT_LE(memory.free, memory.total);
}

TEST_F(RealGpu, MemoryThatIsNotThereDoesNotFit) {
  const Result<std::byte*> memory = api().allocate(api().facts().memory + Bytes{std::int64_t{1} << 30});
  ASSERT_FALSE(memory);
  EXPECT_EQ(memory.error().code, Errc::does_not_fit);
  EXPECT_TRUE(api().allocate(Bytes{1 << 20}));  // and no more is broken than that
}

TEST_F(RealGpu, PageableMemoryIsReadBeforeTheCopyReturns) {
  const Stream copies = stream("copies");
  std::vector<float> values(1 << 20, 1.0F);
  const float* memory = on_device(values, copies);
  std::ranges::fill(values, 2.0F);
  EXPECT_EQ(back(memory, values.size(), copies), std::vector<float>(1 << 20, 1.0F));
}

TEST_F(RealGpu, AGraphRepeatsWhatWasCapturedOnTwoStreamsInOrder) {
  const Stream origin = stream("origin");
  const Stream side = stream("side");
  const Event forked = event();
  const Event joined = event();
  constexpr std::int64_t kBytes = 1 << 20;
  std::byte* memory = api().allocate(Bytes{kBytes}).value();
  std::byte* pinned = api().allocate_pinned(Bytes{kBytes}).value();
  struct Calls {
    int count = 0;
    std::byte* seen = nullptr;
    bool right = true;
  } calls{.seen = pinned};
  ASSERT_TRUE(api().begin_capture(origin));
  ASSERT_TRUE(api().fill(origin, memory, 7, kBytes));
  ASSERT_TRUE(api().record(forked, origin));
  ASSERT_TRUE(api().wait(side, forked));
  ASSERT_TRUE(api().copy(side, pinned, memory, kBytes));
  ASSERT_TRUE(api().call_host(
      side,
      [](void* data) {
        Calls& c = *static_cast<Calls*>(data);
        ++c.count;
        c.right = c.right && c.seen[0] == std::byte{7} && c.seen[kBytes - 1] == std::byte{7};
        c.seen[0] = std::byte{0};
      },
      &calls));
  ASSERT_TRUE(api().record(joined, side));
  ASSERT_TRUE(api().wait(origin, joined));
  const Result<Graph> graph = api().end_capture(origin);
  ASSERT_TRUE(graph) << to_string(graph.error());
  EXPECT_EQ(calls.count, 0);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(api().launch_graph(*graph, origin));
  finish(origin);
  EXPECT_EQ(calls.count, 5);
  EXPECT_TRUE(calls.right);
  api().destroy_graph(*graph);
}

TEST_F(RealGpu, ACopyFromPageableMemoryIsNoPartOfAGraph) {
  const Stream origin = stream("origin");
  std::byte* memory = api().allocate(Bytes{512}).value();
  const std::vector<std::byte> pageable(512);
  ASSERT_TRUE(api().begin_capture(origin));
  EXPECT_FALSE(api().copy(origin, memory, pageable.data(), 512));
  const Result<Graph> graph = api().end_capture(origin);
  ASSERT_TRUE(graph);
  api().destroy_graph(*graph);
}

TEST_F(RealGpu, ProductsAreThoseOfTheirShape) {
  const Stream compute = stream("compute");
  constexpr std::int64_t kWorkspace = 4 << 20;
  std::byte* workspace = api().allocate(Bytes{kWorkspace}).value();
  const auto number = [](std::int64_t i) { return static_cast<float>((i * 37 + 11) % 17 - 8) / 8.0F; };
  for (int variant = 0; variant < 32; ++variant) {
    const ProductShape s{.m = 48,
                         .n = 80,
                         .k = 24,
                         .transpose_a = (variant & 1) != 0,
                         .transpose_b = (variant & 2) != 0,
                         .accumulate = (variant & 4) != 0,
                         .bias = (variant & 8) != 0,
                         .alignment = Bytes{(variant & 16) != 0 ? 4 : 16}};
    // Operands that are aligned no better than the shape says.
    const auto placed = [&](std::vector<float> values) {
      const std::size_t lead = s.alignment == Bytes{4} ? 1 : 0;
      values.insert(values.begin(), lead, 0.0F);
      return on_device(values, compute) + lead;
    };
    std::vector<float> a(static_cast<std::size_t>(s.m * s.k));
    std::vector<float> b(static_cast<std::size_t>(s.k * s.n));
    std::vector<float> c(static_cast<std::size_t>(s.m * s.n));
    std::vector<float> bias(static_cast<std::size_t>(s.n));
    for (std::vector<float>* values : {&a, &b, &c, &bias})
      for (std::size_t i = 0; i < values->size(); ++i)
        (*values)[i] = number(static_cast<std::int64_t>(i + values->size()));
    // Sums of few eighths are exact in fp32, in any order.
    std::vector<float> expected(c.size());
    for (std::int64_t i = 0; i < s.m; ++i) {
      for (std::int64_t j = 0; j < s.n; ++j) {
        const auto at = static_cast<std::size_t>(i * s.n + j);
        float sum = (s.accumulate ? c[at] : 0.0F) + (s.bias ? bias[static_cast<std::size_t>(j)] : 0.0F);
        for (std::int64_t k = 0; k < s.k; ++k)
          sum += a[static_cast<std::size_t>(s.transpose_a ? k * s.m + i : i * s.k + k)] *
                 b[static_cast<std::size_t>(s.transpose_b ? j * s.k + k : k * s.n + j)];
        expected[at] = sum;
      }
    }
    const Result<Product> product = api().prepare_product(s, Bytes{kWorkspace});
    ASSERT_TRUE(product) << to_string(product.error());
    EXPECT_EQ(api().prepare_product(s, Bytes{kWorkspace}).value(), *product);
    float* out = placed(c);
    ASSERT_TRUE(api().multiply(compute, *product,
                               {.a = reinterpret_cast<std::byte*>(placed(a)),
                                .b = reinterpret_cast<std::byte*>(placed(b)),
                                .bias = s.bias ? reinterpret_cast<std::byte*>(placed(bias)) : nullptr,
                                .c = reinterpret_cast<std::byte*>(out),
                                .workspace = {workspace, static_cast<std::size_t>(kWorkspace)}}));
    EXPECT_EQ(back(out, c.size(), compute), expected) << "variant " << variant;
  }
}

TEST_F(RealGpu, AnOpThatLaunchesNothingEndsWell) {
  const Stream compute = stream("compute");
  ASSERT_TRUE(api().begin_op(compute, {.name = "nothing"}));
  EXPECT_TRUE(api().end_op(compute));
  const Event begin = event();
  const Event end = event();
  ASSERT_TRUE(api().record(begin, compute));
  ASSERT_TRUE(api().record(end, compute));
  finish(compute);
  EXPECT_GE(api().seconds_between(begin, end).value(), 0.0);
}

}  // namespace
}  // namespace shard::cuda
