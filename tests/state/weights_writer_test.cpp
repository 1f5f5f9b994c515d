// Is what is saved read again as it was, whole or not at all?
#include "executor/state/weights_writer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <fstream>
#include <memory>
#include <string>

#include "executor/state/weights.h"
#include "sim/compile/compile.h"
#include "sim/model/read_model.h"
#include "tests/state/files.h"

namespace shard {
namespace {

using testing::HasSubstr;

float value(std::size_t p, std::size_t i) {
  return static_cast<float>(p) + static_cast<float>(i % 97) * 0x1p-20F;
}

/// A path to the file of the folder that this process has open, whether it has a name or not.
std::string open_file_in(const std::filesystem::path& folder) {
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code closed;
    if (std::filesystem::read_symlink(each.path(), closed).parent_path() == folder) return each.path();
  }
  return "";
}

class WeightsWriterTest : public testing::Test {
 protected:
  WeightsWriterTest() {
    auto read =
        model::read_model(R"({"model_type":"gpt2","vocab_size":16,"n_positions":8,"n_embd":8,"n_layer":1,"n_head":2})");
    model_ = std::make_shared<const model::Model>(std::move(*read));
    plans_ = std::make_unique<plan::PlanSet>(*plan::compile(model_, {.sequence = 8}));
  }
  [[nodiscard]] const plan::Plan& plan() const { return plans_->of_rank(0); }
  void feed(WeightsWriter& writer) const {
    for (const plan::Flat& flat : plan().flats)
      for (const plan::Flat::Item& item : flat.items) {
        const auto p = static_cast<std::size_t>(item.param.value);
        std::vector<float> values(static_cast<std::size_t>(item.elems.count()));
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = value(p, i);
        writer.add(item.param, plan::Digest::Content::parameter, std::as_bytes(std::span(values)));
        writer.add(item.param, plan::Digest::Content::first_moment, std::as_bytes(std::span(values)));
      }
  }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(out_)) names.push_back(entry.path().filename());
    return names;
  }

  std::shared_ptr<const model::Model> model_;
  std::unique_ptr<plan::PlanSet> plans_;
  test::WeightsFolder scratch_{"writer"};
  std::filesystem::path out_ = scratch_.path() / "out";
};

TEST_F(WeightsWriterTest, GivesTheNameBehindTheCheck) {
  ASSERT_TRUE(can_write_weights(out_));
  auto writer = WeightsWriter::create(out_, plan(), Dtype::f32);
  ASSERT_TRUE(writer) << to_string(writer.error());
  feed(*writer);
  const auto checked = writer->check();
  ASSERT_TRUE(checked) << to_string(checked.error());
  EXPECT_FALSE(std::filesystem::exists(weights_file_in(out_)));
  ASSERT_TRUE(writer->finish());
  EXPECT_THAT(names(), testing::ElementsAre("model.safetensors"));
  EXPECT_EQ(static_cast<std::int64_t>(std::filesystem::file_size(weights_file_in(out_))), writer->bytes().count());
  const auto weights = Weights::open(out_, *model_);
  ASSERT_TRUE(weights) << to_string(weights.error());
  for (std::size_t p = 0; p < model_->parameters.size(); ++p) {
    std::vector<float> values(static_cast<std::size_t>(model_->parameters[p].elems.count()));
    ASSERT_TRUE(weights->read(model::ParamId{static_cast<std::int32_t>(p)}, 0, values));
    for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], value(p, i));
  }
}

TEST_F(WeightsWriterTest, RoundsToTheTypeAskedFor) {
  for (const Dtype dtype : {Dtype::bf16, Dtype::f16}) {
    auto writer = WeightsWriter::create(out_, plan(), dtype);
    ASSERT_TRUE(writer);
    feed(*writer);
    ASSERT_TRUE(writer->check());
    ASSERT_TRUE(writer->finish());
    const auto weights = Weights::open(out_, *model_);
    ASSERT_TRUE(weights) << to_string(weights.error());
    std::vector<float> values(100);
    ASSERT_TRUE(weights->read(model::ParamId{0}, 0, values));
    // Multiples of 2^-20 below 2^-13: subnormal in fp16, seven bits of them in bf16.
    for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], value(0, i), 0x1p-21F);
    EXPECT_EQ(std::ranges::all_of(values, [](float v) { return v * 0x1p24F == std::floor(v * 0x1p24F); }), true);
  }
}

TEST_F(WeightsWriterTest, LeavesNothingWithoutFinish) {
  {
    auto writer = WeightsWriter::create(out_, plan(), Dtype::f32);
    ASSERT_TRUE(writer);
    feed(*writer);
    ASSERT_TRUE(writer->check());
  }
  EXPECT_FALSE(std::filesystem::exists(out_));
}

TEST_F(WeightsWriterTest, AnotherHeaderOnTheDiskIsNoticed) {
  auto writer = WeightsWriter::create(out_, plan(), Dtype::f32);
  ASSERT_TRUE(writer);
  feed(*writer);
  const std::string partial = open_file_in(out_);
  ASSERT_FALSE(partial.empty());
  // Whoever appends to the file while it is written moves nothing that was written, and makes it longer.
  std::ofstream(partial, std::ios::binary | std::ios::app) << std::string(1 << 17, 'x');
  const auto checked = writer->check();
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, Errc::io);
  EXPECT_THAT(checked.error().what, HasSubstr("reads differently"));
}

TEST_F(WeightsWriterTest, WhatWasThereStaysUntilFinishAndNothingElse) {
  std::filesystem::create_directory(out_);
  std::ofstream(weights_file_in(out_)) << "old";
  {
    auto writer = WeightsWriter::create(out_, plan(), Dtype::f32);
    ASSERT_TRUE(writer);
    feed(*writer);
    ASSERT_TRUE(writer->check());
    EXPECT_EQ(std::filesystem::file_size(weights_file_in(out_)), 3U);
  }
  EXPECT_EQ(std::filesystem::file_size(weights_file_in(out_)), 3U);
  EXPECT_THAT(names(), testing::ElementsAre("model.safetensors"));
}

TEST_F(WeightsWriterTest, OfAKilledProcessNoFileStays) {
  const int without_name = open(scratch_.path().c_str(), O_TMPFILE | O_RDWR, 0600);
  if (without_name >= 0) close(without_name);
  const pid_t child = fork();
  if (child == 0) {
    auto writer = WeightsWriter::create(out_, plan(), Dtype::f32);
    feed(*writer);
    if (!writer->check()) _exit(1);
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status)) << status;
  EXPECT_EQ(names().size(), without_name >= 0 ? 0U : 1U);
}

TEST_F(WeightsWriterTest, PlacesThatCannotBeWrittenAreRefused) {
  EXPECT_FALSE(can_write_weights(scratch_.path() / "absent" / "out"));
  const std::string file = scratch_.write("file", "");
  const auto refused = can_write_weights(file);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::cannot_create);
  EXPECT_THAT(refused.error().what, HasSubstr("is a file"));
  EXPECT_TRUE(can_write_weights(out_.string() + "/"));
  std::filesystem::create_directory(scratch_.path() / "devices");
  std::filesystem::create_symlink("/dev/null", weights_file_in(scratch_.path() / "devices"));
  const auto device = can_write_weights(scratch_.path() / "devices");
  ASSERT_FALSE(device);
  EXPECT_THAT(device.error().what, HasSubstr("is a device or a pipe"));
  EXPECT_THAT(std::filesystem::exists(out_), false);
}

}  // namespace
}  // namespace shard
