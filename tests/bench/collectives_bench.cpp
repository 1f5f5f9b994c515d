// Reduce-scatter and all-gather beside the machine's copy bandwidth. Alone: ranks are threads. Under mpirun: processes.
//   collectives_bench                                     2 and 4 threads
//   mpirun -n 2 --bind-to none collectives_bench shared   or messages
// GB/s is the full buffer over the time of a call (algorithm bandwidth), 1 GB = 1e9 bytes; each rank really moves
// (n-1)/n of it. The last two columns scatter 16-bit elements. "copy" is memcpy of the same number of bytes, by every
// rank at once.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

#include "executor/comm/in_process.h"
#include "sim/target/comm_workspace.h"
#ifdef SHARDSCOPE_WITH_MPI
#include "executor/comm/mpi.h"
#include "executor/launch/role.h"
#endif

namespace {

using namespace shard;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kSizes[] = {4 << 10, 1 << 20, 16 << 20, 64 << 20};
constexpr std::int64_t kLargest = 64 << 20;

/// Median seconds of `body` on this rank, after a warm-up; all ranks are brought together before each turn.
template <class Body>
double median_seconds(Communicator& comm, int turns, int calls_per_turn, Body body) {
  std::vector<double> seconds;
  for (int turn = -1; turn < turns; ++turn) {
    (void)comm.exchange({});
    const auto start = Clock::now();
    for (int call = 0; call < calls_per_turn; ++call) body();
    if (turn >= 0) seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count() / calls_per_turn);
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

int measure(Communicator& comm) {
  const std::int64_t workspace =
      comm.needs_workspace() ? comm_workspace_bytes(Collective::reduce_scatter, Bytes{kLargest}, comm.size()).count()
                             : 0;
  const auto arena = comm.make_arena(Bytes{2 * kLargest + workspace});
  if (!arena) return std::fprintf(stderr, "%s\n", to_string(arena.error()).c_str()), 1;
  std::fill_n(reinterpret_cast<float*>(arena->data()), arena->size() / 4, 1.0F);
  if (comm.rank() == Rank{0})
    std::printf("%s, %d ranks\n%12s %14s %14s %14s %14s %14s\n", std::string(comm.name()).c_str(), comm.size(), "bytes",
                "copy GB/s", "gather GB/s", "scatter GB/s", "bf16", "f16");
  for (const std::int64_t bytes : kSizes) {
    const int calls = bytes <= 1 << 20 ? 50 : 2;
    const auto call = [&](Collective kind, Dtype dtype = Dtype::f32) {
      const std::vector<CommSegment> segments{{kLargest, 0, Elems{bytes / bytes_per_element(dtype)}}};
      const auto ticket = comm.start({.op = OpId{1},
                                      .kind = kind,
                                      .segments = segments,
                                      .dtype = dtype,
                                      .workspace_offset = 2 * kLargest,
                                      .workspace = Bytes{workspace}});
      if (ticket) (void)comm.wait(*ticket);
    };
    const double copy = median_seconds(comm, 7, calls, [&] {
      std::memcpy(arena->data() + kLargest, arena->data(), static_cast<std::size_t>(bytes));
      asm volatile("" : : "r"(arena->data()) : "memory");
    });
    const double gather = median_seconds(comm, 7, calls, [&] { call(Collective::all_gather); });
    const double scatter = median_seconds(comm, 7, calls, [&] { call(Collective::reduce_scatter); });
    const double bf16 = median_seconds(comm, 7, calls, [&] { call(Collective::reduce_scatter, Dtype::bf16); });
    const double f16 = median_seconds(comm, 7, calls, [&] { call(Collective::reduce_scatter, Dtype::f16); });
    const auto rate = [&](double seconds) { return static_cast<double>(bytes) / seconds / 1e9; };
    if (comm.rank() == Rank{0})
      std::printf("%12lld %14.2f %14.2f %14.2f %14.2f %14.2f   %.1f us %.1f us\n", static_cast<long long>(bytes),
                  rate(copy), rate(gather), rate(scatter), rate(bf16), rate(f16), gather * 1e6, scatter * 1e6);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
#ifdef SHARDSCOPE_WITH_MPI
  if (shard::role_from_environment()->launcher != shard::Launcher::none) {
    const bool messages = argc > 1 && std::string_view(argv[1]) == "messages";
    auto comm = shard::make_mpi(messages ? shard::MpiTransport::messages : shard::MpiTransport::shared);
    if (!comm) return std::fprintf(stderr, "%s\n", to_string(comm.error()).c_str()), 1;
    return measure(**comm);
  }
#endif
  (void)argc;
  (void)argv;
  for (const int world : {2, 4}) {
    auto ranks = shard::make_in_process(world);
    std::vector<std::jthread> threads;
    for (auto& rank : ranks) threads.emplace_back([&rank] { measure(*rank); });
  }
  return 0;
}
