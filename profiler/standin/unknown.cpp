// Functions that the stand-in does not know: success, and every name once, appended to the file that
// SHARDSCOPE_STANDIN_UNKNOWN names. Those of NVML say that they are not supported, as of many cards;
// those of cuFile, too, as where nothing leads from files to a card.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <string>

#include "profiler/standin/handles.h"

/// What the library that is made for the program calls for each of its functions.
STANDIN long shardscope_standin_unknown(const char* name) {
  constexpr int kNvmlNotSupported = 3, kFilesNotSupported = 5007;  // CU_FILE_PLATFORM_NOT_SUPPORTED
  if (const bool is_of_files = std::strncmp(name, "cuFile", 6) == 0; is_of_files)
    return std::strcmp(name, "cuFileRead") == 0 || std::strcmp(name, "cuFileWrite") == 0 ? -1 : kFilesNotSupported;
  if (std::strncmp(name, "nvml", 4) == 0) return kNvmlNotSupported;
  static std::mutex mutex;
  static auto* const seen = new std::set<std::string>;
  const std::lock_guard lock(mutex);
  if (!seen->insert(name).second) return shard::standin::kSuccess;
  const char* const path = std::getenv("SHARDSCOPE_STANDIN_UNKNOWN");
  const int file = path == nullptr ? -1 : ::open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return shard::standin::kSuccess;
  const std::string line = std::string(name) + "\n";
  [[maybe_unused]] const ssize_t written = ::write(file, line.data(), line.size());
  ::close(file);
  return shard::standin::kSuccess;
}
