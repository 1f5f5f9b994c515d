// When any call of a save or a load fails, is cut short or is the process's last, is an older checkpoint whole, and
// does the next save work?
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>

#include "executor/state/checkpoint/directory.h"
#include "executor/state/checkpoint/io.h"
#include "tests/state/checkpoint_files.h"
#include "tests/state/files.h"

namespace shard::checkpoint {
namespace {

using namespace test;
namespace fs = std::filesystem;

constexpr int kKill = -100;

/// Does a thing to the k-th call; counts them.
struct Fault {
  int k = 0;
  int what = 0;
  bool from_then_on = false;
  bool no_exchange = false;
  int* calls = nullptr;
  int operator()(const char* call) const {
    if (no_exchange && std::strcmp(call, "renameat2") == 0) return EINVAL;
    const int now = (*calls)++;
    if (now != k && !(from_then_on && now > k)) return 0;
    if (what == kKill) ::raise(SIGKILL);
    return what;
  }
};

class CheckpointFaults : public testing::Test {
 protected:
  ~CheckpointFaults() override { io::set_hook({}); }
  void TearDown() override { trials_.record(); }
  [[nodiscard]] const fs::path& dir() const { return folder_.path(); }
  void fresh() {
    io::set_hook({});
    fs::remove_all(dir());
    fs::create_directory(dir());
    ASSERT_TRUE(save(dir(), 1, layout_, 1));
  }
  /// Of a save of `step` with content 2, in which something happened: the old one or the new one, whole.
  void expect_whole(std::int64_t step, const std::string& what) {
    io::set_hook({});
    trials_.one_more();
    const auto found = newest(dir());
    ASSERT_TRUE(found) << what << ": " << to_string(found.error());
    EXPECT_TRUE(verify(*found)) << what;
    const auto read = read_all(*found);
    ASSERT_TRUE(read) << what << ": " << to_string(read.error());
    const bool old_one = *read == content_of(layout_, 1), new_one = *read == content_of(layout_, 2);
    EXPECT_TRUE(old_one || new_one) << what;
    if (step != 1) {
      const auto first = list(dir())->front();
      EXPECT_TRUE(first.complete && first.step == 1) << what;
    }
    // The next one works, and nothing stays but two.
    const auto next = save(dir(), step, layout_, 3);
    ASSERT_TRUE(next) << what << ": " << to_string(next.error());
    EXPECT_TRUE(*read_all(*newest(dir())) == content_of(layout_, 3)) << what;
    ASSERT_TRUE(prune(dir(), 2)) << what;
    EXPECT_TRUE(hidden_in(dir()).empty()) << what;
  }
  /// Calls of a save without a fault.
  int calls_of_a_save(std::int64_t step, bool no_exchange) {
    fresh();
    int calls = 0;
    io::set_hook(Fault{-1, 0, false, no_exchange, &calls});
    EXPECT_TRUE(save(dir(), step, layout_, 2));
    io::set_hook({});
    return calls;
  }
  void fail_each(std::int64_t step, bool no_exchange, int what, bool from_then_on) {
    const int count = calls_of_a_save(step, no_exchange);
    ASSERT_GT(count, 30);
    int failed = 0;
    for (int k = 0; k < count; ++k) {
      fresh();
      int calls = 0;
      io::set_hook(Fault{k, what, from_then_on, no_exchange, &calls});
      const auto done = save(dir(), step, layout_, 2);
      io::set_hook({});
      failed += done ? 0 : 1;
      if (done) {
        EXPECT_TRUE(*read_all(*done) == content_of(layout_, 2)) << k;
      } else {
        EXPECT_FALSE(done.error().where.empty()) << done.error().what;
        EXPECT_TRUE(done.error().code == Errc::io || done.error().code == Errc::cannot_create)
            << to_string(done.error());
      }
      expect_whole(step, "call " + std::to_string(k) + " of " + std::to_string(count));
    }
    EXPECT_TRUE(what == io::kShort ? failed == 0 : failed > count / 2) << failed << " of " << count;
  }
  void kill_at_each(std::int64_t step, bool no_exchange) {
    const int count = calls_of_a_save(step, no_exchange);
    for (int k = 0; k < count; ++k) {
      fresh();
      const pid_t child = ::fork();
      if (child == 0) {
        int calls = 0;
        io::set_hook(Fault{k, kKill, false, no_exchange, &calls});
        static_cast<void>(save(dir(), step, layout_, 2));
        ::_exit(0);
      }
      int status = 0;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << k;
      expect_whole(step, "killed at call " + std::to_string(k) + " of " + std::to_string(count));
    }
  }
  Trials trials_;
  WeightsFolder folder_{"checkpoint_faults", memory_directory()};
  Layout layout_ = lay_out(std::vector<TensorSpec>{{"a", "F32", {50}}, {"b", "F32", {50}}},
                           std::vector<TensorSpec>{{"m", "F32", {50}}}, 200);
};

TEST_F(CheckpointFaults, AnErrorAtAnyCallLeavesTheOlderOne) {
  fail_each(2, false, EIO, false);
}
TEST_F(CheckpointFaults, AnErrorAtAnyCallOfTheSameStepLeavesOneOfThem) {
  fail_each(1, false, EIO, false);
}
TEST_F(CheckpointFaults, AnErrorAtAnyCallOfTwoRenamesLeavesOneOfThem) {
  fail_each(1, true, EIO, false);
}
TEST_F(CheckpointFaults, AFullDiskLeavesTheOlderOne) {
  fail_each(2, false, ENOSPC, false);
}
TEST_F(CheckpointFaults, AnErrorOfEveryCallFromOneOnLeavesOneOfThem) {
  fail_each(2, false, EIO, true);
  fail_each(1, false, EIO, true);
  fail_each(1, true, EIO, true);
}
TEST_F(CheckpointFaults, WhatIsCutShortGoesOn) {
  fail_each(2, false, io::kShort, true);
}
TEST_F(CheckpointFaults, KilledAtAnyCallTheOlderOneIsThere) {
  kill_at_each(2, false);
}
TEST_F(CheckpointFaults, KilledAtAnyCallOfTheSameStepOneOfThemIsThere) {
  kill_at_each(1, false);
}
TEST_F(CheckpointFaults, KilledAtAnyCallOfTwoRenamesOneOfThemIsThere) {
  kill_at_each(1, true);
}

TEST_F(CheckpointFaults, AnErrorAtAnyCallOfALoadIsOne) {
  fresh();
  const fs::path path = *newest(dir());
  int count = 0;
  io::set_hook(Fault{-1, 0, false, false, &count});
  ASSERT_TRUE(read_all(path));
  for (int k = 0; k < count; ++k) {
    int calls = 0;
    for (const int what : {EIO, ENOSPC}) {
      calls = 0;
      io::set_hook(Fault{k, what, false, false, &calls});
      trials_.one_more();
      const auto read = read_all(path);
      ASSERT_FALSE(read) << k;
      EXPECT_TRUE(read.error().code == Errc::io || read.error().code == Errc::no_input) << to_string(read.error());
    }
    calls = 0;
    trials_.one_more();
    io::set_hook(Fault{k, io::kShort, true, false, &calls});
    EXPECT_TRUE(!read_all(path) || *read_all(path) == content_of(layout_, 1)) << k;
  }
}

TEST_F(CheckpointFaults, KilledAtAnyCallOfALoadNothingOfTheCheckpointChanges) {
  fresh();
  const fs::path path = *newest(dir());
  const auto texts = texts_in(path);
  int count = 0;
  io::set_hook(Fault{-1, 0, false, false, &count});
  ASSERT_TRUE(read_all(path));
  io::set_hook({});
  for (int k = 0; k < count; ++k) {
    const pid_t child = ::fork();
    if (child == 0) {
      int calls = 0;
      io::set_hook(Fault{k, kKill, false, false, &calls});
      static_cast<void>(read_all(path));
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << k;
    EXPECT_EQ(texts_in(path), texts) << k;
    EXPECT_TRUE(hidden_in(dir()).empty()) << k;
    expect_whole(2, "killed at call " + std::to_string(k) + " of a load");
    fresh();
  }
}

TEST_F(CheckpointFaults, KilledOrFailedWhilePruningTheNewestStays) {
  for (const int what : {EIO, kKill}) {
    for (int k = 0;; ++k) {
      fresh();
      ASSERT_TRUE(save(dir(), 2, layout_, 2));
      ASSERT_TRUE(save(dir(), 3, layout_, 3));
      const pid_t child = ::fork();
      if (child == 0) {
        int calls = 0;
        io::set_hook(Fault{k, what, false, false, &calls});
        static_cast<void>(prune(dir(), 1));
        ::_exit(calls <= k ? 7 : 0);
      }
      int status = 0;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      trials_.one_more();
      ASSERT_TRUE(prune(dir(), 1)) << k;
      EXPECT_TRUE(hidden_in(dir()).empty()) << k;
      const auto listed = list(dir());
      ASSERT_EQ(listed->size(), 1u) << k;
      EXPECT_TRUE(listed->front().complete && listed->front().step == 3) << k;
      if (WIFEXITED(status) && WEXITSTATUS(status) == 7) break;
    }
  }
}

}  // namespace
}  // namespace shard::checkpoint
