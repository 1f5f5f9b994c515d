// Does an nsys export (small_nsys.sql) give its kernels, copies, calls, ranges and memory?
#include <gmock/gmock.h>

#include <fstream>
#include <iterator>

#include "tests/trace_import/files.h"

namespace shard {
namespace {

Result<LoadedTrace> small() {
  return load_any(TEST_DATA "/fuzz/corpus/nsys_fuzz/small.sqlite");
}

#define SKIP_WITHOUT_SQLITE(result) \
  if (!(result) && (result).error().code == Errc::unavailable) GTEST_SKIP() << "built without SQLite"

TEST(ImportNsys, EveryTable) {
  const Result<LoadedTrace> all = small();
  SKIP_WITHOUT_SQLITE(all);
  ASSERT_TRUE(all) << to_string(all.error());
  EXPECT_EQ(all->format, TraceFormat::nsys);
  EXPECT_EQ(files::spans(all->trace),
            "cudaLaunchKernel 900+50 | cudaLaunchKernel 1900+50 | cudaLaunchKernel 1960+10 | step 800+3200 | "
            "gemm 1000+500 | Memcpy HtoD 3000+100 | ncclAllReduce 2000+600");
  EXPECT_EQ(files::track_names(all->trace),
            "process 0 thread 1, CUDA calls | process 0 thread 1, NVTX | GPU 0 stream 7 | GPU 0 stream 9 | "
            "GPU 1 stream 8");
  EXPECT_EQ(all->trace.tracks[3].stream, Stream::copy_in);
  EXPECT_EQ(all->trace.tracks[4].stream, Stream::communication);
  EXPECT_EQ(all->trace.tracks[4].rank, Rank{1});
  ASSERT_EQ(all->trace.flows.size(), 2u);
  EXPECT_EQ(all->trace.flows[0].from_ns, 900);
  EXPECT_EQ(all->trace.flows[0].to_ns, 1000);
  EXPECT_EQ(all->instants.size(), 1u);
  EXPECT_THAT(all->trace.memory.delta_bytes, ::testing::ElementsAre(1024, -1024));
}

TEST(ImportNsys, InMemoryIsTheSame) {
  const Result<LoadedTrace> all = small();
  SKIP_WITHOUT_SQLITE(all);
  std::ifstream in(TEST_DATA "/fuzz/corpus/nsys_fuzz/small.sqlite", std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  EXPECT_EQ(files::spans(files::loaded(text).trace), files::spans(all->trace));
}

}  // namespace
}  // namespace shard
