// Are TensorBoard's files what others read: framed, checksummed, and equal to the log, value by value?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/end_to_end/as_predicted.h"
#include "tests/end_to_end/program.h"
#include "traces/base/protobuf.h"

namespace shard::test {
namespace {

using nlohmann::json;
using testing::StartsWith;

/// CRC-32C (RFC 3720, B.4), a bit at a time.
std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = 0xffffffff;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78U : 0U);
  }
  return ~crc;
}

TEST(TensorBoard, TheChecksumOfTheTestIsThatOfItsStandard) {
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43U);
}

template <class T>
T number_at(std::string_view bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

/// The records of a file, each of its two checksums compared.
std::vector<std::string_view> records_of(std::string_view file) {
  const auto expect_sum = [](std::string_view bytes, std::string_view at) {
    const std::uint32_t unmasked = number_at<std::uint32_t>(at) - 0xa282ead8U;
    EXPECT_EQ(std::rotl(unmasked, 15), crc32c(bytes));
  };
  std::vector<std::string_view> records;
  while (file.size() >= 16) {
    const auto length = number_at<std::uint64_t>(file);
    expect_sum(file.substr(0, 8), file.substr(8));
    records.push_back(file.substr(12, length));
    expect_sum(records.back(), file.substr(12 + length));
    file.remove_prefix(16 + length);
  }
  EXPECT_TRUE(file.empty());
  return records;
}

/// By step and tag.
using Scalars = std::map<std::pair<std::int64_t, std::string>, float>;

void read_summary(std::string_view summary, std::int64_t step, Scalars& into) {
  ProtoReader values(summary);
  for (ProtoField value; values.next(value);) {
    ProtoReader fields(value.bytes);
    std::string tag;
    float number = 0;
    for (ProtoField field; fields.next(field);) {
      if (field.number == 1) tag = field.bytes;
      if (field.number == 2) number = std::bit_cast<float>(static_cast<std::uint32_t>(field.value));
    }
    EXPECT_TRUE(fields.ok());
    into[{step, tag}] = number;
  }
  EXPECT_TRUE(values.ok());
}

Scalars scalars_of(const std::string& file) {
  Scalars scalars;
  const std::vector<std::string_view> records = records_of(file);
  for (std::size_t i = 0; i < records.size(); ++i) {
    ProtoReader event(records[i]);
    std::int64_t step = 0;
    std::string version;
    std::string_view summary;
    double time = 0;
    for (ProtoField field; event.next(field);) {
      if (field.number == 1) time = field.real();
      if (field.number == 2) step = field.integer();
      if (field.number == 3) version = field.bytes;
      if (field.number == 5) summary = field.bytes;
    }
    EXPECT_TRUE(event.ok());
    EXPECT_GT(time, 1.7e9);
    EXPECT_EQ(version, i == 0 ? "brain.Event:2" : "");
    read_summary(summary, step, scalars);
  }
  return scalars;
}

std::vector<std::string> event_files(const std::filesystem::path& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path().string());
  std::ranges::sort(files);
  return files;
}

TEST(TensorBoard, HasWhatTheLogHasAndARunThatGoesOnAddsAFile) {
  const ScratchDirectory scratch;
  const Words run = train({"--model", "gpt2-nano", "--data", kText, "--sequence", "32", "--ranks", "2", "--stage", "2",
                           "--clip-norm", "1", "--eval-every", "2", "--eval-split", "0.1"});
  const auto with = [&](Words more) {
    Words words = run;
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = shardscope(words, {.directory = scratch.path()});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  };
  with({"--steps", "4", "--save", "saved", "--log", "log.jsonl", "--tensorboard", "runs/first"});
  const std::vector<std::string> files = event_files(scratch.file("runs/first"));
  ASSERT_EQ(files.size(), 1U);
  EXPECT_THAT(std::filesystem::path(files[0]).filename().string(), StartsWith("events.out.tfevents."));
  Scalars found = scalars_of(read_file(files[0]));
  const std::map<std::string, std::string> tags{{"loss", "train/loss"},
                                                {"gradient_norm", "train/grad_norm"},
                                                {"learning_rate", "train/learning_rate"},
                                                {"step_seconds", "train/step_seconds"},
                                                {"tokens_per_second", "train/tokens_per_second"},
                                                {"mfu", "train/mfu"},
                                                {"loss_scale", "train/loss_scale"},
                                                {"validation_loss", "eval/loss"},
                                                {"resident_bytes", "memory/resident_bytes"}};
  std::istringstream log(read_file(scratch.file("log.jsonl")));
  int compared = 0;
  for (std::string line; std::getline(log, line);) {
    const json record = json::parse(line);
    const bool step = record.contains("step");
    for (const auto& [key, tag] : tags)
      if (record.contains(key)) {
        const auto it = found.find({record[step ? "step" : "evaluated_step"].get<std::int64_t>(), tag});
        ASSERT_NE(it, found.end()) << line << key;
        EXPECT_EQ(it->second, static_cast<float>(record[key].get<double>())) << key;
        found.erase(it);
        ++compared;
      }
  }
  EXPECT_TRUE(found.empty()) << found.begin()->first.second;
  EXPECT_EQ(compared, 4 * 8 + 2);

  with({"--steps", "6", "--resume", "saved", "--tensorboard", "runs/first"});
  const std::vector<std::string> both = event_files(scratch.file("runs/first"));
  ASSERT_EQ(both.size(), 2U);
  const Scalars more = scalars_of(read_file(both[0] == files[0] ? both[1] : both[0]));
  EXPECT_FALSE(more.contains({4, "train/loss"}));
  EXPECT_TRUE(more.contains({5, "train/loss"}) && more.contains({6, "eval/loss"}));
}

TEST(TensorBoard, AFolderThatCannotBeMadeIsSaidBeforeTheFirstStep) {
  const Outcome outcome = shardscope(
      train({"--model", "gpt2-nano", "--data", "random", "--steps", "1", "--tensorboard", "/proc/nothing/here"}));
  EXPECT_EQ(outcome.exit_code, 73) << outcome.err;
  EXPECT_THAT(outcome.err, testing::HasSubstr("/proc/nothing/here"));
}

}  // namespace
}  // namespace shard::test
