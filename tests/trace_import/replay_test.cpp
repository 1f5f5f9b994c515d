// Is a snapshot the recording that was made of it by other means, and does the allocator's model agree with it?
#include <fstream>
#include <set>
#include <sstream>

#include "sim/commands/snapshot_recording.h"
#include "sim/like/pytorch/replay.h"
#include "tests/trace_import/files.h"

namespace shard {
namespace {

std::multiset<std::string> rows(std::istream& in) {
  std::multiset<std::string> result;
  for (std::string line; std::getline(in, line);) {
    // The recordings made by other means have no notes and no requests to free, and call pools in events by no name.
    if (line.starts_with("free_requested") || line.starts_with("snapshot") || line.starts_with("oom")) continue;
    result.insert(line.substr(0, line.rfind(',')));
  }
  return result;
}

TEST(SnapshotRecording, OfASmallSnapshotRowByRow) {
  const LoadedTrace all = files::loaded(files::small_pickle());
  EXPECT_EQ(commands::recording_of(*all.snapshot, 0),
            "what,address,bytes,stream,pool,time_us\n"
            "segment,1048576,2097152,0,small,\n"
            "block,1050624,1024,,,\n"
            "free_completed,1050624,700,0,,5\n"
            "alloc,1048576,1000,0,,6\n"
            "free_requested,1048576,1000,0,,7\n");
  EXPECT_EQ(busiest_device(*all.snapshot), 0);
}

class SnapshotReplay : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(SnapshotReplay, EqualsTheRecordingAndTheModel) {
  const auto path = files::recording(GetParam().first);
  SKIP_WITHOUT(path);
  const Result<LoadedTrace> all = load_any(path);
  ASSERT_TRUE(all) << to_string(all.error());
  std::stringstream recording(commands::recording_of(*all->snapshot, 0));
  std::ifstream expected(TEST_DATA + std::string("/data/allocator/") + GetParam().second);
  EXPECT_EQ(rows(recording), rows(expected));
  recording.clear();
  recording.seekg(0);
  const Result<AllocatorReplay> replay = replay_allocator(recording, "snapshot");
  ASSERT_TRUE(replay) << to_string(replay.error());
  EXPECT_TRUE(replay->exact()) << to_text(*replay);
}

INSTANTIATE_TEST_SUITE_P(Public, SnapshotReplay,
                         ::testing::Values(std::pair("pytorch-snapshot-small.pickle", "small.csv"),
                                           std::pair("pytorch-snapshot-transformer-forward.pickle",
                                                     "transformer_forward.csv")));

}  // namespace
}  // namespace shard
