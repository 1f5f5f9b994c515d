// Does the model do what PyTorch's allocator did under settings of PYTORCH_CUDA_ALLOC_CONF, and refuse what that
// refuses?
#include "sim/like/pytorch/allocator_conf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "sim/like/pytorch/linux_device.h"

namespace shard {
namespace {

/// A run of PyTorch 2.11 on a stand-in GPU (make_conf_runs.py says what the columns are).
struct RecordedRun {
  std::string conf, fraction;
  std::vector<std::string> requests, figures;
};

std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

std::vector<RecordedRun> runs() {
  std::ifstream file(TEST_DATA "/data/allocator/conf_runs.tsv");
  std::vector<RecordedRun> all;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::istringstream columns(line);
    RecordedRun run;
    std::string requests;
    std::string figures;
    std::getline(columns, run.conf, '\t');
    std::getline(columns, run.fraction, '\t');
    std::getline(columns, requests, '\t');
    std::getline(columns, figures, '\t');
    run.requests = words(requests);
    run.figures = words(figures);
    all.push_back(std::move(run));
  }
  return all;
}

/// Of the stand-in's t4-16gb-x4.
constexpr Bytes kDevice{15'828'320'256};

std::string played(CachingAllocator& allocator, const std::string& word, std::vector<BlockId>& taken,
                   AllocatorStream& stream) {
  if (word == "e") {
    allocator.empty_cache();
  } else if (word == "s") {
    stream = 1 - stream;
  } else if (word[0] == '+') {
    const Result<BlockId> block = allocator.allocate(Bytes{std::stoll(word.substr(1))}, stream);
    if (!block) return "oom";
    taken.push_back(*block);
  } else {
    EXPECT_TRUE(allocator.free(taken[std::stoull(word.substr(1))]));
  }
  const AllocatorStatistics& s = allocator.statistics();
  return std::to_string(s.allocated.current.count()) + "/" + std::to_string(s.reserved.current.count());
}

TEST(AllocatorConf, AllocatedAndReservedAreThoseOfPyTorchBehindEveryRequest) {
  const std::vector<RecordedRun> all = runs();
  ASSERT_GE(all.size(), 90U);
  for (const RecordedRun& run : all) {
    Result<AllocatorConf> conf = read_allocator_conf(run.conf);
    ASSERT_TRUE(conf) << to_string(conf.error());
    conf->options.expandable_space = kDevice + Bytes{kDevice.count() / 8};
    if (!run.fraction.empty())
      conf->options.allowed =
          Bytes{static_cast<std::int64_t>(std::stod(run.fraction) * static_cast<double>(kDevice.count()))};
    LinuxDevice device(kDevice);
    CachingAllocator allocator(device, conf->options);
    std::vector<BlockId> taken;
    AllocatorStream stream = 0;
    for (std::size_t i = 0; i < run.figures.size(); ++i) {
      const std::string after = played(allocator, run.requests[i], taken, stream);
      ASSERT_EQ(after, run.figures[i]) << "'" << run.conf << "' " << run.fraction << ", request " << i << ": "
                                       << run.requests[i];
    }
  }
}

TEST(AllocatorConf, RoundsUpInStepsOfThePowerOfTwo) {
  const Result<AllocatorConf> conf = read_allocator_conf("roundup_power2_divisions:4");
  ASSERT_TRUE(conf);
  SimulatedDevice device;
  const CachingAllocator allocator(device, conf->options);
  EXPECT_EQ(allocator.rounded(Bytes{1200}).count(), 1536);              // no more than 512 bytes a division: as ever
  EXPECT_EQ(allocator.rounded(Bytes{1200 << 10}).count(), 1280 << 10);  // PyTorch's documentation: 1200 becomes 1280
  EXPECT_EQ(allocator.rounded(Bytes{1 << 20}).count(), 1 << 20);
}

TEST(AllocatorConf, NamesWhatPyTorchRefuses) {
  for (const char* text :
       {"max_split_size_mb", "max_split_size_mb:", "max_split_size_mb:19", "max_split_size_mb:many",
        "roundup_power2_divisions:3", "roundup_power2_divisions:[64:3]", "roundup_power2_divisions:[3:4]",
        "garbage_collection_threshold:1", "garbage_collection_threshold:0", "expandable_segments:yes",
        "expandable:True", "backend:mine", "expandable_segments:True max_split_size_mb:30"}) {
    const Result<AllocatorConf> conf = read_allocator_conf(text);
    ASSERT_FALSE(conf) << text;
    EXPECT_EQ(conf.error().code, Errc::usage) << text;
    EXPECT_THAT(conf.error().where, testing::HasSubstr(text));
  }
  EXPECT_EQ(read_allocator_conf("backend:cudaMallocAsync").error().code, Errc::contradiction);
}

TEST(AllocatorConf, TakesWhatPyTorchTakes) {
  for (const char* text : {"", "backend:native", "expandable_segments: True , max_split_size_mb:20",
                           "pinned_use_background_threads:True,release_lock_on_cudamalloc:True",
                           "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]"})
    EXPECT_TRUE(read_allocator_conf(text)) << text;
}

}  // namespace
}  // namespace shard
