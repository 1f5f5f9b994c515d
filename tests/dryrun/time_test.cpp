// `dryrun --time`: is what a program gives the GPU kept, whole, and priced?
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/dryrun/fake_pytorch.h"

namespace shard::test {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class DryRunTime : public FakePyTorch {
 protected:
  DryRunTime() { more_environment_["FAKE_TORCH_TRAINS"] = "1"; }

  nlohmann::json answer(const std::string& program, Words options = {"--time", "--json"}) {
    const Outcome outcome = dryrun(program, std::move(options));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out, nullptr, false);
  }
};

/// Steps with products of 4096 but for the last, which is not whole.
constexpr const char* kProgram = R"(import torch, ctypes, os
torch.empty(4096)
library = ctypes.CDLL(os.path.join(os.environ["PLACE"], "packages/torch/lib/libuses_cuda.so"))
class Optimizer(torch.optim.Optimizer):
    def update(self): pass
optimizer = Optimizer()
for size in SIZES:
    torch.autograd.backward(lambda: None)
    assert library.give_a_step(size) == 0
    optimizer.step()
assert library.give_a_step(8192) == 0
)";

std::string program(const std::string& sizes) {
  std::string text = kProgram;
  return text.replace(text.find("SIZES"), 5, sizes);
}

double seconds_of(const nlohmann::json& step, const std::string& part) {
  for (const auto& each : step["parts"])
    if (each["name"] == part) return each["seconds"].get<double>();
  return 0;
}

TEST_F(DryRunTime, PricesTheLastWholeStepAndNamesWhatHasNoLaw) {
  const nlohmann::json step = answer(program("(512, 512, 4096)"))["step"];
  ASSERT_TRUE(step.is_object()) << step;
  EXPECT_EQ(step["step"], 3);
  EXPECT_EQ(step["kernels"], 3) << "a product, a copy, a kernel";
  // 2 * 4096^3 flops at 600 to 900 TFLOP/s.
  EXPECT_GT(seconds_of(step, "products"), 1.4e-4);
  EXPECT_LT(seconds_of(step, "products"), 3e-4);
  ASSERT_EQ(step["not_known"].size(), 1u) << step;
  EXPECT_EQ(step["not_known"][0]["kernel"], "my_own::kernel");
  EXPECT_LT(step["coverage"].get<double>(), 1);
  EXPECT_LT(step["low"], step["seconds"]);
  EXPECT_LT(step["seconds"], step["high"]);
}

TEST_F(DryRunTime, LongRunsKeepTheirFirstSteps) {
  const nlohmann::json step = answer(program("[512] * 30"))["step"];
  ASSERT_TRUE(step.is_object());
  EXPECT_EQ(step["step"], 4);
}

/// Steps as they are, then one that is captured and launched.
std::string captured(int eager, int launches) {
  std::string text = program("[512] * " + std::to_string(eager));
  text.resize(text.rfind("assert"));
  return text + "graph = torch.cuda.CUDAGraph()\ngraph.capture_begin()\ntorch.autograd.backward(lambda: None)\n" +
         "assert library.give_a_step(4096) == 0\noptimizer.step()\ngraph.capture_end()\nfor _ in range(" +
         std::to_string(launches) + "): graph.replay()\n";
}

TEST_F(DryRunTime, AStepThatAGraphHoldsIsTakenWhenItIsLaunched) {
  for (const int eager : {1, 2, 11}) {
    const nlohmann::json told = answer(captured(eager, 3));
    EXPECT_EQ(told["steps_seen"], eager + 3);
    EXPECT_EQ(told["step"]["step"], eager + 3);
    EXPECT_EQ(told["step"]["kernels"], 3) << told["step"];
    EXPECT_GT(seconds_of(told["step"], "products"), 1.4e-4);
  }
}

TEST_F(DryRunTime, GivesWayToAProfilerOfTheProgram) {
  // As with a schedule: it is prepared in one step and starts in a later one.
  std::string own = program("(512, 512, 4096, 4096)");
  own.insert(own.find("    optimizer.step()"),
             "    if size == 4096 and mine: mine.start()\n"
             "    elif size == 4096: mine = torch.profiler.profile(); mine._prepare_trace()\n");
  own.insert(own.find("for size"), "mine = None\n");
  const nlohmann::json told = answer(own + "mine.stop()\n");
  ASSERT_TRUE(told["step"].is_object()) << told;
  EXPECT_EQ(told["steps_seen"], 4);
}

TEST_F(DryRunTime, RangesForNsysThatTheProgramAsksForAreNoFault) {
  std::string own = program("(512, 512, 4096)");
  own.insert(own.find("for size"), "torch.autograd.profiler.emit_nvtx(record_shapes=True).__enter__()\n");
  const nlohmann::json told = answer(own);
  ASSERT_TRUE(told["step"].is_object()) << told;
  EXPECT_EQ(told["step"]["not_known"].size(), 1u) << "operators are known as without it";
}

