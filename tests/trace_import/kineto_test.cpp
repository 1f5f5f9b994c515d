// Does a profiler's recording, of any version and however it was put together, say whose it is and what its spans are?
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/trace_import/files.h"
#include "traces/import/kineto_calls.h"
#include "traces/import/kineto_ranks.h"
#include "traces/profile.h"

namespace shard {
namespace {

using files::loaded;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string document(const std::string& events, const std::string& before = "") {
  return "{" + before + "\"traceEvents\":[" + events + "]}";
}

std::string kernel(const std::string& pid, int device, const std::string& more = "", const std::string& name = "gemm") {
  return R"({"ph":"X","cat":"kernel","name":")" + name + R"(","pid":)" + pid +
         R"(,"tid":7,"ts":10,"dur":5,"args":{"device":)" + std::to_string(device) + R"(,"stream":7)" + more + "}}";
}

std::string op(const std::string& pid) {
  return R"({"ph":"X","cat":"cpu_op","name":"aten::mm","pid":)" + pid + R"(,"tid":1,"ts":1,"dur":2})";
}

std::vector<std::int32_t> ranks(const std::string& text) {
  std::vector<std::int32_t> numbers;
  for (const Rank rank : ranks_of(loaded(text).trace)) numbers.push_back(rank.value);
  return numbers;
}

TEST(KinetoRanks, AreThoseThatTheFileNames) {
  const std::string info = R"("distributedInfo":{"rank":5,"world_size":8},)";
  EXPECT_THAT(ranks(document(kernel("0", 0) + "," + op("77"), info)), ElementsAre(5));
  // One GPU of a file that names no rank is no rank of that number.
  EXPECT_THAT(ranks(document(kernel("3", 3) + "," + op("77"))), ElementsAre(0));
  // Several are a rank each, and the host's rows are no further one.
  EXPECT_THAT(ranks(document(kernel("2", 2) + "," + kernel("3", 3) + "," + op("77"))), ElementsAre(2, 3));
  // A call may name it.
  EXPECT_THAT(ranks(document(kernel("0", 0) + R"(,{"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":7,"tid":1,
      "ts":1,"dur":2,"args":{"Rank":6}})")),
              ElementsAre(6));
}

TEST(KinetoRanks, OfSeveralRecordingsInOneFile) {
  const std::string merged =
      kernel("\"[rank4] 0\"", 0) + "," + op("\"[rank4] 123\"") + "," + kernel("\"[rank9] 0\"", 0) +
      R"(,{"ph":"X","cat":"Trace","name":"PyTorch Profiler","pid":"Spans","tid":"x","ts":0,"dur":9})";
  const LoadedTrace all = loaded(document(merged));
  EXPECT_THAT(ranks_of(all.trace), ElementsAre(Rank{4}, Rank{9}));
  const Profile found = profile(all.trace);
  ASSERT_EQ(found.devices.size(), 2u);  // of both, though both have a GPU 0
  EXPECT_EQ(found.devices[1].time.busy_ns, 5000);
}

TEST(KinetoRanks, WordsBeforeANumber) {
  EXPECT_EQ(import::rank_in("rank 3"), 3);
  EXPECT_EQ(import::rank_in("[Rank_12] python"), 12);
  EXPECT_EQ(import::rank_in("[TP03] 0"), 3);
  EXPECT_EQ(import::rank_in("worker rank=7"), 7);
  EXPECT_EQ(import::rank_in("local_rank=7"), std::nullopt);
  EXPECT_EQ(import::rank_in("rankings 3"), std::nullopt);
  EXPECT_EQ(import::rank_in("rank"), std::nullopt);
  EXPECT_EQ(import::rank_in("rank 99999999999999999999"), std::nullopt);
}

TEST(KinetoActivities, OfEveryVersionsCategories) {
  using import::activity_of;
  EXPECT_EQ(activity_of("kernel", "gemm"), Activity::kernel);
  EXPECT_EQ(activity_of("Kernel", "ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclColl)"), Activity::all_gather);
  EXPECT_EQ(activity_of("kernel", "void ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(x)"), Activity::reduce_scatter);
  EXPECT_EQ(activity_of("kernel", "ncclAllReduceRingLLKernel_sum_f32(ncclColl)"), Activity::all_reduce);
  EXPECT_EQ(activity_of("kernel", "ncclDevKernel_Generic_4(x)"), Activity::other_collective);
  EXPECT_EQ(activity_of("kernel", "cub::DeviceReduceKernel<nccl>"), Activity::kernel);
  EXPECT_EQ(activity_of("kernel", "triton_red_fused_all_reduce_3"), Activity::kernel);
  EXPECT_EQ(activity_of("Memcpy", "Memcpy HtoD"), Activity::copy);
  EXPECT_EQ(activity_of("gpu_memset", "Memset (Device)"), Activity::fill);
  EXPECT_EQ(activity_of("gpu_user_annotation", "nccl:all_reduce"), Activity::mark);
  EXPECT_EQ(activity_of("user_annotation", "nccl:all_reduce"), Activity::annotation);
  EXPECT_EQ(activity_of("user_annotation", "gloo:all_reduce"), Activity::all_reduce);
  EXPECT_EQ(activity_of("cuda_driver", "cuLaunchKernel"), Activity::runtime);
  EXPECT_EQ(activity_of("python_function", "train.py(3): step"), Activity::python);
  EXPECT_EQ(activity_of("Operator", "aten::mm"), Activity::operation);
  EXPECT_EQ(activity_of("Trace", "PyTorch Profiler (0)"), Activity::recording);
  EXPECT_EQ(activity_of("anything", "else"), Activity::unknown);
}

TEST(KinetoActivities, CollectivesByTheirWords) {
  using import::collective_named;
  EXPECT_EQ(collective_named("_allgather_base"), Activity::all_gather);
  EXPECT_EQ(collective_named("reduce_scatter_tensor_coalesced"), Activity::reduce_scatter);
  EXPECT_EQ(collective_named("all_to_allv"), Activity::all_to_all);
  EXPECT_EQ(collective_named("nccl:send 0->1"), Activity::send);
  EXPECT_EQ(collective_named("nccl:recv 0<-1"), Activity::receive);
  EXPECT_EQ(collective_named("reduce"), Activity::reduce);
  EXPECT_EQ(collective_named("wait"), Activity::other_collective);
}

CollectiveUse only_collective(const std::string& text) {
  const Profile found = profile(loaded(text).trace);
  EXPECT_EQ(found.collectives.size(), 1u);
  return found.collectives.empty() ? CollectiveUse{} : found.collectives[0];
}

TEST(KinetoBytes, AreTheLargerOfWhatGoesInAndComesOut) {
  const auto use = only_collective(document(
      kernel("0", 0, R"(,"Collective name":"_allgather_base","In msg nelems":8,"Out msg nelems":64,"dtype":"BFloat16")",
             "ncclDevKernel_Generic_4(x)")));
  EXPECT_EQ(use.kind, Activity::all_gather);
  EXPECT_EQ(use.bytes, 128);
  EXPECT_EQ(use.without_bytes, 0);
}

TEST(KinetoBytes, AreNotKnownWhereNothingSaysThem) {
  for (const char* more :
       {"", R"(,"In msg nelems":8,"Out msg nelems":8,"dtype":"Quaternion")", R"(,"In msg nelems":8)"}) {
    const auto use = only_collective(document(kernel("0", 0, more, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)")));
    EXPECT_EQ(use.kind, Activity::all_reduce);
    EXPECT_EQ(use.bytes, 0);
    EXPECT_EQ(use.without_bytes, 1) << more;
  }
}

/// A call of an older profiler: operator, record, the library's own, and in it the launch.
std::string older_call(const std::string& inner, const std::string& dims) {
  return R"({"ph":"X","cat":"user_annotation","name":")" + inner +
         R"(","pid":9,"tid":1,"ts":2,"dur":5,"args":{"Input Dims":)" + dims + R"(,"Input type":["float","float"]}},
    {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":9,"tid":1,"ts":3,"dur":1,"args":{"correlation":44}},)";
}

TEST(KinetoBytes, OfOlderProfilersAreThoseOfTheCallAroundTheLaunch) {
  const std::string launched = kernel("0", 0, R"(,"correlation":44,"External id":44)", "ncclKernel_SendRecv_RING(x)");
  auto use = only_collective(document(older_call("nccl:all_reduce", "[[10,10],[5]]") + launched));
  EXPECT_EQ(use.kind, Activity::all_reduce);  // one kernel of NCCL does the work of several
  EXPECT_EQ(use.bytes, 420);
  // A gather's parts are not the whole, and its size is nowhere.
  use = only_collective(document(older_call("nccl:_all_gather_base", "[[10]]") + launched));
  EXPECT_EQ(use.kind, Activity::all_gather);
  EXPECT_EQ(use.without_bytes, 1);
  // Another correlation is another call.
  use = only_collective(document(older_call("nccl:all_reduce", "[[10]]") +
                                 kernel("0", 0, R"(,"correlation":45)", "ncclKernel_SendRecv_RING(x)")));
  EXPECT_EQ(use.kind, Activity::send_receive);
  EXPECT_EQ(use.without_bytes, 1);
  // Lists of lists of sizes, and sizes beyond all measure.
  use = only_collective(
      document(older_call("nccl:all_reduce", "[[[1],[2]],[1152921504606846976,1152921504606846976]]") + launched));
  EXPECT_EQ(use.without_bytes, 1);
}

TEST(KinetoBytes, OfTheRecordThatAKernelNames) {
  const std::string record = R"({"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":9,"tid":1,"ts":2,"dur":1,
    "args":{"External id":31,"Collective name":"allreduce","In msg nelems":6,"Out msg nelems":6,"dtype":"Double"}},)";
  const auto use = only_collective(
      document(record + kernel("0", 0, R"(,"correlation":44,"External id":31)", "ncclDevKernel_AllReduce_Sum_f64(x)")));
  EXPECT_EQ(use.bytes, 48);
}

TEST(KinetoClock, CountsFromItsBaseOrIsUnixTime) {
  const auto header = [](const std::string& ts, const std::string& before) {
    return loaded(
               document(R"({"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":)" + ts + R"(,"dur":1})", before))
        .trace.header;
  };
  const Header relative = header("12.5", R"("baseTimeNanoseconds":1700000000000000000,)");
  EXPECT_EQ(relative.wall_ns - relative.clock_ns, 1'700'000'000'000'000'000);
  const Header absolute = header("1682725897227300", "");
  EXPECT_EQ(absolute.wall_ns - absolute.clock_ns, 0);
  EXPECT_NE(absolute.wall_ns, 0);
  // A file may name a base and not keep to it.
  const Header both = header("1682725897227300", R"("baseTimeNanoseconds":1700000000000000000,)");
  EXPECT_EQ(both.wall_ns - both.clock_ns, 0);
  EXPECT_EQ(header("12.5", "").wall_ns, 0);
}

TEST(KinetoSteps, BelongToTheirRank) {
  const auto step = [](const std::string& pid, int number, int at) {
    return R"({"ph":"X","cat":"user_annotation","name":"ProfilerStep#)" + std::to_string(number) + R"(","pid":)" + pid +
           R"(,"tid":1,"ts":)" + std::to_string(at) + R"(,"dur":10},{"ph":"X","cat":"cpu_op","name":"a","pid":)" + pid +
           R"(,"tid":1,"ts":)" + std::to_string(at + 1) + R"(,"dur":1})";
  };
  const Trace trace =
      loaded(document(step("\"rank 1 x\"", 5, 0) + "," + step("\"rank 2 x\"", 8, 2) + "," + op("\"rank 3 x\""))).trace;
  std::vector<std::int32_t> steps;
  for (std::size_t i = 0; i < trace.spans.size(); ++i)
    if (trace.name_of(trace.spans.name[i]) != "aten::mm")
      steps.push_back(trace.spans.step[i]);
    else
      EXPECT_EQ(trace.spans.phase[i], Phase::creation);  // of a rank that has none
  EXPECT_THAT(steps, ElementsAre(5, 5, 8, 8));
}

TEST(KinetoRecording, OfNothingHasNoTables) {
  const LoadedTrace none = loaded(document("", R"("schemaVersion":1,)"));
  const Profile found = profile(none.trace);
  EXPECT_THAT(found.devices, IsEmpty());
  EXPECT_THAT(found.operations, IsEmpty());
  EXPECT_THAT(ranks_of(none.trace), IsEmpty());
}

}  // namespace
}  // namespace shard
