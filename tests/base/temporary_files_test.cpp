// What is registered is removed; what is finished stays; nothing appears after the end has begun.
#include "traces/base/temporary_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

namespace shard {
namespace {

namespace fs = std::filesystem;

class TemporaryFiles : public ::testing::Test {
 protected:
  TemporaryFiles() { fs::create_directories(folder_); }
  ~TemporaryFiles() override { fs::remove_all(folder_); }
  [[nodiscard]] std::string at(const std::string& name) const { return folder_ / name; }
  [[nodiscard]] std::string folder() const { return folder_; }
  void make(const std::string& name) const {
    const int fd = temporary_files::create(at(name));
    ASSERT_GE(fd, 0);
    close(fd);
  }

 private:
  fs::path folder_ = fs::temp_directory_path() / ("temporary_files_test." + std::to_string(getpid()));
};

TEST_F(TemporaryFiles, AFinishedOneHasItsNameAndAnotherIsRemoved) {
  make("a");
  make("b");
  EXPECT_EQ(temporary_files::finish(at("a"), at("finished")), 0);
  temporary_files::remove(at("b"));
  EXPECT_TRUE(fs::exists(at("finished")));
  EXPECT_FALSE(fs::exists(at("a")));
  EXPECT_FALSE(fs::exists(at("b")));
}

TEST_F(TemporaryFiles, OneWithoutANameGetsItsOwnAtOnceWhereNobodyHasThat) {
  const int fd = open(folder().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0) {  // nothing to name on this file system
    EXPECT_TRUE(errno == EOPNOTSUPP || errno == EISDIR) << errno;
    return;
  }
  // The name in between is in a folder that does not exist: it is not needed.
  EXPECT_EQ(temporary_files::finish_unnamed(fd, at("none/between"), at("new")), 0);
  EXPECT_TRUE(fs::exists(at("new")));
  EXPECT_EQ(temporary_files::finish_unnamed(fd, at("none/between"), at("new")), -1);
  close(fd);
  const int other = open(folder().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  ASSERT_EQ(write(other, "text", 4), 4);
  EXPECT_EQ(temporary_files::finish_unnamed(other, at("between"), at("new")), 0);
  close(other);
  EXPECT_EQ(fs::file_size(at("new")), 4U);
  EXPECT_FALSE(fs::exists(at("between")));
}

TEST_F(TemporaryFiles, AnExistingFileIsNeitherOpenedNorRemoved) {
  std::ofstream(at("mine")) << "text";
  EXPECT_EQ(temporary_files::create(at("mine")), -1);
  EXPECT_EQ(errno, EEXIST);
  temporary_files::remove(at("mine"));
  EXPECT_EQ(fs::file_size(at("mine")), 4U);
}

TEST_F(TemporaryFiles, TheEndTakesAllThatIsRegisteredAndNothingElse) {
  // In a process of its own, since it is the end.
  const pid_t child = fork();
  if (child == 0) {
    make("written");
    make("kept");
    temporary_files::keep(at("kept"));
    std::ofstream(at("of another process")) << "text";
    temporary_files::adopt(at("of another process"));
    temporary_files::adopt(at("never made"));
    temporary_files::remove_all();
    const bool cannot_create = temporary_files::create(at("late")) == -1 && errno == ECANCELED;
    const bool cannot_finish = temporary_files::finish(at("kept"), at("late")) == -1 && errno == ECANCELED;
    _exit(cannot_create && cannot_finish ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(fs::exists(at("kept")));
  for (const char* gone : {"written", "of another process", "never made", "late"})
    EXPECT_FALSE(fs::exists(at(gone))) << gone;
}

}  // namespace
}  // namespace shard
