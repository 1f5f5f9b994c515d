// Asks the environment, else Open MPI by MPI_T, for its backing directory, and the file system for its room.
#include "executor/comm/backing_store.h"

#include <mpi.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <vector>

#include "traces/base/numbers.h"

namespace shard {
namespace {

constexpr const char* kDefaultDirectory = "/dev/shm";

/// The value of an MPI control variable of character type, "" when there is none.
std::string control_variable(const char* name) {
  int index = 0;
  int count = 0;
  MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
  if (MPI_T_cvar_get_index(name, &index) != MPI_SUCCESS ||
      MPI_T_cvar_handle_alloc(index, nullptr, &handle, &count) != MPI_SUCCESS)
    return {};
  std::vector<char> text(static_cast<std::size_t>(count) + 1, '\0');
  const bool read = MPI_T_cvar_read(handle, text.data()) == MPI_SUCCESS;
  MPI_T_cvar_handle_free(&handle);
  return read ? std::string(text.data()) : std::string();
}

std::string ask_for_directory() {
  // mpirun hands its --mca options on so. MPI_T loads every part of Open MPI, and some wait for networks: 0.2 s a call.
  if (const char* const named = std::getenv("OMPI_MCA_osc_sm_backing_directory"); named != nullptr && *named != '\0')
    return named;
  int provided = 0;
  if (MPI_T_init_thread(MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS) return kDefaultDirectory;
  std::string directory = control_variable("osc_sm_backing_directory");
  MPI_T_finalize();
  return directory.empty() ? kDefaultDirectory : directory;
}

}  // namespace

std::string window_directory() {
  static const std::string directory = ask_for_directory();
  return directory;
}

Bytes room_in(const std::string& directory) {
  struct statvfs room {};
  if (statvfs(directory.c_str(), &room) != 0) return Bytes{0};
  return Bytes{static_cast<std::int64_t>(room.f_bavail) * static_cast<std::int64_t>(room.f_frsize)};
}

std::string mount_point(const std::string& directory) {
  struct stat inner {};
  struct stat outer {};
  std::string place = directory;
  if (stat(place.c_str(), &inner) != 0) return place;
  while (place.size() > 1) {
    const std::size_t slash = place.find_last_of('/');
    if (slash == std::string::npos) break;
    const std::string parent = slash == 0 ? "/" : place.substr(0, slash);
    if (stat(parent.c_str(), &outer) != 0 || outer.st_dev != inner.st_dev) break;
    place = parent;
  }
  return place;
}

Result<void> check_room(const std::string& directory, Bytes needed, Bytes available) {
  if (needed <= available) return {};
  const std::int64_t missing = (needed.count() - available.count() + (1 << 20) - 1) >> 20;
  return Error{Errc::does_not_fit,
               "the ranks' arenas and MPI need " + std::to_string(needed.count()) + " bytes (" + show_mib(needed, 1) +
                   ") of shared memory, and " + std::to_string(available.count()) + " (" + show_mib(available, 1) +
                   ") are available",
               mount_point(directory),
               "make it " + std::to_string(missing) +
                   " MiB larger (docker run --shm-size, mount -o remount,size=), or name another local directory in "
                   "OMPI_MCA_osc_sm_backing_directory"};
}

}  // namespace shard
