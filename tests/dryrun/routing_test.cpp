// Is the routing that a dry run assumes the one that was asked for, and does the answer name it?
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/dryrun/fake_pytorch.h"

namespace shard::test {
namespace {

using ::testing::HasSubstr;

using RoutingTest = FakePyTorch;

constexpr const char* kChooses = R"(import json, os
with open(os.path.join(os.environ["SHARDSCOPE_DRYRUN_FOLDER"], "routing"), "a") as file:
    file.write(json.dumps({"file": "moe.py", "line": 7, "experts": 8, "each": 2}) + "\n")
print(os.environ["SHARDSCOPE_DRYRUN_ROUTING"])
)";

TEST_F(RoutingTest, IsToldToTheProgramAndNamedInTheAnswer) {
  scratch_.write("shares.json", "[3, 1]");
  const struct {
    const char* said;
    const char* reaches;
    const char* named;
  } kRoutings[] = {
      {"balanced", "balanced", "balanced"}, {"zipf:1.5", "zipf:1.5", "zipf:1.5"}, {"shares.json", "[3,1]", "given"}};
  for (const auto& each : kRoutings) {
    const Outcome json = dryrun(kChooses, {"--json", "--routing", each.said});
    EXPECT_THAT(json.err + json.out, HasSubstr(each.reaches));
    const auto answer = nlohmann::json::parse(json.out.substr(json.out.find("{\n")));
    const nlohmann::json kPlace{{"assumed", each.named}, {"file", "moe.py"}, {"line", 7}, {"experts", 8}, {"each", 2}};
    EXPECT_EQ(answer.at("routing"), nlohmann::json::array({kPlace})) << json.out;
    EXPECT_THAT(dryrun(kChooses, {"--routing", each.said}).out,
                HasSubstr(std::string(each.named) + " routing, 2 of 8 experts a token, at moe.py:7"));
  }
}

constexpr const char* kDraws = R"(import json, os, torch
draw = int(os.environ["SHARDSCOPE_DRYRUN_ROUTING_DRAW"])
with open(os.path.join(os.environ["SHARDSCOPE_DRYRUN_FOLDER"], "routing"), "a") as file:
    file.write(json.dumps({"file": "moe.py", "line": 7, "experts": 8, "each": 2}) + "\n")
kept = torch.empty([0, 5, 2, 9, 4][draw] << 20)
)";

TEST_F(RoutingTest, OfSeveralDrawsTheLargestIsToldAndTheSpread) {
  const auto answer = json_of(dryrun(kDraws, {"--json", "--routings", "4"}));
  EXPECT_EQ(answer["peak_allocated_bytes"], 9 << 20);
  EXPECT_EQ(answer["routings"]["draws"], 4);
  const nlohmann::json kSpread{{"least", 2 << 20}, {"median", 4 << 20}, {"largest", 9 << 20}};
  EXPECT_EQ(answer["routings"]["peak_allocated_bytes"], kSpread);
  const Outcome text = dryrun(kDraws, {"--routings", "3", "--trace", scratch_.file("most.sst")});
  EXPECT_THAT(text.out,
              HasSubstr("over 3 draws of balanced routing the peak was 2.00 MiB at least, 5.00 MiB in the median"));
  const auto kept = json_of(shardscope({"inspect", scratch_.file("most.sst"), "--json"}));
  EXPECT_EQ(kept["peaks"][0]["live_peak_bytes"], 9 << 20) << kept.dump(1).substr(0, 2000);
}

TEST_F(RoutingTest, WhereNoTokensChooseOneRunTellsAll) {
  const auto answer =
      json_of(dryrun("import torch\nkept = torch.empty(3 << 20)\nprint('ran')\n", {"--json", "--routings", "4"}));
  EXPECT_EQ(answer["peak_allocated_bytes"], 3 << 20);
  EXPECT_FALSE(answer.contains("routings"));
}

TEST_F(RoutingTest, WhatIsNoneIsRefused) {
  scratch_.write("none.json", "[0, 0]");
  scratch_.write("words.json", R"(["a"])");
  for (const auto& [said, code] : {std::pair("nearly", 2), std::pair("zipf:", 2), std::pair("zipf:-1", 2),
                                   std::pair("zipf:nan", 2), std::pair("none.json", 65), std::pair("words.json", 65)})
    EXPECT_EQ(dryrun("pass", {"--routing", said}).exit_code, code) << said;
}

/// Of random numbers of tokens, experts and experts a token: all are used up, none gets more than all tokens.
TEST_F(RoutingTest, TokensAreUsedUpAndTheHeavierGetsMore) {
  const Outcome outcome = dryrun(R"(import random, sys, types
routing = types.ModuleType("routing")
exec(open(")" PYTHON_FILES R"(/routing.py").read(), routing.__dict__)
random.seed(3)
for _ in range(2000):
    experts = random.randint(2, 64)
    each, tokens = random.randint(1, experts), random.randint(1, 300)
    policy = random.choice(["one-expert", f"zipf:{random.random() * 3}", str([random.randint(0, 3) for _ in range(experts - 1)] + [1])])
    weights = routing.weights_of(policy, experts)
    counts = routing.counts_of(weights, tokens, each)
    assert sum(counts) == tokens * each, (policy, counts)
    assert all(0 <= count <= tokens for count in counts), (policy, counts)
    for a in range(experts):
        for b in range(experts):
            assert weights[a] <= weights[b] or counts[a] >= counts[b] - 1, (policy, counts)
    slots = [expert for expert, count in enumerate(counts) for _ in range(count)]
    for token in range(tokens):
        assert len({slots[token + tokens * j] for j in range(each)}) == each, (policy, token)
try:
    routing.weights_of("[1, 2]", 3)
    raise AssertionError("two shares for three experts")
except SystemExit as end:
    assert "give a list of 3" in str(end)
assert routing.counts_of(routing.weights_of("one-expert", 8), 64, 2)[0] == 64
sys.exit(23)
)");
  EXPECT_EQ(outcome.exit_code, 23) << outcome.err;
}

}  // namespace
}  // namespace shard::test
