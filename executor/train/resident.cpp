// Proportional set size from /proc.
#include "executor/train/resident.h"

#include <fstream>
#include <string>

namespace shard::train {

Bytes proportional_set_size() {
  std::ifstream file("/proc/self/smaps_rollup");
  std::string word;
  while (file >> word)
    if (word == "Pss:") {
      std::int64_t kib = 0;
      file >> kib;
      return Bytes{kib * 1024};
    }
  return Bytes{0};
}

}  // namespace shard::train
