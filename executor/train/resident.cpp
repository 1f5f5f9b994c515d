// Proportional set size from /proc.
#include "executor/train/resident.h"

#include <fstream>
#include <string>

namespace shard::train {

Bytes proportional_set_size() {
  std::ifstream file("/proc/self/smaps_rollup");
  std::string word;
  std::int64_t kib = 0;
  while (file >> word) {
    const bool all = word == "Pss:";
    if (!all && word != "Pss_File:") continue;
    std::int64_t value = 0;
    file >> value;
    kib += all ? value : -value;
  }
  return Bytes{kib * 1024};
}

}  // namespace shard::train
