// Does a flight recorder outlive its process, tell torn records from whole ones, and say who is at fault?
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <random>

#include "executor/flight/recorder.h"
#include "executor/flight/verdict.h"

namespace shard::flight {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

plan::Op op_of(std::int32_t id, const char* name, Part part, std::int32_t block = -1) {
  return {.id = OpId{id}, .name = name, .part = part, .block = block};
}

const plan::Op kForward = op_of(1, "transformer.h.5.mlp", Part::forward, 5);
const plan::Op kBackward = op_of(2, "transformer.h.3.mlp", Part::backward, 3);
const plan::Op kGather = op_of(3, "gather chunk 12", Part::gather);
const plan::Communicate kCall{.kind = Collective::all_gather, .unit = UnitId{0}};

plan::Plan plan_of_three() {
  plan::Plan plan;
  plan.units.push_back({.name = "chunk 12"});
  plan.phases.push_back({.phase = Phase::steady_step, .ops = {kForward, kBackward, kGather}});
  return plan;
}

std::unique_ptr<Recorder> recorder_of(std::int32_t rank) {
  auto made = Recorder::in_memory({.rank = Rank{rank}, .world = 4, .plan_hash = "abc"}, plan_of_three());
  EXPECT_TRUE(made.has_value());
  (*made)->begin(Phase::steady_step, 16, 0);
  return std::move(*made);
}

Recording read_of(const std::vector<std::byte>& bytes) {
  const auto read = read_recordings(bytes);
  EXPECT_TRUE(read.has_value());
  return read ? read->front() : Recording{};
}

TEST(Flight, TheRingKeepsTheNewest) {
  const auto recorder = recorder_of(0);
  for (int i = 0; i < 10'000; ++i) recorder->begun(kForward, i);
  const Recording read = read_of(recorder->snapshot());
  ASSERT_EQ(read.entries.size(), kRingRecords);
  EXPECT_EQ(read.entries.back().number, 10'001u);
  EXPECT_EQ(read.entries.front().number, 10'001u - kRingRecords + 1);
  EXPECT_EQ(read.entries.back().event.time_ns, 9'999);
  EXPECT_EQ(read.torn, 0);
  EXPECT_EQ(read.plan_hash, "abc");
  EXPECT_EQ(read.op_names.at(2), "transformer.h.3.mlp");
}

/// Of a record any number of whose words are still those of the one before it in its place.
TEST(Flight, ATornRecordIsNotTaken) {
  const auto recorder = recorder_of(0);
  for (std::uint32_t i = 1; i < kRingRecords; ++i) recorder->begun(kForward, 7);
  const std::vector<std::byte> before = recorder->snapshot();
  recorder->landed(kGather, kCall, 8);
  const std::vector<std::byte> after = recorder->snapshot();
  for (std::size_t words = 1; words < kRecordWords; ++words) {
    std::vector<std::byte> torn = before;
    std::memcpy(torn.data() + kHeaderBytes, after.data() + kHeaderBytes, words * sizeof(std::uint64_t));
    const Recording read = read_of(torn);
    EXPECT_EQ(read.torn, 1) << words;
    EXPECT_EQ(read.entries.back().number, kRingRecords);
  }
}

TEST(Flight, WhateverIsWrittenIsThereWhenTheProcessIsKilled) {
  std::mt19937 random(7);
  for (int round = 0; round < 20; ++round) {
    const int file = memfd_create("flight", MFD_CLOEXEC);
    const auto events = static_cast<std::uint64_t>(std::uniform_int_distribution(1, 9000)(random));
    const pid_t child = fork();
    if (child == 0) {
      const auto mapped = Recorder::map(file, {.rank = Rank{1}, .world = 2}, plan_of_three());
      for (std::uint64_t i = 0; i < events; ++i) (*mapped)->begun(kForward, static_cast<std::int64_t>(i));
      raise(SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    const Recording read = read_of(content_of(file));
    close(file);
    EXPECT_EQ(read.rank, 1);
    EXPECT_EQ(read.process, child);
    EXPECT_EQ(read.torn, 0);
    ASSERT_EQ(read.entries.size(), std::min<std::uint64_t>(events, kRingRecords));
    EXPECT_EQ(read.entries.back().number, events);
  }
}

/// A writer that is killed anywhere leaves one torn record at most.
TEST(Flight, AProcessKilledAtAnyMomentLeavesWholeRecords) {
  for (int round = 0; round < 20; ++round) {
    const int file = memfd_create("flight", MFD_CLOEXEC);
    const pid_t child = fork();
    if (child == 0) {
      const auto mapped = Recorder::map(file, {.rank = Rank{1}, .world = 2}, plan_of_three());
      for (std::int64_t i = 0;; ++i) (*mapped)->begun(kForward, i);
    }
    while (true) {  // until it has wrapped
      const auto read = read_recordings(content_of(file));
      if (read && !read->front().entries.empty() && read->front().entries.back().number > 2 * kRingRecords) break;
    }
    kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    const Recording read = read_of(content_of(file));
    close(file);
    EXPECT_LE(read.torn, 1);
    ASSERT_GE(read.entries.size(), kRingRecords - 1);
    for (const Entry& each : read.entries) ASSERT_EQ(each.event.time_ns + 1, static_cast<std::int64_t>(each.number));
  }
}

std::vector<Recording> broken_run(const plan::Op& doing) {
  std::vector<Recording> all;
  for (std::int32_t rank = 0; rank < 4; ++rank) {
    const auto recorder = recorder_of(rank);
    for (int i = 0; i < 430; ++i) {
      recorder->started(kForward, kCall, Bytes{64}, 1);
      recorder->landed(kForward, kCall, 2);
    }
    recorder->begun(doing, 3);
    if (rank != 2) {
      recorder->ended(doing, 4);
      recorder->started(kGather, kCall, Bytes{64}, 5);
      recorder->waiting(kGather, kCall, 6);
    }
    all.push_back(read_of(recorder->snapshot()));
  }
  return all;
}

TEST(Flight, TheVerdictOnADeath) {
  EXPECT_EQ(verdict(broken_run(kBackward), {.dead = 2}),
            "rank 2 died in step 17, backward of h.3, before collective 431 (all-gather chunk 12); ranks 0, 1, 3 wait "
            "in it");
}

TEST(Flight, ARankThatWaitsInWhatAllOthersHaveBehindThemIsAtFault) {
  std::vector<Recording> all;
  for (std::int32_t rank = 0; rank < 3; ++rank) {
    const auto recorder = recorder_of(rank);
    recorder->started(kForward, kCall, Bytes{64}, 1);
    recorder->started(kGather, kCall, Bytes{64}, 2);
    recorder->waiting(kForward, kCall, 3);
    if (rank != 1) recorder->landed(kForward, kCall, 4);
    if (rank != 1) recorder->waiting(kGather, kCall, 5);
    all.push_back(read_of(recorder->snapshot()));
  }
  EXPECT_THAT(verdict(all, {}), StartsWith("rank 1 has made no progress in step 17; ranks 0, 2 wait for it in "));
}

TEST(Flight, TheVerdictOnADeathSaysWhoDidNotWaitYet) {
  std::vector<Recording> all = broken_run(kBackward);
  while (all[3].entries.back().event.kind != EventKind::op_begun) all[3].entries.pop_back();
  EXPECT_EQ(verdict(all, {.dead = 2}),
            "rank 2 died in step 17, backward of h.3, before collective 431 (all-gather chunk 12); ranks 0, 1 wait in "
            "it; rank 3 was still at work");
  all.erase(all.begin(), all.begin() + 2);
  EXPECT_EQ(
      verdict(all, {.dead = 2}),
      "rank 2 died in step 17, backward of h.3, behind collective 430 (all-gather chunk 12); rank 3 was still at work");
}

TEST(Flight, TheVerdictOnARankThatHangs) {
  EXPECT_EQ(verdict(broken_run(kForward), {.now_ns = 60'000'000'003}),
            "rank 2 has made no progress for 60 s in step 17, in forward of h.5; ranks 0, 1, 3 wait for it in "
            "collective 431 (all-gather chunk 12)");
  EXPECT_EQ(own_words(broken_run(kForward)[0]),
            "rank 0 is in step 17, forward of h.5, and waits in collective 431 (all-gather chunk 12)");
}

/// All have started the collective that three wait in, and its data needs all of their threads.
std::vector<Recording> stopped_within(bool waits) {
  std::vector<Recording> all;
  for (std::int32_t rank = 0; rank < 4; ++rank) {
    const auto recorder = recorder_of(rank);
    recorder->started(kGather, kCall, Bytes{64}, 5);
    if (rank == 2) recorder->begun(kForward, 6);
    if (rank == 2 && waits) recorder->ended(kForward, 6);
    if (rank != 2 || waits) recorder->waiting(kGather, kCall, 6);
    all.push_back(read_of(recorder->snapshot()));
  }
  return all;
}

TEST(Flight, TheVerdictOnARankThatIsStoppedWithinACollective) {
  const std::string said =
      "rank 2 has made no progress for 5 s in step 17, in forward of h.5; ranks 0, 1, 3 wait for it in collective 1 "
      "(all-gather chunk 12)";
  EXPECT_EQ(verdict(stopped_within(false), {.now_ns = 5'000'000'006}), said);
  EXPECT_EQ(verdict(stopped_within(true), {.silent = {2}, .now_ns = 5'000'000'006}), said);
  EXPECT_THAT(verdict(stopped_within(true), {.now_ns = 5'000'000'006}), IsEmpty());
  std::vector<Recording> kept = stopped_within(true);
  kept[2].seen = Seen::silent;
  EXPECT_THAT(verdict(kept, {}), StartsWith("rank 2 has made no progress in step 17"));
}

TEST(Flight, WhereNothingIsRecordedNothingIsSaid) {
  EXPECT_THAT(verdict({}, {.dead = 2}), IsEmpty());
  EXPECT_THAT(verdict({}, {}), IsEmpty());
}

TEST(Flight, FilesThatAreNoneOrCutShortAreRefused) {
  const std::vector<std::byte> whole = recorder_of(0)->snapshot();
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{100}, kHeaderBytes, whole.size() - 1}) {
    const auto read = read_recordings(std::span(whole).first(bytes));
    ASSERT_FALSE(read.has_value()) << bytes;
    EXPECT_EQ(read.error().code, Errc::malformed);
    EXPECT_THAT(read.error().what, HasSubstr("cut short"));
  }
  std::vector<std::byte> other = whole;
  other[0] = std::byte{0};
  EXPECT_FALSE(read_recordings(other).has_value());
}

}  // namespace
}  // namespace shard::flight
