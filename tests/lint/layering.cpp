// The table of layers.
#include "tests/lint/layering.h"

#include <algorithm>
#include <regex>

namespace shard::lint {
namespace {

/// Files whose path begins with `files` (the longest match counts) may include project headers whose path begins with
/// one of `may`, and those beside them.
struct Layer {
  std::string files;
  std::vector<std::string> may;
};

/// Of the programs that look at other programs.
const std::vector<Layer>& profiler_layers() {
  static const std::vector<Layer> kLayers{
      {"profiler/standin/", {"traces/base/segment_placement.h"}},
      {"profiler/process/", {"traces/base/"}},
      {"profiler/spool/", {"traces/base/"}},
      {"profiler/clock/", {}},
      {"profiler/ranges/", {"traces/base/"}},
      {"profiler/timeline/", {"traces/", "profiler/spool/", "profiler/clock/"}},
      {"profiler/cupti/", {"traces/base/", "profiler/spool/", "profiler/ranges/"}},
      {"profiler/inject/", {"traces/base/", "profiler/spool/", "profiler/ranges/", "profiler/cupti/"}},
      {"profiler/record/",
       {"traces/", "profiler/process/", "profiler/spool/", "profiler/ranges/", "profiler/timeline/",
        "profiler/inject/inject.h"}},
      {"profiler/dryrun/", {"traces/", "profiler/process/", "profiler/standin/counters.h", "profiler/standin/work.h"}},
      {"profiler/steptime/", {"traces/", "sim/price/", "sim/cost/", "sim/cluster/", "profiler/standin/work.h"}},
      {"profiler/commands/",
       {"traces/", "sim/cli/", "sim/commands/printing.h", "sim/cluster/", "sim/like/program/",
        "sim/model/known_models.h", "sim/model/python_json.h", "sim/model/examples.h", "profiler/dryrun/",
        "profiler/process/", "profiler/ranges/", "profiler/record/", "profiler/steptime/", "profiler/timeline/"}},
      {"profiler/", {"traces/"}},
      {"profiler/main", {"traces/", "sim/cli/", "profiler/commands/"}},
  };
  return kLayers;
}

// Downwards only. "X/" is a folder with all in it; "X/main" is the programs' main files of X.
const std::vector<Layer>& layers() {
  // The rooms of the planner, each above those before it.
  static const std::vector<std::string> kDescribes{"traces/base/", "sim/model/",  "sim/chunk/",
                                                   "sim/memory/",  "sim/target/", "sim/strategy/"};
  static const std::vector<std::string> kPlans{"traces/base/", "sim/model/",  "sim/chunk/",
                                               "sim/memory/",  "sim/target/", "sim/strategy/",
                                               "sim/ir/",      "sim/check/",  "sim/compile/"};
  static const std::vector<std::string> kPlanner{
      "traces/",     "sim/model/",  "sim/chunk/",   "sim/memory/",  "sim/target/",  "sim/strategy/", "sim/ir/",
      "sim/record/", "sim/check/",  "sim/compile/", "sim/cluster/", "sim/cost/",    "sim/price/",    "sim/step/",
      "sim/engine/", "sim/search/", "sim/like/",    "sim/cli/",     "sim/foreign/", "sim/validate/", "sim/mcp/"};
  static const auto with = [](std::vector<std::string> list, const std::string& more) {
    list.push_back(more);
    return list;
  };
  static const auto kWithPlannerCommands = with(kPlanner, "sim/commands/");
  static const auto kWithCommands = with(kWithPlannerCommands, "executor/");
  // What knows the plan, but neither its price nor the simulator.
  static const std::vector<std::string> kRunsPlans{
      "traces/",           "sim/model/",        "sim/chunk/",      "sim/memory/",     "sim/target/",
      "sim/strategy/",     "sim/ir/",           "sim/record/",     "sim/check/",      "sim/compile/",
      "executor/comm/",    "executor/data/",    "executor/state/", "executor/cpu/",   "executor/launch/",
      "executor/numeric/", "executor/kernels/", "executor/rank/",  "executor/flight/"};
  static const std::vector<std::string> kSimulates =
      with(with(with(with(kPlans, "traces/"), "sim/record/"), "sim/cluster/"), "sim/cost/");
  static const std::vector<Layer> kLayers{
      {"traces/base/", {}},
      {"traces/", {"traces/"}},
      {"sim/model/", {"traces/base/"}},
      {"sim/chunk/", {"traces/base/", "sim/model/"}},
      {"sim/memory/", {"traces/base/", "sim/chunk/", "sim/model/"}},
      {"sim/target/", {"traces/base/", "sim/model/"}},
      {"sim/strategy/", {"traces/base/", "sim/model/", "sim/target/"}},
      {"sim/ir/", kDescribes},
      {"sim/record/", with(with(kDescribes, "sim/ir/"), "traces/")},
      {"sim/check/", with(kDescribes, "sim/ir/")},
      {"sim/compile/", kPlans},
      {"sim/cluster/", kPlans},
      {"sim/cost/", with(kPlans, "sim/cluster/")},
      {"sim/price/", {"traces/base/", "traces/import/kineto_program.h", "sim/cluster/", "sim/cost/"}},
      {"sim/step/", {"traces/base/", "sim/cluster/", "sim/cost/"}},
      {"sim/engine/", kSimulates},
      {"sim/search/", with(kSimulates, "sim/engine/")},
      {"sim/cli/", {"traces/base/", "sim/model/"}},
      {"sim/mcp/", {"traces/base/", "sim/cli/"}},
      {"sim/foreign/", {"traces/base/", "sim/model/"}},
      {"sim/like/program/", {"traces/", "sim/ir/pool.h"}},
      {"sim/like/pytorch/", {"traces/base/"}},
      {"sim/like/", with(with(kSimulates, "sim/engine/"), "sim/step/")},
      {"sim/validate/", with(with(kSimulates, "sim/step/"), "sim/like/")},
      {"sim/commands/", kPlanner},
      {"sim/main", kWithPlannerCommands},
      {"executor/numeric/", {"traces/base/"}},
      {"executor/kernels/", {"traces/base/", "sim/ir/control_block.h", "executor/numeric/"}},
      {"executor/comm/", {"traces/base/", "sim/target/comm_workspace.h", "executor/numeric/"}},
      {"executor/rates/", {"traces/base/", "sim/foreign/"}},
      {"executor/data/", kRunsPlans},
      {"executor/state/", kRunsPlans},
      {"executor/cpu/", kRunsPlans},
      {"executor/cuda/", kRunsPlans},
      // A run of ours beside what its devices recorded of it.
      {"executor/profile/",
       with(with(with(with(kRunsPlans, "executor/cuda/"), "profiler/spool/"), "profiler/timeline/"),
            "profiler/cupti/own_program.h")},
      // Only these may know both the simulator and the executor, to predict what they are about to run.
      {"executor/commands/", kWithCommands},
      {"executor/api/", kWithCommands},
      {"executor/api/shardscope/", {"traces/base/"}},  // what programs of others see
      {"executor/main", kWithCommands},
      {"executor/", kRunsPlans},
      {"viewer/index/", {"traces/"}},
      {"viewer/ui/", {"traces/", "viewer/index/"}},
      {"viewer/sink/", {"traces/", "viewer/index/", "viewer/ui/"}},
      {"viewer/commands/",
       {"traces/", "sim/cli/", "sim/commands/allocator_what_ifs.h", "sim/commands/holders_options.h",
        "sim/commands/printing.h", "viewer/"}},
      {"viewer/main", {"traces/", "sim/cli/", "viewer/"}},
  };
  return kLayers;
}

/// A header that only some files may include. An empty list: none.
struct Restricted {
  std::regex header;
  std::vector<std::string> only;
  std::string reason;
};

const std::vector<Restricted>& restrictions() {
  static const std::vector<Restricted> kRestrictions{
      {std::regex("cuda.*|cublas.*|curand.*|cudnn.*|nccl.*|cooperative_groups.*"),
       {"executor/cuda/", "profiler/"},
       "CUDA headers belong to executor/cuda and profiler"},
      {std::regex("cupti.*|generated_cuda.*|generated_nvtx.*"), {"profiler/cupti/"}, "CUPTI belongs to profiler/cupti"},
      {std::regex("imgui.*|implot.*|GLFW/.*|GL/.*|SDL.*"), {"viewer/ui/", "viewer/sink/"}, "windows belong to viewer"},
      {std::regex("mpi\\.h"), {"executor/comm/"}, "MPI belongs to executor/comm"},
      {std::regex("(oneapi/)?dnnl/?.*|cblas.*"), {"executor/cpu/"}, "matrix libraries belong to executor/cpu"},
      {std::regex("openssl/.*"), {"executor/"}, "libcrypto belongs to executor"},
      {std::regex("boost/program_options.*"), {"sim/cli/"}, "options are read in sim/cli"},
      {std::regex("zstd.*|zlib\\.h"), {"traces/"}, "compression belongs to the trace format"},
      {std::regex("ranges"),
       {"viewer/ui/"},
       "clang 14, which builds the fuzz targets, cannot read libstdc++'s views: algorithms are in <algorithm>"},
      {std::regex("omp\\.h"), {}, "own threads, no OpenMP: the thread sanitizer does not understand it"},
  };
  return kRestrictions;
}

/// Folders that may not know clocks, threads, files or devices.
const std::regex& impure() {
  static const std::regex kImpure(
      "chrono|ctime|time\\.h|sys/time\\.h|thread|mutex|shared_mutex|condition_variable|atomic|future|fstream|iostream|"
      "filesystem|unistd\\.h|fcntl\\.h|sys/.*|random");
  return kImpure;
}
bool is_pure(const std::string& path) {
  for (const char* folder :
       {"sim/chunk/", "sim/memory/", "sim/target/", "sim/strategy/", "sim/ir/", "sim/check/", "sim/compile/"}) {
    if (path.starts_with(folder)) return true;
  }
  return false;
}

bool begins_with_any(const std::string& path, const std::vector<std::string>& beginnings) {
  return std::ranges::any_of(beginnings, [&](const std::string& each) { return path.starts_with(each); });
}

const Layer* layer_of(const std::string& path) {
  const Layer* best = nullptr;
  for (const std::vector<Layer>* const list : {&layers(), &profiler_layers()}) {
    for (const Layer& layer : *list)
      if (path.starts_with(layer.files) && (best == nullptr || layer.files.size() > best->files.size())) best = &layer;
  }
  return best;
}

}  // namespace

std::vector<std::string> layering_faults(const SourceFile& file) {
  std::vector<std::string> faults;
  const Layer* layer = layer_of(file.path);
  if (layer == nullptr) return {file.path + ":1: is in no known folder (tests/lint/layering.cpp lists them)"};
  static const std::regex kInclude("#\\s*include\\s*([<\"])([^>\"]+)[>\"].*");
  const std::string folder = file.path.substr(0, file.path.rfind('/') + 1);
  for (const auto& [number, line] : code_lines(file.text)) {
    std::smatch match;
    if (!std::regex_match(line, match, kInclude)) continue;
    const std::string header = match[2];
    const auto fault = [&, n = number](const std::string& why) {
      faults.push_back(file.path + ":" + std::to_string(n) + ": may not include " + header + " (" + why + ")");
    };
    if (match[1] == "\"" && !begins_with_any(header, {"imgui", "cuda", "cupti"})) {
      // Its own folder, with subfolders (sim/compile/passes may include sim/compile and the other way round).
      const bool own = header.starts_with(folder) || header.starts_with(layer->files);
      if (!own && !begins_with_any(header, layer->may)) {
        fault(begins_with_any(header, code_folders()) ? "that is not below it"
                                                      : "includes are paths from the repository's root");
      }
    }
    for (const Restricted& each : restrictions()) {
      if (std::regex_match(header, each.header) && !begins_with_any(file.path, each.only)) fault(each.reason);
    }
    if (match[1] == "<" && is_pure(file.path) && std::regex_match(header, impure())) {
      fault("this folder is pure: no clock, thread, file or chance");
    }
  }
  return faults;
}

}  // namespace shard::lint
