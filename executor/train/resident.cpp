// Proportional set size from /proc.
#include "executor/train/resident.h"

#include <malloc.h>

#include <fstream>
#include <sstream>
#include <string>

namespace shard::train {
namespace {

/// The head of a mapping: "7f0a-7f0b rw-s 00000000 00:2e 17  /dev/shm/name".
struct Mapping {
  bool shared = false;
  bool of_file = false;
};

/// False where `line` is a field of the mapping above it: "Pss:    4 kB".
bool read_head(const std::string& line, Mapping& mapping) {
  std::istringstream words(line);
  std::string range;
  std::string access;
  std::string offset;
  std::string device;
  std::int64_t inode = 0;
  if (!(words >> range >> access >> offset >> device >> inode) || range.ends_with(':')) return false;
  mapping = {.shared = access.ends_with('s'), .of_file = inode != 0};
  return true;
}

}  // namespace

Bytes proportional_set_size() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
  std::ifstream file("/proc/self/smaps");
  std::string line;
  Mapping mapping;
  std::int64_t kib = 0;
  while (std::getline(file, line)) {
    if (read_head(line, mapping)) continue;
    const bool library = mapping.of_file && !mapping.shared;
    std::istringstream words(line);
    std::string field;
    std::int64_t value = 0;
    if (words >> field >> value && field == (library ? "Anonymous:" : "Pss:")) kib += value;
  }
  return Bytes{kib * 1024};
}

}  // namespace shard::train
