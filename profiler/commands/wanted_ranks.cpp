// Stages are known to the program of a framework's recipe, which has a function for it (dryrun/python).
#include "profiler/commands/wanted_ranks.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <utility>

#include "profiler/process/child.h"
#include "profiler/process/run_folder.h"
#include "traces/base/scratch.h"

namespace shard::dryrun {
namespace {

/// Side by side they share this machine's memory: about a gigabyte each.
constexpr std::int64_t kMostSideBySide = 64;

/// Python may have printed something before.
constexpr std::string_view kMarker = "shardscope asks for stages:";

constexpr const char* kQuestion = R"(
import json, runpy, sys
print("\nshardscope asks for stages:")
try:
    print(json.dumps(runpy.run_path(sys.argv[1])["stages"](json.load(open(sys.argv[2])))))
except SystemExit as fault:
    print(json.dumps({"fault": str(fault).removeprefix("shardscope dryrun: ")}))
)";

struct Stages {
  std::int64_t count = 1;
  std::int64_t apart = 0;  ///< ranks from one stage to the next; 0: each stage is one piece of the world
  bool told = false;       ///< one needs to be told by the one before
};

Error unknown(std::string why, std::string where) {
  return {Errc::contradiction, std::move(why), std::move(where),
          "--rank all, which runs every rank, or --rank 0,8,16 for the answer of some"};
}

Result<Stages> stages_of(const Recipe& recipe) {
  const Result<Scratch> folder = profiler::run_folder();
  if (!folder) return folder.error();
  const Result<std::vector<std::string>> words = recipe_program(recipe, folder->path());
  if (!words) return words.error();
  const Result<profiler::Ended> asked =
      profiler::run_and_read({words->front(), "-c", kQuestion, words->at(1), words->at(2)});
  if (!asked) return asked.error();
  const std::size_t marked = asked->out.rfind(kMarker);
  const nlohmann::json said =
      nlohmann::json::parse(marked == std::string::npos ? "" : asked->out.substr(marked + kMarker.size()), nullptr,
                            /*allow_exceptions=*/false);
  if (!said.is_object()) return unknown("its Python does not say what stages there are", "--recipe " + recipe.name);
  if (said.contains("fault")) return unknown(said.value("fault", ""), "--rank stages");
  return Stages{.count = std::max<std::int64_t>(1, said.value("stages", std::int64_t{1})),
                .apart = said.value("apart", std::int64_t{0}),
                .told = said.value("told", false)};
}

}  // namespace

bool WantedRanks::has(int rank) const {
  return all || std::ranges::find(named, rank) != named.end();
}

Result<void> read_ranks(std::string_view text, WantedRanks& ranks) {
  WantedRanks read{.all = text == "all", .stages = text == "stages", .named = {}};
  for (std::size_t at = 0; !read.all && !read.stages && at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    std::int64_t rank = -1;
    const auto [stopped, fault] = std::from_chars(text.data() + at, text.data() + end, rank);
    if (fault != std::errc() || stopped != text.data() + end || rank < 0)
      return Error{Errc::usage, "'" + std::string(text) + "' names no ranks", "--rank",
                   "a rank, several (0,3,7), stages, or all"};
    read.named.push_back(rank);
    at = end + 1;
  }
  ranks = std::move(read);
  return {};
}

Result<void> find_stages(const Recipe& recipe, std::int64_t world_size, WantedRanks& ranks) {
  if (!ranks.stages) return {};
  if (recipe.name.empty())
    return unknown("what the stages of a program of your own are is not known here", "--rank stages");
  if (recipe.name != "megatron" && recipe.name != "torchtitan")
    return Error{Errc::contradiction, "the recipe " + recipe.name + " has no pipeline, and so no stages",
                 "--rank stages", "--rank 0, or --rank all"};
  const Result<Stages> stages = stages_of(recipe);
  if (!stages) return stages.error();
  if (world_size % stages->count != 0)
    return Error{
        Errc::contradiction,
        std::to_string(world_size) + " ranks are not " + std::to_string(stages->count) + " stages of equal size",
        "--world-size", "a multiple of " + std::to_string(stages->count)};
  const std::int64_t apart = stages->apart > 0 ? stages->apart : world_size / stages->count;
  if (apart * (stages->count - 1) >= world_size)
    return Error{Errc::contradiction,
                 std::to_string(world_size) + " ranks have no room for " + std::to_string(stages->count) +
                     " stages with " + std::to_string(apart) + " ranks between them",
                 "--world-size", "a multiple of " + std::to_string(stages->count * apart)};
  ranks.apart = !stages->told;
  for (std::int64_t i = 0; i < stages->count; ++i) ranks.named.push_back(i * apart);
  return {};
}

Result<std::vector<int>> running_ranks(const WantedRanks& wanted, std::int64_t world_size) {
  for (const std::int64_t rank : wanted.named)
    if (!wanted.all && rank >= world_size)
      return Error{Errc::contradiction, "there is no rank " + std::to_string(rank), "--rank",
                   "0 to " + std::to_string(world_size - 1)};
  if (wanted.alone() || wanted.apart) return std::vector<int>(wanted.named.begin(), wanted.named.end());
  if (world_size > kMostSideBySide)
    return Error{Errc::contradiction, std::to_string(world_size) + " ranks do not run side by side", "--rank",
                 "one rank, which runs alone, or a --world-size of at most " + std::to_string(kMostSideBySide)};
  std::vector<int> all(static_cast<std::size_t>(world_size));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace shard::dryrun
