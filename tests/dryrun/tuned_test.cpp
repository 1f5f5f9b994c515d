// Are torch.compile's kernels taken for tuned, but of a first run, and does the answer say so?
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/dryrun/fake_pytorch.h"

namespace shard::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using TunedTest = FakePyTorch;

// Inductor's choice between two variants, of which the second is faster: one kernel asks the cache, another times them.
constexpr const char* kTunes = R"(import os, tempfile, torch
with tempfile.TemporaryDirectory() as folder:
    place = os.path.join(folder, "_inductor", "runtime")
    os.makedirs(place)
    with open(os.path.join(place, "triton_heuristics.py"), "w") as file:
        file.write('''
class AutotuneCache:
    def read_best(self, inductor_meta, configs):
        return None
class CachingAutotuner:
    inductor_meta = {"kernel_name": "add"}
    launchers = ["slow", "fast"]
    def benchmark_all_configs(self):
        return {"slow": 2.0, "fast": 1.0}
''')
    torch.__path__.append(folder)
    from torch._inductor.runtime import triton_heuristics as heuristics
class Config:
    pass
found = heuristics.AutotuneCache().read_best({"kernel_name": "multiply"}, [Config(), Config()])
timings = heuristics.CachingAutotuner().benchmark_all_configs()
print("cache:", "hit" if found else "miss", "variant:", min(timings, key=timings.get))
)";

TEST_F(TunedTest, LaterRunsFindTheirKernelsTuned) {
  const Outcome ran = dryrun(kTunes, {});
  EXPECT_THAT(ran.out + ran.err, HasSubstr("cache: hit variant: slow"));
  EXPECT_THAT(ran.out, HasSubstr("torch.compile has tuned its kernels before (2)"));
  EXPECT_EQ(json_of(dryrun(kTunes, {"--json"})).at("kernels_taken_as_tuned"), 2);
}

TEST_F(TunedTest, TheFirstRunTimesThem) {
  const Outcome ran = dryrun(kTunes, {"--first-run"});
  EXPECT_THAT(ran.out + ran.err, HasSubstr("cache: miss variant: fast"));
  EXPECT_THAT(ran.out, Not(HasSubstr("tuned")));
  EXPECT_EQ(json_of(dryrun(kTunes, {"--json", "--first-run"})).at("kernels_taken_as_tuned"), 0);
}

}  // namespace
}  // namespace shard::test
