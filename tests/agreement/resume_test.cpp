// Does a run that is saved by one strategy and goes on by another end with the bits of one that was never interrupted?
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <mutex>
#include <thread>

#include "executor/state/checkpoint/directory.h"
#include "executor/state/checkpoint/io.h"
#include "tests/agreement/random_runs.h"
#include "tests/agreement/resumed.h"
#include "tests/daily.h"
#include "traces/base/stop.h"

namespace shard {
namespace {

namespace fs = std::filesystem;

/// A folder of the test's own, gone behind it.
class Folder {
 public:
  explicit Folder(const std::string& name) : path_(fs::path(testing::TempDir()) / name) { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { fs::remove_all(path_); }
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::string content_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Both safetensors files of the checkpoint behind that step.
std::string tensors_of(const fs::path& folder, std::int64_t step) {
  const fs::path path = folder / ("step-0000000" + std::to_string(step));
  return content_of(path / "model.safetensors") + content_of(path / "optimizer.safetensors");
}

constexpr std::int64_t kSteps = 5;

/// Draws until the class has one that does not contradict itself.
plan::Strategy next(RandomClass& drawn, plan::Device device) {
  while (true)
    if (const std::optional<plan::Strategy> s = drawn.draw(device)) return *s;
}

void expect_resumes(unsigned seed, plan::Device device, int others) {
  RandomClass drawn(seed);
  const plan::Strategy first = next(drawn, device);
  train::SessionOptions session = random_session(seed);
  session.steps = kSteps;
  const Folder folder("resume_" + std::to_string(seed) + (device == plan::Device::cpu ? "" : "_gpu"));
  const std::string what = "seed " + std::to_string(seed) + ": " + drawn.model()->name + ' ' + to_string(first);
  const auto whole = run_in_process(drawn.model(), first, session);
  ASSERT_TRUE(whole) << what << ": " << to_string(whole.error());
  const auto saving =
      run_kept(drawn.model(), first, session, {.save = folder.path(), .every = 1, .beside_training = seed % 2 == 1});
  ASSERT_TRUE(saving) << what << ": " << to_string(saving.error());
  EXPECT_EQ(saving->ranks[0].state_sha256, whole->ranks[0].state_sha256) << what << ": saving changes numbers";
  EXPECT_EQ(saving->ranks[0].peak, whole->ranks[0].peak) << what << ": saving needs memory";
  for (int i = 0; i < others; ++i) {
    const plan::Strategy second = i == 0 ? first : next(drawn, device);
    const std::int64_t step = 1 + (seed + static_cast<unsigned>(i)) % (kSteps - 1);
    const std::string then = what + "\n then from step " + std::to_string(step) + ' ' + to_string(second);
    const Folder again("resumed_" + std::to_string(seed) + (device == plan::Device::cpu ? "" : "_gpu"));
    const auto resumed =
        run_kept(drawn.model(), second, session,
                 {.save = again.path(), .every = 1, .resume = folder.path() / ("step-0000000" + std::to_string(step))});
    ASSERT_TRUE(resumed) << then << ": " << to_string(resumed.error());
    EXPECT_EQ(resumed->ranks[0].state_sha256, whole->ranks[0].state_sha256) << then;
    EXPECT_EQ(resumed->ranks[0].losses,
              std::vector<float>(whole->ranks[0].losses.begin() + step, whole->ranks[0].losses.end()))
        << then;
    // The files themselves: counts and the loss scaler, which no digest shows, are there too.
    EXPECT_TRUE(tensors_of(again.path(), kSteps) == tensors_of(folder.path(), kSteps)) << then;
  }
}

class Resumed : public testing::TestWithParam<unsigned> {};

TEST_P(Resumed, HasTheBitsOfTheRunThatWasNeverInterrupted) {
  const unsigned group = daily::pick(GetParam(), RESUMED_GROUPS, 50);
  for (unsigned i = 0; i < 10; ++i) expect_resumes(10 * group + i, plan::Device::cpu, RESUMED_OTHERS);
}

// A signal removes the draft while ranks write to it. What a rank of the process that is being stopped finds then is
// not to reach the others, which would end with that error: they are to see it go.
TEST(Stopped, WhileItSavesTheOthersHearNothingOfTheDraftThatIsGone) {
  RandomClass drawn(1);
  plan::Strategy strategy = next(drawn, plan::Device::cpu);
  while (strategy.world_size != 2) strategy = next(drawn, plan::Device::cpu);
  const auto plans = plan::compile(drawn.model(), strategy);
  ASSERT_TRUE(plans);
  const Folder folder("stopped");
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const stop::SignalThread signals([](const Error&) {});
    std::promise<void> never;
    // Runs behind the draft's own clean-up, and gives the other rank time to hear of it.
    const auto last = stop::at_stop([&] { never.get_future().wait_for(std::chrono::milliseconds(300)); });
    const auto communicators = make_in_process(2);
    const auto save = [&](std::size_t rank) {
      const plan::Plan& plan = plans->of_rank(static_cast<std::int32_t>(rank));
      train::CheckpointKeeper keeper({.tensors = train::checkpoint_tensors(*plan.model, strategy),
                                      .folder = folder.path(),
                                      .every = 1,
                                      .config = "{}"},
                                     plan, *communicators[rank], nullptr);
      if (!keeper.begin(1)) ::_exit(1);
      if (rank == 0) {
        ::kill(::getpid(), SIGTERM);
        while (fs::exists(folder.path())) ::usleep(1000);
      }
      if (!keeper.end()) ::_exit(74);
    };
    std::thread other(save, 1);
    save(0);
    ::_exit(2);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << "ended with " << WEXITSTATUS(status);
}

/// What the file system does in the test, until it ends.
class Disk {
 public:
  explicit Disk(checkpoint::io::Hook hook) { checkpoint::io::set_hook(std::move(hook)); }
  Disk(const Disk&) = delete;
  Disk& operator=(const Disk&) = delete;
  ~Disk() { checkpoint::io::set_hook(nullptr); }
};

/// A run of four steps on two ranks, saved behind the second, beside the others.
Result<InProcessRun> saved_beside(const fs::path& folder, std::function<void(const train::StepResult&)> after_step) {
  RandomClass drawn(1);
  plan::Strategy strategy = next(drawn, plan::Device::cpu);
  while (strategy.world_size != 2) strategy = next(drawn, plan::Device::cpu);
  train::SessionOptions session = random_session(1);
  session.steps = 4;
  session.after_step = std::move(after_step);
  return run_kept(drawn.model(), strategy, session, {.save = folder, .every = 2, .beside_training = true});
}

TEST(Beside, StepsGoOnWhileTheDiskWorks) {
  const Folder folder("beside");
  std::promise<void> third;
  std::shared_future<void> done = third.get_future().share();
  std::atomic<bool> waited_in_vain = false;
  std::once_flag once;
  const Disk disk([&](const char* call) {
    if (call == std::string("fsync") && done.wait_for(std::chrono::seconds(60)) != std::future_status::ready)
      waited_in_vain = true;
    return 0;
  });
  const auto run = saved_beside(folder.path(), [&](const train::StepResult& step) {
    if (step.step != 2) return;
    EXPECT_FALSE(fs::exists(folder.path() / "step-00000002"));
    std::call_once(once, [&] { third.set_value(); });
  });
  ASSERT_TRUE(run) << to_string(run.error());
  EXPECT_FALSE(waited_in_vain);
  for (const char* name : {"step-00000002", "step-00000004"})
    EXPECT_TRUE(fs::exists(folder.path() / name / "manifest.json")) << name;
}

TEST(Beside, AFaultOfTheDiskEndsAllRanksAndLeavesNothing) {
  const Folder folder("beside_fault");
  const Disk disk([&](const char* call) { return call == std::string("fsync") ? EIO : 0; });
  const auto run = saved_beside(folder.path(), nullptr);
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().code, Errc::io) << to_string(run.error());
  EXPECT_FALSE(fs::exists(folder.path()));
}

INSTANTIATE_TEST_SUITE_P(Seeds, Resumed, testing::Range(0U, RESUMED_GROUPS));

class ResumedOnDevice : public testing::TestWithParam<unsigned> {};

TEST_P(ResumedOnDevice, HasTheBitsOfTheRunThatWasNeverInterrupted) {
  expect_resumes(daily::pick(GetParam(), RESUMED_ON_DEVICE, 60), plan::Device::cuda, 2);
}

INSTANTIATE_TEST_SUITE_P(Seeds, ResumedOnDevice, testing::Range(0U, RESUMED_ON_DEVICE));

}  // namespace
}  // namespace shard
