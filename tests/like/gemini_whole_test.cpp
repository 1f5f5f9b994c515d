// Does v0.1.9, a whole chunk on one rank, give the figures computed by hand from its rules?
#include "tests/like/gemini.h"

namespace shard::like {
namespace {

using test::calls;
using test::gemini;
using test::kWhole;
using test::list_of;
using test::on;

/// Three chunks of 8 elements (16 bytes, masters 32): a, b, and c with half of it padding.
ParameterList three() {
  return list_of({{"a.w", 6}, {"a.b", 2}, {"b.w", 8}, {"c.w", 4}});
}
GeminiOptions on_rank(std::int32_t rank, bool cpu, bool distributed = true) {
  const double fraction = cpu ? 1 : 0;
  return {.world_size = 2,
          .chunk = Elems{8},
          .shard_param_frac = distributed ? 1.0 : 0.0,
          .offload_optim_frac = fraction,
          .offload_param_frac = fraction,
          .rank = rank};
}

struct Figures {
  std::int64_t broadcasts_forward, broadcasts, reduces, all_reduces, to_device, to_host, peak, after_forward,
      after_backward, host;
  friend bool operator==(const Figures&, const Figures&) = default;
  friend void PrintTo(const Figures& f, std::ostream* out) {
    *out << f.broadcasts_forward << ' ' << f.broadcasts << ' ' << f.reduces << ' ' << f.all_reduces << ' '
         << f.to_device << ' ' << f.to_host << ' ' << f.peak << ' ' << f.after_forward << ' ' << f.after_backward << ' '
         << f.host;
  }
};

/// All steps are alike in this version.
Figures figures(const ParameterList& parameters, const GeminiOptions& options) {
  const GeminiResult r = gemini(kWhole, parameters, options);
  for (const GeminiIteration& it : r.iterations)
    EXPECT_EQ(it.after_backward.calls[3], r.iterations[0].after_backward.calls[3]);
  const GeminiIteration& it = r.iterations.at(1);
  return {.broadcasts_forward = calls(it.after_forward, Collective::broadcast).count,
          .broadcasts = calls(it.after_backward, Collective::broadcast).count,
          .reduces = calls(it.after_backward, Collective::reduce).count,
          .all_reduces = calls(it.after_backward, Collective::all_reduce).count,
          .to_device = it.after_backward.to_device.count(),
          .to_host = it.after_backward.to_host.count(),
          .peak = it.after_backward.model_data_peak.count(),
          .after_forward = on(it.after_forward, Memory::device),
          .after_backward = on(it.after_backward, Memory::device),
          .host = on(it.after_backward, Memory::host)};
}

// Rank 0 owns a and c: 2 x 48 bytes rest; b comes with 16 and goes. The last chunk is released when forward ends, so
// each of three is broadcast twice.
TEST(WholeChunks, PolicyCudaOnTheOwnerOfTwo) {
  EXPECT_EQ(figures(three(), on_rank(0, false)), (Figures{.broadcasts_forward = 3,
                                                          .broadcasts = 6,
                                                          .reduces = 3,
                                                          .all_reduces = 0,
                                                          .to_device = 0,
                                                          .to_host = 0,
                                                          .peak = 112,
                                                          .after_forward = 96,
                                                          .after_backward = 96,
                                                          .host = 0}));
}

TEST(WholeChunks, PolicyCudaOnTheOwnerOfOne) {
  EXPECT_EQ(figures(three(), on_rank(1, false)), (Figures{.broadcasts_forward = 3,
                                                          .broadcasts = 6,
                                                          .reduces = 3,
                                                          .all_reduces = 0,
                                                          .to_device = 0,
                                                          .to_host = 0,
                                                          .peak = 64,
                                                          .after_forward = 48,
                                                          .after_backward = 48,
                                                          .host = 0}));
}

// a: up for forward, down before b, up for backward, its gradient down. c: up in forward and still there for backward,
// its gradient down.
TEST(WholeChunks, PolicyCpuOnTheOwnerOfTwo) {
  EXPECT_EQ(figures(three(), on_rank(0, true)), (Figures{.broadcasts_forward = 3,
                                                         .broadcasts = 6,
                                                         .reduces = 3,
                                                         .all_reduces = 0,
                                                         .to_device = 3 * 16,
                                                         .to_host = 3 * 16,
                                                         .peak = 16,
                                                         .after_forward = 16,
                                                         .after_backward = 0,
                                                         .host = 96}));
}

TEST(WholeChunks, PolicyCpuOnTheOwnerOfOne) {
  EXPECT_EQ(figures(three(), on_rank(1, true)), (Figures{.broadcasts_forward = 3,
                                                         .broadcasts = 6,
                                                         .reduces = 3,
                                                         .all_reduces = 0,
                                                         .to_device = 2 * 16,
                                                         .to_host = 2 * 16,
                                                         .peak = 16,
                                                         .after_forward = 0,
                                                         .after_backward = 0,
                                                         .host = 48}));
}

// Every rank owns all: nothing is broadcast, gradients are all-reduced. Policy cpu still takes turns on the device.
TEST(WholeChunks, WithoutDistributedStorage) {
  EXPECT_EQ(figures(three(), on_rank(1, false, false)), (Figures{.broadcasts_forward = 0,
                                                                 .broadcasts = 0,
                                                                 .reduces = 0,
                                                                 .all_reduces = 3,
                                                                 .to_device = 0,
                                                                 .to_host = 0,
                                                                 .peak = 144,
                                                                 .after_forward = 144,
                                                                 .after_backward = 144,
                                                                 .host = 0}));
  EXPECT_EQ(figures(three(), on_rank(1, true, false)), (Figures{.broadcasts_forward = 0,
                                                                .broadcasts = 0,
                                                                .reduces = 0,
                                                                .all_reduces = 3,
                                                                .to_device = 5 * 16,
                                                                .to_host = 5 * 16,
                                                                .peak = 16,
                                                                .after_forward = 16,
                                                                .after_backward = 0,
                                                                .host = 144}));
}

// Module m lies in both chunks: the second is not released while n uses it, and not broadcast again for n.
TEST(WholeChunks, AChunkThatTheNextOpUsesIsNotReleased) {
  const ParameterList parameters = list_of({{"m.w", 8}, {"m.b", 2}, {"n.w", 6}});
  const Figures f = figures(parameters, on_rank(0, false));
  EXPECT_EQ(f.broadcasts_forward, 2);
  EXPECT_EQ(f.broadcasts, 4);
  EXPECT_EQ(f.reduces, 2);
  EXPECT_EQ(f.peak, 48 + 16);
  EXPECT_EQ(f.after_forward, 48);
}

// Elements per rank: 10 to rank 0, 4 to rank 1 (4), 4 to rank 1 (8), 6 to rank 1 (14).
TEST(WholeChunks, OneChunkPerTensorGoesToTheRankWithTheFewestElements) {
  const ParameterList parameters = list_of({{"a", 10}, {"b", 4}, {"c", 4}, {"d", 6}});
  GeminiOptions options = on_rank(0, false);
  options.chunk.reset();
  EXPECT_EQ(gemini(kWhole, parameters, options).rest_device.count(), 10 * 6);
  options.rank = 1;
  const GeminiResult r = gemini(kWhole, parameters, options);
  EXPECT_EQ(r.rest_device.count(), 14 * 6);
  EXPECT_EQ(r.optimizer_state.count(), 14 * 8);
  EXPECT_EQ(r.layout.waste.count(), 0);
}

// The second tensor is larger than a chunk: one of exactly its size, and round robin goes on.
TEST(WholeChunks, ATensorLargerThanAChunkHasOneOfItsSize) {
  const ParameterList parameters = list_of({{"a.w", 3}, {"b.w", 11}, {"c.w", 2}});
  const GeminiResult r = gemini(kWhole, parameters, on_rank(1, false));
  ASSERT_EQ(r.layout.chunks.size(), 3U);
  EXPECT_EQ(r.layout.chunks[1].elems.count(), 11);
  EXPECT_EQ(r.rest_device.count(), 11 * 6);
}

TEST(WholeChunks, OneRankStillCallsItsCollectives) {
  GeminiOptions options = on_rank(0, false);
  options.world_size = 1;
  const Figures f = figures(three(), options);
  EXPECT_EQ(f.broadcasts, 6);
  EXPECT_EQ(f.reduces, 3);
  EXPECT_EQ(f.peak, 144);
}

}  // namespace
}  // namespace shard::like
