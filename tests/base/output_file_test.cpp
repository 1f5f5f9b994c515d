// A file is there whole or not at all, and what is no regular file is written to and stays what it is.
#include "traces/base/output_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "traces/base/file_place.h"
#include "traces/base/input_file.h"
#include "traces/base/read_file.h"

namespace shard {
namespace {

namespace fs = std::filesystem;

class Files : public ::testing::Test {
 protected:
  Files() { fs::create_directories(folder_); }
  ~Files() override { fs::remove_all(folder_); }
  [[nodiscard]] fs::path at(const std::string& name) const { return folder_ / name; }
  static std::string text_of(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void put(const fs::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }
  /// Has the file system O_TMPFILE?
  [[nodiscard]] bool has_unnamed() const {
    const int fd = open(folder_.c_str(), O_TMPFILE | O_RDWR, 0600);
    if (fd >= 0) close(fd);
    return fd >= 0;
  }
  /// Names in the folder, hidden ones too.
  [[nodiscard]] std::size_t count() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }

 private:
  fs::path folder_ = fs::temp_directory_path() / ("output_file_test." + std::to_string(getpid()));
};

using WholeFile = Files;
using GrowingFile = Files;
using SpecialFile = Files;
using SameFile = Files;
using BoundedRead = Files;

TEST_F(WholeFile, AppearsWhenFinishedAndWhatWasThereStaysUntilThen) {
  put(at("a"), "old");
  Result<OutputFile> out = OutputFile::create(at("a"));
  ASSERT_TRUE(out);
  out->write("new");
  ASSERT_TRUE(out->flush());
  EXPECT_EQ(text_of(at("a")), "old");
  ASSERT_TRUE(out->finish());
  EXPECT_EQ(text_of(at("a")), "new");
  EXPECT_EQ(count(), 1U);
}

TEST_F(WholeFile, GivenUpLeavesNothing) {
  put(at("a"), "old");
  for (const char* name : {"a", "b"}) {
    Result<OutputFile> out = OutputFile::create(at(name));
    ASSERT_TRUE(out);
    out->write(std::string(1 << 20, 'x'));
  }
  EXPECT_EQ(text_of(at("a")), "old");
  EXPECT_EQ(count(), 1U);
}

TEST_F(WholeFile, OfTwoWritersAtOnceTheLastToFinishWinsWhole) {
  const std::string first(1 << 20, '1');
  const std::string second(1 << 20, '2');
  for (int round = 0; round < 20; ++round) {
    std::thread other([&] { EXPECT_TRUE(write_file(at("a"), first)); });
    EXPECT_TRUE(write_file(at("a"), second));
    other.join();
    const std::string text = text_of(at("a"));
    EXPECT_TRUE(text == first || text == second);
  }
  EXPECT_EQ(count(), 1U);
}

TEST_F(WholeFile, ALinkIsFollowedAndStays) {
  fs::create_directory(at("elsewhere"));
  fs::create_symlink("elsewhere/target", at("link"));  // leads to nothing yet
  ASSERT_TRUE(write_file(at("link"), "text"));
  EXPECT_TRUE(fs::is_symlink(at("link")));
  EXPECT_EQ(text_of(at("elsewhere/target")), "text");
  ASSERT_TRUE(write_file(at("link"), "more"));
  EXPECT_TRUE(fs::is_symlink(at("link")));
  EXPECT_EQ(text_of(at("elsewhere/target")), "more");
}

TEST_F(WholeFile, PermissionsOfTheReplacedFileAreKept) {
  put(at("a"), "old");
  fs::permissions(at("a"), fs::perms::owner_read | fs::perms::owner_write);
  ASSERT_TRUE(write_file(at("a"), "new"));
  EXPECT_EQ(fs::status(at("a")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(WholeFile, WithoutRoomLeavesNothingAndSaysSo) {
  put(at("a"), "old");
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{20'000, 20'000};
    setrlimit(RLIMIT_FSIZE, &limit);
    const Result<void> whole = write_file(at("a"), std::string(100'000, 'x'));
    const Result<void> other = write_file(at("b"), std::string(100'000, 'x'));
    const bool both = !whole && !other && whole.error().code == Errc::io && other.error().code == Errc::io;
    _exit(both ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(text_of(at("a")), "old");
  EXPECT_EQ(count(), 1U);
}

TEST_F(WholeFile, WhatCannotBeSaysWhyBeforeAnythingIsTouched) {
  for (const auto& [path, word] : {std::pair{at("no/where"), "there is no directory"},
                                   {at("."), "is a directory"},
                                   {fs::path("/proc/version/x"), "there is no directory"}}) {
    const Result<OutputFile> out = OutputFile::create(path);
    ASSERT_FALSE(out) << path;
    EXPECT_EQ(out.error().code, Errc::cannot_create);
    EXPECT_NE(out.error().what.find(word), std::string::npos) << out.error().what;
  }
  fs::create_symlink("circle", at("circle"));
  EXPECT_FALSE(OutputFile::create(at("circle")));
}

TEST_F(WholeFile, OfAKilledProcessNothingStays) {
  put(at("a"), "old");
  const pid_t child = fork();
  if (child == 0) {
    Result<OutputFile> replaced = OutputFile::create(at("a"));
    Result<OutputFile> created = OutputFile::create(at("b"));
    for (Result<OutputFile>* out : {&replaced, &created}) {
      (*out)->write(std::string(1 << 20, 'x'));
      if (!(*out)->sync()) _exit(1);
    }
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  EXPECT_EQ(text_of(at("a")), "old");
  // Where the file system has no files without names, the partial ones stay beside.
  EXPECT_EQ(count(), has_unnamed() ? 1U : 3U);
}

TEST_F(WholeFile, IsReadBeforeItHasItsName) {
  Result<OutputFile> out = OutputFile::create(at("a"));
  ASSERT_TRUE(out);
  out->write("text");
  ASSERT_TRUE(out->sync());
  EXPECT_EQ(text_of(out->readable_at()), "text");
  EXPECT_FALSE(fs::exists(at("a")));
  ASSERT_TRUE(out->finish());
  EXPECT_EQ(text_of(at("a")), "text");
  EXPECT_EQ(count(), 1U);
}

TEST_F(WholeFile, TakesWhatIsInAnother) {
  const std::string text(3'000'001, 'x');
  put(at("a"), text);
  ASSERT_TRUE(copy_to_file(at("a"), at("b")));
  EXPECT_TRUE(text_of(at("b")) == text);
  const Result<void> absent = copy_to_file(at("none"), at("b"));
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, Errc::no_input);
  const Result<void> folder = copy_to_file(at("."), at("b"));
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().code, Errc::io);
  EXPECT_TRUE(text_of(at("b")) == text);
  EXPECT_EQ(count(), 2U);
}

TEST_F(GrowingFile, LeavesTheOlderOneUntilSomethingIsFlushed) {
  put(at("a"), "old");
  { ASSERT_TRUE(OutputFile::create(at("a"), Appears::growing)); }
  EXPECT_EQ(text_of(at("a")), "old");
  Result<OutputFile> out = OutputFile::create(at("a"), Appears::growing);
  ASSERT_TRUE(out);
  ASSERT_TRUE(out->flush());
  out->write("not yet\n");
  EXPECT_EQ(text_of(at("a")), "old");
  ASSERT_TRUE(out->flush());
  EXPECT_EQ(text_of(at("a")), "not yet\n");
  out->write("more\n");
  ASSERT_TRUE(out->finish());
  EXPECT_EQ(text_of(at("a")), "not yet\nmore\n");
  EXPECT_EQ(count(), 1U);
}

TEST_F(GrowingFile, FinishedWithNothingInItReplacesTheOlderOne) {
  put(at("a"), "old");
  Result<OutputFile> out = OutputFile::create(at("a"), Appears::growing);
  ASSERT_TRUE(out);
  ASSERT_TRUE(out->finish());
  EXPECT_EQ(text_of(at("a")), "");
  EXPECT_EQ(count(), 1U);
}

TEST_F(GrowingFile, OfAKilledProcessWhatWasFlushedStays) {
  put(at("a"), "old");
  for (const bool flushed : {false, true}) {
    const pid_t child = fork();
    if (child == 0) {
      Result<OutputFile> out = OutputFile::create(at("a"), Appears::growing);
      out->write("new");
      if (flushed && !out->flush()) _exit(1);
      kill(getpid(), SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status)) << status;
    EXPECT_EQ(text_of(at("a")), flushed ? "new" : "old");
  }
  EXPECT_EQ(count(), has_unnamed() ? 1U : 2U);
}

TEST_F(GrowingFile, EndsWithTheLastFlush) {
  put(at("a"), "old");
  std::ifstream reader(at("a"));
  {
    Result<OutputFile> out = OutputFile::create(at("a"), Appears::growing);
    ASSERT_TRUE(out);
    out->write("one line\n");
    ASSERT_TRUE(out->flush());
    EXPECT_EQ(text_of(at("a")), "one line\n");
    out->write(std::string(1 << 20, 'x'));  // more than is buffered
  }
  EXPECT_EQ(text_of(at("a")), "one line\n");
  std::string still;
  EXPECT_TRUE(std::getline(reader, still));
  EXPECT_EQ(still, "old");
}

TEST_F(GrowingFile, WithNothingInItIsRemoved) {
  { ASSERT_TRUE(OutputFile::create(at("a"), Appears::growing)); }
  EXPECT_EQ(count(), 0U);
}

TEST_F(GrowingFile, DoesNotRemoveWhatAnotherPutInItsPlace) {
  {
    Result<OutputFile> out = OutputFile::create(at("a"), Appears::growing);
    ASSERT_TRUE(out);
    ASSERT_TRUE(write_file(at("a"), "another's"));
  }
  EXPECT_EQ(text_of(at("a")), "another's");
}

TEST_F(SpecialFile, APipeIsWrittenToAndStays) {
  ASSERT_EQ(mkfifo(at("pipe").c_str(), 0600), 0);
  for (const Appears appears : {Appears::whole, Appears::growing}) {
    std::string read;
    std::thread reader([&] { read = text_of(at("pipe")); });
    Result<OutputFile> out = OutputFile::create(at("pipe"), appears);
    ASSERT_TRUE(out);
    out->write("text");
    EXPECT_TRUE(out->finish());
    reader.join();
    EXPECT_EQ(read, "text");
    EXPECT_TRUE(fs::is_fifo(at("pipe")));
  }
  EXPECT_EQ(count(), 1U);
}

TEST_F(SpecialFile, AFullDeviceIsAnError) {
  fs::create_symlink("/dev/full", at("full"));
  for (const fs::path& path : {fs::path("/dev/full"), at("full")}) {
    const Result<void> written = write_file(path, "text");
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code, Errc::io);
    EXPECT_TRUE(fs::is_character_file(path));
  }
}

TEST_F(SpecialFile, AnOpenDescriptorIsWrittenOnFromWhereItStands) {
  const int fd = open(at("a").c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_EQ(write(fd, "before ", 7), 7);
  EXPECT_TRUE(write_file("/proc/self/fd/" + std::to_string(fd), "text"));
  ASSERT_EQ(write(fd, " after", 6), 6);
  close(fd);
  EXPECT_EQ(text_of(at("a")), "before text after");
}

TEST_F(SameFile, ThroughLinksOfBothKindsAndOtherNames) {
  put(at("a"), "text");
  fs::create_hard_link(at("a"), at("hard"));
  fs::create_symlink("a", at("soft"));
  fs::create_directory(at("folder"));
  for (const char* name : {"a", "hard", "soft", "folder/../a"}) EXPECT_TRUE(same_file(at("a"), at(name))) << name;
  put(at("b"), "text");
  EXPECT_FALSE(same_file(at("a"), at("b")));
  EXPECT_FALSE(same_file(at("a"), at("new")));
}

TEST_F(SameFile, WhereNothingIsYet) {
  fs::create_directory(at("folder"));
  fs::create_symlink("new", at("link"));
  for (const char* name : {"new", "link", "folder/../new"}) EXPECT_TRUE(same_file(at("new"), at(name))) << name;
  EXPECT_FALSE(same_file(at("new"), at("other")));
  EXPECT_FALSE(same_file(at("new"), at("folder/new")));
  // A folder that is still to be made.
  fs::create_directory_symlink("folder", at("alias"));
  EXPECT_TRUE(same_file(at("none/new"), at("./folder/../none/new")));
  EXPECT_TRUE(same_file(at("folder/none/new"), at("alias/none/new")));
  EXPECT_FALSE(same_file(at("none/new"), at("other/new")));
}

TEST_F(SameFile, DevicesOfCharactersHoldNothing) {
  EXPECT_FALSE(same_file("/dev/null", "/dev/null"));
}

TEST_F(BoundedRead, StopsWhereTheInputIsSomethingElse) {
  put(at("a"), "12345");
  const Result<std::string> whole = read_file(at("a"), "text", Bytes{5});
  ASSERT_TRUE(whole);
  EXPECT_EQ(*whole, "12345");
  for (const fs::path& path : {at("a"), fs::path("/dev/zero")}) {
    const Result<std::string> large = read_file(path, "list", Bytes{4}, "a list");
    ASSERT_FALSE(large);
    EXPECT_EQ(large.error().code, Errc::malformed);
    EXPECT_EQ(large.error().what, "is larger than 4 bytes, so it is no list");
    EXPECT_EQ(large.error().help, "a list");
  }
  for (const fs::path& path : {at("nosuch"), at(".")}) {
    const Result<std::string> none = read_file(path, "list", Bytes{4});
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code, Errc::no_input);
  }
}

TEST_F(BoundedRead, APipeIsReadToItsEnd) {
  ASSERT_EQ(mkfifo(at("pipe").c_str(), 0600), 0);
  std::thread writer([&] { put(at("pipe"), std::string(200'000, 'x')); });
  const Result<std::string> text = read_file(at("pipe"), "text", Bytes{1 << 20});
  writer.join();
  ASSERT_TRUE(text);
  EXPECT_EQ(*text, std::string(200'000, 'x'));
}

TEST_F(BoundedRead, APipeThatNobodyWritesToIsNotWaitedForForever) {
  ASSERT_EQ(mkfifo(at("pipe").c_str(), 0600), 0);
  const Result<std::string> text = read_file(at("pipe"), "text", Bytes{1 << 20});
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, Errc::no_input);
  EXPECT_EQ(text.error().what, "cannot read the text: it is a pipe that nobody writes to");
  EXPECT_EQ(text.error().where, at("pipe"));
}

TEST_F(BoundedRead, APipeWithoutANameIsReadToItsEnd) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::thread writer([&] {
    EXPECT_EQ(write(ends[1], "one", 3), 3);
    EXPECT_EQ(write(ends[1], "two", 3), 3);
    close(ends[1]);
  });
  const Result<std::string> text = read_file("/dev/fd/" + std::to_string(ends[0]), "text", Bytes{1 << 20});
  writer.join();
  ASSERT_TRUE(text) << to_string(text.error());
  EXPECT_EQ(*text, "onetwo");
  close(ends[0]);
}

TEST_F(BoundedRead, WhatCannotBeReadIsNotAbsent) {
  fs::create_symlink("loop", at("loop"));
  fs::create_symlink("nosuch", at("dangling"));
  put(at("file"), "a");
  struct Case {
    fs::path path;
    bool absent;
    std::string why;
  };
  for (const Case& c :
       {Case{at("nosuch"), true, "No such file or directory"}, Case{at("dangling"), true, "No such file or directory"},
        Case{fs::path(at("file")) / "below", true, "Not a directory"},
        Case{at("loop"), false, "Too many levels of symbolic links"}, Case{at("."), false, "it is a directory"},
        Case{at(std::string(300, 'n')), false, "File name too long"}}) {
    EXPECT_EQ(is_absent(c.path), c.absent) << c.path;
    const Result<std::string> text = read_file(c.path, "text", Bytes{4});
    ASSERT_FALSE(text) << c.path;
    EXPECT_EQ(text.error().code, Errc::no_input);
    EXPECT_EQ(text.error().what, "cannot read the text: " + c.why);
  }
}

}  // namespace
}  // namespace shard
