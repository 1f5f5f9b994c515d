// main() of every test program: a temporary folder of its own, so that tests running beside each other share no file.
#include <gmock/gmock.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace fs = std::filesystem;

int main(int argc, char** argv) {
  // Short: names of Unix sockets are made in it.
  std::string folder = (fs::temp_directory_path() / "shardscope.XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) {
    std::perror(folder.c_str());
    return 1;
  }
  setenv("TMPDIR", folder.c_str(), 1);
  setenv("TEST_TMPDIR", folder.c_str(), 1);
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
