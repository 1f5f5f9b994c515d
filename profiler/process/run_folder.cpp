// The first of a few places that will do.
#include "profiler/process/run_folder.h"

#include <sys/statvfs.h>

#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

namespace shard::profiler {
namespace {

bool may_execute(const std::string& path) {
  struct statvfs file_system {};
  return ::statvfs(path.c_str(), &file_system) != 0 || (file_system.f_flag & ST_NOEXEC) == 0;
}

}  // namespace

bool can_stand_in_lists(const std::string& path) {
  return path.find_first_of(" \t\r\n\v\f:;$") == std::string::npos;
}

Result<Scratch> run_folder() {
  std::error_code fault;
  const std::filesystem::path asked = std::filesystem::temp_directory_path(fault);
  const std::string first = fault ? "/tmp" : std::filesystem::absolute(asked).string();
  std::string unfit;
  for (const std::string& place : std::vector<std::string>{first, "/tmp", "/var/tmp", "/dev/shm"}) {
    if (!can_stand_in_lists(place) || !may_execute(place)) {
      if (unfit.empty()) unfit = place;
      continue;
    }
    if (std::optional<Scratch> made = Scratch::make(place)) return std::move(*made);
  }
  if (unfit.empty()) return Scratch::make_temporary("the run's files");
  return Error{Errc::unavailable, "no library can be loaded into a program from the folder for temporary files", unfit,
               "set TMPDIR to a folder that is not mounted noexec and has no blank, ':', ';' or '$' in its path"};
}

}  // namespace shard::profiler