TEST_F(DryRunTime, WithoutItNothingIsKeptAndMemoryIsTheSame) {
  const nlohmann::json with = answer(program("(512, 512)")), without = answer(program("(512, 512)"), {"--json"});
  EXPECT_FALSE(without.contains("step"));
  EXPECT_EQ(with["peak_allocated_bytes"], without["peak_allocated_bytes"]);
  EXPECT_EQ(with["peak_reserved_bytes"], without["peak_reserved_bytes"]);
}

TEST_F(DryRunTime, WritesTheStepAsAProfilerWould) {
  (void)answer(program("(512, 4096)"), {"--timeline", "step.json", "--json"});
  std::ifstream file(scratch_.path() / "step.json");
  const nlohmann::json trace = nlohmann::json::parse(file, nullptr, false);
  ASSERT_TRUE(trace.is_object());
  std::map<std::string, int> events;
  std::set<std::int64_t> launched, ran, streams;
  for (const auto& event : trace["traceEvents"]) {
    const std::string category = event.value("cat", "");
    ++events[category];
    if (category == "cuda_runtime") launched.insert(event["args"]["correlation"].get<std::int64_t>());
    if (category == "kernel" || category == "gpu_memcpy") {
      ran.insert(event["args"]["correlation"].get<std::int64_t>());
      streams.insert(event["args"]["stream"].get<std::int64_t>());
    }
  }
  EXPECT_EQ(events["kernel"], 2);
  EXPECT_EQ(events["gpu_memcpy"], 1);
  EXPECT_EQ(launched, ran);
  EXPECT_EQ(streams.size(), 2u);
  const Outcome inspected = shardscope({"inspect", scratch_.path() / "step.json", "--json"});
  EXPECT_EQ(inspected.exit_code, 0) << inspected.err;
}

TEST_F(DryRunTime, KernelsThatWereRecordedStandInForLaws) {
  const nlohmann::json laws = answer(program("(512, 4096)"), {"--timeline", "step.json", "--json"})["step"];
  std::ifstream file(scratch_.path() / "step.json");
  nlohmann::json recorded = nlohmann::json::array();
  const nlohmann::json timeline = nlohmann::json::parse(file);
  for (nlohmann::json event : timeline["traceEvents"])
    if (event.value("name", "").find("my_own::kernel") != std::string::npos && event.value("cat", "") == "kernel") {
      event["dur"] = 7000;
      recorded.push_back(event);
    }
  ASSERT_EQ(recorded.size(), 1u);
  scratch_.write("run.json", recorded.dump());
  const nlohmann::json step = answer(program("(512, 4096)"), {"--from-trace", "run.json", "--json"})["step"];
  ASSERT_TRUE(step.is_object()) << step;
  EXPECT_LT(laws["seconds"].get<double>(), 1e-3);
  EXPECT_NEAR(step["seconds"].get<double>(), 7e-3, 1e-4) << "the others run beside it";
  EXPECT_EQ(step["recorded_by"][0]["found_by"], "name, grid and block");
  EXPECT_TRUE(step["not_known"].empty());
  EXPECT_EQ(step["not_recorded"].size(), 2u) << "a product, a copy";

  scratch_.write("other.json", R"([{"ph":"X","cat":"kernel","name":"theirs","ts":20,"dur":7}])");
  const Outcome other = dryrun(program("(512, 4096)"), {"--from-trace", "other.json", "--json"});
  EXPECT_EQ(other.exit_code, 78);
  EXPECT_THAT(other.err + other.out, AllOf(HasSubstr("my_own::kernel"), HasSubstr("theirs")));
  EXPECT_TRUE(nlohmann::json::parse(other.out, nullptr, false).is_object()) << "one object";
}

TEST_F(DryRunTime, SaysWhatAStepIsInALine) {
  const Outcome outcome = dryrun(program("(512, 4096)"), {"--time"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, ContainsRegex("\nstep: [0-9.]+ us \\([0-9.]+ to [0-9.]+\\); "));
  EXPECT_THAT(outcome.out, HasSubstr("no law: 1 x my_own::kernel"));
  EXPECT_THAT(dryrun("import torch\n", {"--time"}).out, HasSubstr("no time of a step"));
}

TEST_F(DryRunTime, NeedsACardOfWhichLawsAreKnown) {
  std::ifstream file(std::filesystem::path(TEST_DATA).parent_path() / "examples" / "clusters" / "t4-16gb-x4.json");
  nlohmann::json cluster = nlohmann::json::parse(file);
  cluster.erase("kernel_laws");
  scratch_.write("mine.json", cluster.dump());
  const Outcome outcome = dryrun(program("(512,)"), {"--time", "--cluster", "./mine.json"});
  EXPECT_EQ(outcome.exit_code, 78) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("kernel_laws"));
}

}  // namespace
}  // namespace shard::test
