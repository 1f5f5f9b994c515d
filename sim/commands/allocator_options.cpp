// The environment variable's text, and the share of the device that a process may take.
#include "sim/commands/allocator_options.h"

#include <cmath>
#include <utility>

#include "sim/like/pytorch/allocator_conf.h"

namespace shard::commands {

void add_allocator_options(cli::Group& group, AllocatorFlags& flags, bool has_device) {
  group
      .add("allocator-conf", &flags.conf, "SETTINGS",
           "as PYTORCH_CUDA_ALLOC_CONF has them: expandable_segments:True,\n"
           "max_split_size_mb:128, roundup_power2_divisions:4, ...")
      .once();
  if (!has_device) return;
  constexpr double kLeast = 1e-6;
  group
      .add("memory-fraction", &flags.fraction, "SHARE",
           "torch.cuda.set_per_process_memory_fraction: of the device's memory,\n"
           "what the program may reserve")
      .least(kLeast)
      .most(1);
}

Result<CachingAllocatorOptions> allocator_of(const AllocatorFlags& flags, std::optional<Bytes> capacity,
                                             std::vector<std::string>& notes) {
  Result<AllocatorConf> conf = read_allocator_conf(flags.conf);
  if (!conf) return conf.error();
  CachingAllocatorOptions options = conf->options;
  if (flags.fraction) {
    if (!capacity)
      return Error{Errc::contradiction, "--memory-fraction is of a device's memory, which is not known here",
                   "--memory-fraction", "--cluster with a GPU, or --device-capacity"};
    options.allowed =
        Bytes{static_cast<std::int64_t>(std::floor(*flags.fraction * static_cast<double>(capacity->count())))};
  }
  for (const std::string& why : conf->without_effect) notes.push_back("--allocator-conf: " + why);
  if (!options.allowed && !conf->without_limit.empty()) notes.push_back("--allocator-conf: " + conf->without_limit);
  // 9/8 of the device, as PyTorch reserves.
  if (capacity) options.expandable_space = *capacity + Bytes{capacity->count() / 8};
  return options;
}

}  // namespace shard::commands
