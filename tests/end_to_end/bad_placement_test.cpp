// What does a user read who puts model data where it cannot be, or where it does not fit?
#include "tests/end_to_end/mistakes.h"

namespace shard::test {
namespace {

const std::vector<Mistake> kPlacements = {
    {"DeviceAndHost",
     nano({"--placement", "device", "--param-placement", "host"}),
     78,
     {"--param-placement host (command line)", "--placement device (command line)", "--placement static"}},
    {"HostAndFraction",
     nano({"--placement", "host", "--optimizer-placement", "0.5"}),
     78,
     {"--optimizer-placement 0.5", "--placement host", "--placement static"}},
    {"DiskPathForNothing",
     nano({"--disk-path", "."}),
     78,
     {"--disk-path .", "--optimizer-placement", "leave --disk-path out"}},
    {"ReuseInTwoPlaces",
     nano({"--reuse-fp16-shard", "--stage", "3", "--precision", "bf16", "--param-placement", "host", "--grad-placement",
           "device"}),
     78,
     {"--grad-placement device (command line)", "--reuse-fp16-shard", "--param-placement host (command line)",
      "--grad-placement host"}},
    {"DoesNotFit",
     nano({"--world-size", "2", "--stage", "1", "--device-capacity", "14Mi"}),
     3,
     {"does not fit", "try: --", "largest at the peak", "moment"}},
    {"HostDoesNotFit",
     nano({"--placement", "host", "--host-capacity", "4Mi"}),
     3,
     {"does not fit", "host memory", "try: --", "largest at the peak", "in host memory"}},
    {"DiskWithoutAPath",
     nano({"--optimizer-placement", "disk"}),
     78,
     {"--optimizer-placement disk", "--disk-path is not given", "--disk-path DIR"}},
    {"ParametersOnDisk", nano({"--param-placement", "disk"}), 78, {"--param-placement", "only optimizer state"}},
    {"FractionAboveOne", nano({"--grad-placement", "1.5"}), 2, {"--grad-placement", "not between 0 and 1"}},
    {"PlacementIsAWord", nano({"--optimizer-placement", "tape"}), 2, {"'tape'", "neither a memory nor a fraction"}},
    {"StaticOfNothing", nano({"--placement", "static"}), 78, {"--placement static", "--optimizer-placement"}},
    {"AutomaticWithoutACapacity",
     nano({"--placement", "auto"}),
     78,
     {"--placement auto", "--device-capacity", "cluster"}},
    {"MarginWithoutAutomatic", nano({"--gpu-margin-mem-ratio", "0.5"}), 78, {"--gpu-margin-mem-ratio", "--placement"}},
    {"MarginAboveOne",
     nano({"--placement", "auto", "--device-capacity", "20Mi", "--gpu-margin-mem-ratio", "2"}),
     2,
     {"--gpu-margin-mem-ratio", "at most 1"}},
    {"FromTraceWithoutAutomatic", nano({"--from-trace", "good.sst"}), 78, {"--from-trace", "--placement auto"}},
    {"FromAnAbsentTrace",
     nano({"--placement", "auto", "--device-capacity", "20Mi", "--from-trace", "nosuch.sst"}),
     66,
     {"nosuch.sst"}},
    {"FromGarbage",
     nano({"--placement", "auto", "--device-capacity", "20Mi", "--from-trace", "garbage.sst"}),
     65,
     {"garbage.sst", "byte 0"}},
    {"PlacementOfAnotherFramework",
     nano({"--like", "pytorch@1.8", "--placement", "host"}),
     78,
     {"--placement host", "--like", "leave --placement out"}},
};

INSTANTIATE_TEST_SUITE_P(Placement, BadInput, testing::ValuesIn(kPlacements), name_of);

}  // namespace
}  // namespace shard::test
