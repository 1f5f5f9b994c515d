// Does a program's recording tell operators with each of their tensors, and the kernels and calls that belong to them?
#include <gmock/gmock.h>

#include "tests/trace_import/files.h"
#include "traces/import/kineto_program.h"

namespace shard {
namespace {

using import::KinetoOperator;
using import::KinetoProgram;

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Result<KinetoProgram> program_in(const std::string& text) {
  import::ByteSource source = import::ByteSource::memory(files::bytes(text), "file");
  return import::read_kineto_program(source);
}
KinetoProgram program_of(const std::string& text) {
  Result<KinetoProgram> read = program_in(text);
  EXPECT_TRUE(read) << to_string(read.error());
  return read ? std::move(*read) : KinetoProgram{};
}

std::string recorded(const std::string& events, const std::string& behind = "") {
  return R"({"schemaVersion":1,"traceEvents":[)" + events + "]" + behind + "}";
}
std::string operator_with(const std::string& arguments) {
  return R"({"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":9,"ts":2.5,"dur":1.25,"args":{)" + arguments +
         "}}";
}

TEST(KinetoProgram, KeepsEveryTensorOfAListWithItsArgument) {
  const auto read = program_of(recorded(
      operator_with(R"("External id":7,"Input Dims":[[[2,3],[4]],[],[5,6]],"Input Strides":[[[3,1],[1]],[],[6,1]],)"
                    R"("Input type":["TensorList","Scalar","c10::BFloat16"],"Concrete Inputs":["","1",""])")));
  ASSERT_THAT(read.operators, SizeIs(1));
  const KinetoOperator& op = read.operators.front();
  EXPECT_EQ(op.external_id, 7);
  EXPECT_EQ(op.thread, 9);
  ASSERT_THAT(op.inputs, SizeIs(3));
  EXPECT_THAT(op.inputs[0].sizes, ElementsAre(2, 3));
  EXPECT_THAT(op.inputs[1].sizes, ElementsAre(4));
  EXPECT_EQ(op.inputs[1].argument, 0);
  EXPECT_THAT(op.inputs[2].strides, ElementsAre(6, 1));
  EXPECT_EQ(op.inputs[2].argument, 2);
  EXPECT_EQ(op.inputs[2].type, "c10::BFloat16");
  EXPECT_THAT(op.values, ElementsAre("", "1", ""));
}

TEST(KinetoProgram, CountsFromTheTimeThatTheFileSaysWhereverItSaysIt) {
  const auto read = program_of(recorded(operator_with(""), R"(,"baseTimeNanoseconds":1000000000000000000)"));
  ASSERT_THAT(read.operators, SizeIs(1));
  EXPECT_EQ(read.operators[0].begin_ns, 1000000000000002500);
  EXPECT_EQ(read.operators[0].end_ns, 1000000000000003750);
  EXPECT_THAT(read.operators[0].inputs, IsEmpty());
}

TEST(KinetoProgram, TellsKernelsCopiesAndTheCallsThatLaunchedThem) {
  const auto read = program_of(recorded(
      R"({"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","tid":9,"ts":3,"dur":1,"args":{"correlation":4}},)"
      R"({"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":5,"dur":2,"args":{"External id":7,"correlation":4,)"
      R"("stream":7,"grid":[2,3,1],"block":[128,1,1]}},)"
      R"({"ph":"X","cat":"gpu_memcpy","name":"Memcpy DtoD","pid":0,"tid":7,"ts":8,"dur":1,"args":{"bytes":64}},)"
      R"({"ph":"X","cat":"kernel","name":"never ended","ts":9},{"ph":"i","cat":"kernel","name":"no span","ts":9})"));
  ASSERT_THAT(read.calls, SizeIs(1));
  EXPECT_EQ(read.calls[0].correlation, 4);
  ASSERT_THAT(read.kernels, SizeIs(2));
  EXPECT_THAT(read.kernels[0].grid, ElementsAre(2, 3, 1));
  EXPECT_EQ(read.kernels[0].duration_ns, 2000);
  EXPECT_EQ(read.kernels[0].external_id, 7);
  EXPECT_EQ(read.kernels[0].bytes, -1);
  EXPECT_EQ(read.kernels[1].category, "gpu_memcpy");
  EXPECT_EQ(read.kernels[1].bytes, 64);
}

TEST(KinetoProgram, TellsTheRanksOfACollective) {
  const auto read = program_of(recorded(operator_with(R"("Process Group Ranks":"[0, 4, 12]")")));
  ASSERT_THAT(read.operators, SizeIs(1));
  EXPECT_THAT(read.operators[0].process_group, ElementsAre(0, 4, 12));
}

TEST(KinetoProgram, ReadsCompressedAndBareLists) {
  EXPECT_THAT(program_of(files::gzip(recorded(operator_with("")))).operators, SizeIs(1));
  EXPECT_THAT(program_of("[" + operator_with("") + "]").operators, SizeIs(1));
}

TEST(KinetoProgram, SaysWhereAFileIsNoRecording) {
  for (const char* const text : {"", "7", R"({"traceEvents":[{"ph":"X",]})", R"({"traceEvents":[{"args":{"grid":[1)"}) {
    const auto read = program_in(text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, Errc::malformed) << text;
  }
}

}  // namespace
}  // namespace shard
