// The stand-in comes first among libraries, its Python among modules; the rest tells each where to write and who it is.
#include "profiler/dryrun/environment.h"

#include <algorithm>
#include <cstdlib>

namespace shard::dryrun {
namespace {

namespace fs = std::filesystem;

std::string before(const std::string& first, const char* variable) {
  const char* const rest = std::getenv(variable);
  return rest == nullptr || *rest == '\0' ? first : first + ":" + rest;
}

}  // namespace

fs::path folder_of(int rank, const fs::path& folder) {
  return folder / ("rank-" + std::to_string(rank));
}

fs::path exchange_folder(const fs::path& folder) {
  return folder / "exchange";
}

std::map<std::string, std::string> environment_of(const PyTorch& pytorch, const Place& place, int rank,
                                                  const fs::path& folder) {
  const fs::path own = folder_of(rank, folder);
  std::string name = place.name;
  std::ranges::replace(name, ',', ' ');
  std::map<std::string, std::string> environment{
      {"SHARDSCOPE_STANDIN",
       "name=" + name + ",cc=" + std::to_string(place.compute_capability) + ",sms=" +
           std::to_string(place.multiprocessors) + ",threads=" + std::to_string(place.threads_per_multiprocessor) +
           ",bytes=" + std::to_string(place.device_bytes) + ",count=" + std::to_string(place.devices) +
           ",upwards=" + std::to_string(place.addresses_upwards ? 1 : 0) + ",behind=" + std::to_string(place.behind) +
           ",cuda=" + std::to_string(pytorch.cuda_version)},
      {"SHARDSCOPE_STANDIN_UNKNOWN", own / "unknown"},
      {"SHARDSCOPE_STANDIN_LOADED", own / kMark},
      {"SHARDSCOPE_STANDIN_COUNTERS", own},
      // What is compiled and tuned here is not for a real card to find.
      {"TORCHINDUCTOR_CACHE_DIR", own / "inductor"},
      {"TRITON_CACHE_DIR", own / "triton"},
      {"SHARDSCOPE_DRYRUN_FOLDER", own},
      {"SHARDSCOPE_DRYRUN_ROUTING", place.routing},
      {"SHARDSCOPE_DRYRUN_ROUTING_DRAW", std::to_string(place.routing_draw)},
      {"SHARDSCOPE_DRYRUN_EVENTS", std::to_string(kMostEvents)},
      {"PYTHONPATH", before(folder / "hook", "PYTHONPATH")},
      {"PATH", before(folder / kPrograms, "PATH")},
      {"LD_LIBRARY_PATH", before(folder, "LD_LIBRARY_PATH")},
      {"LD_PRELOAD", before((folder / kStandIn).string() + ":" + (folder / kDriver).string(), "LD_PRELOAD")}};
  // Names of C++ functions by PyTorch's own reader: addr2line takes a second or two.
  if (std::getenv("TORCH_SYMBOLIZE_MODE") == nullptr) environment["TORCH_SYMBOLIZE_MODE"] = "fast";
  // Of a program that starts its ranks itself all run, too.
  if (place.ranks.size() == static_cast<std::size_t>(place.world_size))
    environment["SHARDSCOPE_STANDIN_RANKS"] = exchange_folder(folder);
  if (place.first_run) environment["SHARDSCOPE_DRYRUN_FIRST_RUN"] = "1";
  if (place.times) {
    environment["SHARDSCOPE_STANDIN_WORK"] = own;
    // That it has no CUPTI here is no news.
    if (std::getenv("KINETO_LOG_LEVEL") == nullptr) environment["KINETO_LOG_LEVEL"] = "99";
  }
  if (place.world_size > 1) {
    environment["RANK"] = std::to_string(rank);
    environment["WORLD_SIZE"] = std::to_string(place.world_size);
    environment["LOCAL_RANK"] = std::to_string(rank % place.ranks_per_host);
    environment["LOCAL_WORLD_SIZE"] = std::to_string(std::min(place.world_size, place.ranks_per_host));
    environment["GROUP_RANK"] = std::to_string(rank / place.ranks_per_host);
    if (place.assume_zeros) environment["SHARDSCOPE_DRYRUN_ASSUME_ZEROS"] = "1";
    environment["MASTER_ADDR"] = "127.0.0.1";
    environment["MASTER_PORT"] = "29500";
  }
  return environment;
}

}  // namespace shard::dryrun
