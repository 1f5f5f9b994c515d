// Does a dry run know what blocks are for that the program's optimizers hold, whatever made them?
#include <gmock/gmock.h>

#include <map>
#include <string>

#include "tests/dryrun/fake_pytorch.h"

namespace shard::test {
namespace {

class DryRunHoldings : public FakePyTorch {
 protected:
  DryRunHoldings() { more_environment_["FAKE_TORCH_TRAINS"] = "1"; }

  /// In MiB, by category, at the peak.
  std::map<std::string, std::int64_t> categories(const std::string& program) {
    std::map<std::string, std::int64_t> of;
    const nlohmann::json answer = json_of(dryrun(program), 0);
    for (const auto& [name, bytes] : answer["categories"].items()) of[name] = bytes.get<std::int64_t>() >> 20;
    return of;
  }
};

using Categories = std::map<std::string, std::int64_t>;

// An optimizer whose frames are nobody's that is known: parameters of 4 MiB, gradients of 4, states of 8 and 1.
constexpr const char* kOptimizer = R"(import torch
def made(mib):
    return torch.Tensor(torch.empty(mib << 20))
class State:
    def __init__(self):
        self.projection = made(1)
class Optimizer(torch.optim.Optimizer):
    def __init__(self, parameters):
        self.param_groups, self.state = [{"params": parameters}], {}
    def update(self):
        if not self.state:
            self.state = {each: {"moments": [made(8)], "projector": State(), "step": 3} for each in self.param_groups[0]["params"]}
weights = [made(4), made(4)]
optimizer = Optimizer(weights)
def train():
    for each in weights:
        each.grad = made(4)
    torch.autograd.backward(lambda: None)
    optimizer.step()
    for each in weights:
        each.grad.memory.free()
        each.grad = None
)";

TEST_F(DryRunHoldings, AreParametersGradientsAndStates) {
  EXPECT_EQ(categories(std::string(kOptimizer) + "for _ in range(3): train()\n"),
            (Categories{{"parameter", 8}, {"gradient", 8}, {"optimizer_state", 18}}));
}

TEST_F(DryRunHoldings, WhatTookTheSamePlaceLaterIsSomethingElse) {
  EXPECT_EQ(categories(std::string(kOptimizer) + "train()\nothers = [made(4) for _ in range(4)]\n"),
            (Categories{{"parameter", 8}, {"not_known", 16}, {"optimizer_state", 18}}));
}

TEST_F(DryRunHoldings, TensorsOfTheHostHaveNoBlock) {
  EXPECT_EQ(categories(std::string(kOptimizer) + "for each in weights: each.is_cuda = False\ntrain()\n"),
            (Categories{{"not_known", 8}, {"gradient", 8}, {"optimizer_state", 18}}));
}

TEST_F(DryRunHoldings, OfALongRunTheEventsThatAreGoneAreCounted) {
  more_environment_["FAKE_TORCH_KEEPS"] = "40";
  EXPECT_EQ(categories(std::string(kOptimizer) + "for _ in range(20): train()\n")["gradient"], 8);
}

}  // namespace
}  // namespace shard::test
