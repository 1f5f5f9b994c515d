// Does a dry run say what each part of a run takes?
#include <gmock/gmock.h>

#include <map>
#include <string>

#include "tests/dryrun/fake_pytorch.h"

namespace shard::test {
namespace {

class DryRunPhases : public FakePyTorch {
 protected:
  DryRunPhases() { more_environment_["FAKE_TORCH_TRAINS"] = "1"; }

  /// In MiB, by phase.
  static std::map<std::string, std::int64_t> peaks(const nlohmann::json& answer) {
    std::map<std::string, std::int64_t> of;
    for (const auto& each : answer["phases"])
      of[each["phase"].get<std::string>()] = each["peak_allocated_bytes"].get<std::int64_t>() >> 20;
    return of;
  }
};

constexpr const char* kModel = R"(import torch
def taken(mib):
    torch.empty(mib << 20).free()
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.empty(4 << 20)
    def forward(self, mib):
        taken(mib)
class Optimizer(torch.optim.Optimizer):
    state = None
    def update(self):
        self.state = self.state or torch.empty(8 << 20)
def backward(mib):
    torch.autograd.backward(lambda: taken(mib))
model, optimizer = Model(), Optimizer()
)";

using Peaks = std::map<std::string, std::int64_t>;

TEST_F(DryRunPhases, EachHasItsPeakAndWhoHeldMost) {
  const nlohmann::json answer = json_of(dryrun(std::string(kModel) + R"(
taken(1)
for step in range(3):
    model.train()
    model(3)
    backward(2)
    optimizer.step()
    if step == 1:
        model.eval()
        model(20)
        torch.save(lambda: taken(30))
        torch.load(lambda: taken(40))
)"),
                                        0);
  const Peaks expected{{"creation", 5},  {"first_step", 12}, {"steady_step", 15},
                       {"evaluate", 32}, {"save", 42},       {"load", 52}};
  EXPECT_EQ(peaks(answer), expected);
  EXPECT_EQ(answer["phases"][0]["phase"], "creation");
  EXPECT_EQ(answer["phases"][1]["phase"], "first_step");
  EXPECT_THAT(answer["phases"][0]["most_by"].get<std::string>(), ::testing::StartsWith("program.py:7 "));
}

TEST_F(DryRunPhases, APartOfTheModelThatIsFrozenIsNoEvaluation) {
  const nlohmann::json answer = json_of(dryrun(std::string(kModel) + R"(
frozen = Model()
for step in range(3):
    model.train()
    frozen.eval()
    model(50)
    backward(2)
    optimizer.step()
)"),
                                        0);
  const Peaks expected{{"creation", 8}, {"first_step", 58}, {"steady_step", 66}};
  EXPECT_EQ(peaks(answer), expected);
}

TEST_F(DryRunPhases, WithoutBackwardNothingIsAStep) {
  const nlohmann::json answer = json_of(dryrun(std::string(kModel) + "model(50)\nmodel(60)\n"), 0);
  const Peaks expected{{"creation", 4}, {"evaluate", 64}};
  EXPECT_EQ(peaks(answer), expected);
}

TEST_F(DryRunPhases, OfALongRunTheEventsThatAreLeftKnowTheirPhases) {
  more_environment_["FAKE_TORCH_KEEPS"] = "12";
  const nlohmann::json answer = json_of(dryrun(std::string(kModel) + R"(
for step in range(40):
    model(50 if step == 0 else 3)
    backward(2)
    optimizer.step()
)"),
                                        0);
  const Peaks expected{{"steady_step", 15}};
  EXPECT_EQ(peaks(answer), expected);
  EXPECT_GT(answer["unrecorded_allocations"], 50);
}

TEST_F(DryRunPhases, AKeptProgramHasThem) {
  const std::string file = scratch_.file("run.program");
  const nlohmann::json ran = json_of(
      dryrun(std::string(kModel) + "model(3)\nbackward(2)\noptimizer.step()\nmodel(3)\n", {"--json", "--save", file}),
      0);
  ASSERT_EQ(ran["steps_seen"], 1);
  const std::string text = read_file(file);
  for (const char* phase : {"creation", "first_step", "steady_step"}) EXPECT_THAT(text, ::testing::HasSubstr(phase));
}

}  // namespace
}  // namespace shard::test
