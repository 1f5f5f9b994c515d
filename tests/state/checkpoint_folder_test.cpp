// Does a folder of checkpoints give the newest whole one, and lose only what is old or dead?
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>

#include "executor/state/checkpoint/directory.h"
#include "executor/state/checkpoint/io.h"
#include "executor/state/checkpoint/names.h"
#include "tests/state/checkpoint_files.h"
#include "tests/state/files.h"
#include "traces/base/stop.h"

namespace shard::checkpoint {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using namespace test;
namespace fs = std::filesystem;

class CheckpointFolder : public testing::Test {
 protected:
  ~CheckpointFolder() override { io::set_hook({}); }
  fs::path saved(std::int64_t step, std::uint32_t seed) const {
    const auto path = save(dir(), step, layout_, seed);
    EXPECT_TRUE(path) << to_string(path.error());
    return *path;
  }
  [[nodiscard]] const fs::path& dir() const { return folder_.path(); }
  [[nodiscard]] std::vector<std::int64_t> steps() const {
    std::vector<std::int64_t> steps;
    const auto all = list(dir());
    for (const Listed& listed : *all) steps.push_back(listed.complete ? listed.step : -listed.step);
    return steps;
  }
  WeightsFolder folder_{"checkpoint_folder"};
  Layout layout_ = lay_out(std::vector<TensorSpec>{{"a", "F32", {50}}}, std::vector<TensorSpec>{{"m", "F32", {50}}});
};

TEST_F(CheckpointFolder, NamesAreReadAsTheyAreWritten) {
  EXPECT_EQ(step_name(10), "step-00000010");
  EXPECT_EQ(step_name(1'234'567'890), "step-1234567890");
  for (const DirectoryKind kind : {DirectoryKind::partial, DirectoryKind::replaced, DirectoryKind::removed}) {
    const auto name = parse_directory_name(hidden_name(1'234'567'890, kind));
    ASSERT_TRUE(name);
    EXPECT_EQ(name->kind, kind);
    EXPECT_EQ(name->step, 1'234'567'890);
  }
  for (const char* other : {"step-10", "step-000000010", "step-0000001x", "step--0000001", ".step-00000001.partial",
                            ".step-00000001.0123456789abcdeg.partial", "", ".", "step-"})
    EXPECT_FALSE(parse_directory_name(other)) << other;
}

TEST_F(CheckpointFolder, TheNewestCompleteOneIsGiven) {
  const fs::path first = saved(9, 1);
  const fs::path second = saved(10, 2);
  EXPECT_THAT(steps(), ElementsAre(9, 10));
  EXPECT_EQ(list(dir())->front().bytes, layout_.bytes + static_cast<std::int64_t>(small_files(1)[0].text.size()));
  EXPECT_EQ(*newest(dir()), second);
  EXPECT_EQ(*newest(first), first);
  fs::remove(second / "model.safetensors");
  EXPECT_THAT(steps(), ElementsAre(9, -10));
  EXPECT_EQ(*newest(dir()), first);
}

TEST_F(CheckpointFolder, WithoutOneItSaysWhatIsThere) {
  EXPECT_EQ(newest(dir() / "none").error().code, Errc::no_input);
  EXPECT_TRUE(list(dir() / "none")->empty());
  EXPECT_THAT(newest(dir()).error().what, HasSubstr("it is empty"));
  const std::string file = folder_.write("other.txt", "x");
  EXPECT_THAT(newest(file).error().what, HasSubstr("is a file"));
  EXPECT_THAT(newest(dir()).error().what, HasSubstr("it has other.txt"));
  fs::remove(saved(4, 1) / kManifestFile);
  EXPECT_THAT(newest(dir()).error().what, HasSubstr("step-00000004"));
}

TEST_F(CheckpointFolder, TheSameStepIsReplaced) {
  saved(3, 1);
  const fs::path again = saved(3, 2);
  EXPECT_TRUE(*read_all(again) == content_of(layout_, 2));
  EXPECT_THAT(hidden_in(dir()), IsEmpty());
}

TEST_F(CheckpointFolder, TheSameStepIsReplacedWhereNamesCannotBeExchanged) {
  saved(3, 1);
  io::set_hook([](const char* call) { return call == std::string("renameat2") ? EINVAL : 0; });
  const fs::path again = saved(3, 2);
  EXPECT_TRUE(*read_all(again) == content_of(layout_, 2));
  EXPECT_THAT(hidden_in(dir()), IsEmpty());
  saved(4, 3);
  EXPECT_THAT(steps(), ElementsAre(3, 4));
}

TEST_F(CheckpointFolder, BetweenTwoRenamesTheOlderOneStandsIn) {
  const fs::path path = saved(3, 1);
  const fs::path hidden = dir() / hidden_name(3, DirectoryKind::replaced);
  fs::rename(path, hidden);
  EXPECT_EQ(*newest(dir()), hidden);
  ASSERT_TRUE(prune(dir(), 1));
  EXPECT_EQ(*newest(dir()), path);
  EXPECT_TRUE(verify(path));
  // Beside a newer one of its step it goes.
  fs::copy(path, hidden);
  EXPECT_THAT(steps(), ElementsAre(3));
  ASSERT_TRUE(prune(dir(), 1));
  EXPECT_THAT(hidden_in(dir()), IsEmpty());
}

TEST_F(CheckpointFolder, PruningKeepsTheNewestAndWhatIsBeingWritten) {
  for (std::int64_t step = 1; step <= 4; ++step) saved(step, 1);
  fs::remove(dir() / "step-00000004" / kManifestFile);
  fs::create_directory(dir() / hidden_name(2, DirectoryKind::partial));
  fs::create_directory(dir() / hidden_name(2, DirectoryKind::removed));
  folder_.write("of_the_owner", "x");
  const auto draft = Draft::create(dir(), 9, layout_, {});
  ASSERT_TRUE(draft);
  ASSERT_TRUE(prune(dir(), 2));
  EXPECT_THAT(steps(), ElementsAre(2, 3, -4));
  EXPECT_THAT(hidden_in(dir()), ElementsAre(draft->path().filename().string()));
  EXPECT_TRUE(fs::exists(dir() / "of_the_owner"));
  ASSERT_TRUE(prune(dir(), 0));
  EXPECT_THAT(steps(), ElementsAre(3, -4));
}

TEST_F(CheckpointFolder, WithoutCommitNothingStays) {
  const fs::path made = dir() / "a" / "run";
  {
    const auto draft = Draft::create(made, 1, layout_, small_files(1));
    ASSERT_TRUE(draft);
    EXPECT_EQ(fs::file_size(draft->path() / "model.safetensors"), static_cast<std::uintmax_t>(layout_.files[0].bytes));
    EXPECT_TRUE(list(made)->empty());
  }
  EXPECT_FALSE(fs::exists(made));
}

TEST_F(CheckpointFolder, StoppedBeforeCommitNothingStays) {
  const fs::path made = dir() / "run";
  const pid_t child = ::fork();
  if (child == 0) {
    const stop::SignalThread thread([](const Error&) {});
    const auto draft = Draft::create(made, 1, layout_, small_files(1));
    if (!draft || !fs::exists(draft->path())) ::_exit(1);
    ::kill(::getpid(), SIGTERM);
    for (;;) ::pause();
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
  EXPECT_FALSE(fs::exists(made));
}

TEST_F(CheckpointFolder, AFileOfThatNameIsNotReplaced) {
  folder_.write("step-00000003", "mine");
  const auto path = save(dir(), 3, layout_, 1);
  ASSERT_FALSE(path);
  EXPECT_EQ(path.error().code, Errc::cannot_create);
  EXPECT_EQ(text_of(dir() / "step-00000003"), "mine");
  EXPECT_THAT(hidden_in(dir()), IsEmpty());
  EXPECT_EQ(Draft::create(dir() / "step-00000003", 1, layout_, {}).error().code, Errc::cannot_create);
}

TEST_F(CheckpointFolder, RoomIsCountedBeforeAnythingIsMade) {
  EXPECT_TRUE(check_room(dir() / "not" / "yet", 1));
  const auto room = check_room(dir() / "not" / "yet", INT64_MAX);
  ASSERT_FALSE(room);
  EXPECT_EQ(room.error().code, Errc::cannot_create);
  EXPECT_THAT(room.error().what, HasSubstr("9,223,372,036,854,775,807 bytes"));
  EXPECT_FALSE(fs::exists(dir() / "not"));
}

TEST_F(CheckpointFolder, WhereRoomCannotBeReservedTheSizeIsSet) {
  io::set_hook([](const char* call) { return call == std::string("fallocate") ? EOPNOTSUPP : 0; });
  EXPECT_TRUE(verify(saved(1, 1)));
}

}  // namespace
}  // namespace shard::checkpoint
