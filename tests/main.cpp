// main() of every test program: a temporary folder of its own, so that tests running beside each other share no file,
// and one python3 for all.
#include <gmock/gmock.h>
#include <malloc.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace fs = std::filesystem;

namespace {

/// Where TMPDIR says; else in memory where there is much of it and programs may run from it: a flush to a disk, or a
/// file that is written over on one, takes as long as many a test.
fs::path place() {
  constexpr const char* kMemory = "/dev/shm";
  constexpr unsigned long kEnough = 8UL << 30U;
  struct statvfs about {};
  if (std::getenv("TMPDIR") == nullptr && access(kMemory, W_OK | X_OK) == 0 && statvfs(kMemory, &about) == 0 &&
      (about.f_flag & ST_NOEXEC) == 0 && about.f_bavail * about.f_frsize >= kEnough)
    return kMemory;
  return fs::temp_directory_path();
}

}  // namespace

int main(int argc, char** argv) {
  // Short: names of Unix sockets are made in it.
  std::string folder = (place() / "shardscope.XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) {
    std::perror(folder.c_str());
    return 1;
  }
  setenv("TMPDIR", folder.c_str(), 1);
  setenv("TEST_TMPDIR", folder.c_str(), 1);
#ifdef PYTHON_FOLDER
  const char* path = std::getenv("PATH");
  setenv("PATH", (std::string(PYTHON_FOLDER ":") + (path == nullptr ? "/usr/bin:/bin" : path)).c_str(), 1);
#endif
#ifdef __GLIBC__
  // A heap that shrinks behind each case and grows in the next takes more time than the case.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_TOP_PAD, 16 << 20);
#endif
  testing::InitGoogleMock(&argc, argv);
  const int status = RUN_ALL_TESTS();
  if (status == 0) {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  } else {
    std::fprintf(stderr, "What the tests wrote is kept in %s\n", folder.c_str());
  }
  return status;
}
