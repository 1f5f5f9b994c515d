// Is what is saved read again as it was, whole or not at all?
#include "executor/state/weights_writer.h"

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

/// Behind the phase, of a writer that has all parts.
Result<void> checked(WeightsWriter& writer) {
  const Result<std::string> own = writer.finish_part();
  if (!own) return own.error();
  return writer.check(std::span(&*own, 1));
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
  [[nodiscard]] SavedWeights what(Dtype dtype = Dtype::f32) const {
    return {.folder = out_, .stored = dtype, .config = {}};
  }
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
  auto writer = WeightsWriter::create(what(), plan());
  ASSERT_TRUE(writer) << to_string(writer.error());
  feed(*writer);
  const auto right = checked(*writer);
  ASSERT_TRUE(right) << to_string(right.error());
  EXPECT_FALSE(std::filesystem::exists(out_ / "model.safetensors"));
  ASSERT_TRUE(writer->finish());
  EXPECT_THAT(names(), testing::ElementsAre("model.safetensors"));
  EXPECT_EQ(static_cast<std::int64_t>(std::filesystem::file_size(out_ / "model.safetensors")), writer->bytes().count());
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
    auto writer = WeightsWriter::create(what(dtype), plan());
    ASSERT_TRUE(writer);
    feed(*writer);
    ASSERT_TRUE(checked(*writer));
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
    auto writer = WeightsWriter::create(what(), plan());
    ASSERT_TRUE(writer);
    feed(*writer);
    ASSERT_TRUE(checked(*writer));
  }
  EXPECT_FALSE(std::filesystem::exists(out_));
}

TEST_F(WeightsWriterTest, OtherBytesOnTheDiskAreNoticed) {
  // Of the header, and of the last tensor.
  for (const std::int64_t from_end : {std::int64_t{0}, std::int64_t{1}}) {
    auto writer = WeightsWriter::create(what(), plan());
    ASSERT_TRUE(writer);
    feed(*writer);
    std::fstream file(writer->draft() / "model.safetensors", std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(from_end > 0 ? writer->bytes().count() - from_end : 20);
    file.put('~');
    file.close();
    const auto right = checked(*writer);
    ASSERT_FALSE(right);
    EXPECT_EQ(right.error().code, Errc::io);
    EXPECT_THAT(right.error().what, HasSubstr("reads differently"));
    EXPECT_EQ(right.error().where, out_ / "model.safetensors");
  }
}

TEST_F(WeightsWriterTest, WhatWasThereStaysUntilFinishAndNothingElse) {
  std::filesystem::create_directory(out_);
  std::ofstream(out_ / "model.safetensors") << "old";
  {
    auto writer = WeightsWriter::create(what(), plan());
    ASSERT_TRUE(writer);
    feed(*writer);
    ASSERT_TRUE(checked(*writer));
    EXPECT_EQ(std::filesystem::file_size(out_ / "model.safetensors"), 3U);
  }
  EXPECT_EQ(std::filesystem::file_size(out_ / "model.safetensors"), 3U);
  EXPECT_THAT(names(), testing::ElementsAre("model.safetensors"));
}

TEST_F(WeightsWriterTest, WhatAKilledProcessLeftGoesWithTheNextSave) {
  const pid_t child = fork();
  if (child == 0) {
    auto writer = WeightsWriter::create(what(), plan());
    feed(*writer);
    if (!checked(*writer)) _exit(1);
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status)) << status;
  EXPECT_THAT(names(), testing::ElementsAre(testing::StartsWith(".")));
  auto writer = WeightsWriter::create(what(), plan());
  feed(*writer);
  ASSERT_TRUE(checked(*writer) && writer->finish());
  EXPECT_THAT(names(), testing::ElementsAre("model.safetensors"));
}

TEST_F(WeightsWriterTest, SeveralFilesHaveAnIndexAndReplaceOne) {
  for (const std::int64_t largest :
       {std::int64_t{1} << 40, std::int64_t{1000}, std::int64_t{300}, std::int64_t{1} << 40}) {
    SavedWeights some = what();
    some.largest_file = largest;
    auto writer = WeightsWriter::create(some, plan());
    ASSERT_TRUE(writer);
    feed(*writer);
    ASSERT_TRUE(checked(*writer) && writer->finish());
    const std::size_t files = writer->files();
    EXPECT_EQ(files > 1, largest < 2000);
    EXPECT_EQ(names().size(), files > 1 ? files + 1 : 1);  // nothing of the save before
    EXPECT_TRUE(std::filesystem::exists(writer->path()));
    const auto weights = Weights::open(out_, *model_);
    ASSERT_TRUE(weights) << to_string(weights.error());
    for (std::size_t p = 0; p < model_->parameters.size(); ++p) {
      std::vector<float> values(static_cast<std::size_t>(model_->parameters[p].elems.count()));
      ASSERT_TRUE(weights->read(model::ParamId{static_cast<std::int32_t>(p)}, 0, values));
      for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], value(p, i));
    }
  }
}

TEST_F(WeightsWriterTest, AConfigurationIsWrittenWhereThereIsNone) {
  SavedWeights with_config = what();
  with_config.config = "{\"model_type\":\"gpt2\"}";
  const auto config = out_ / "config.json";
  const auto save = [&] {
    auto writer = WeightsWriter::create(with_config, plan());
    feed(*writer);
    EXPECT_TRUE(checked(*writer) && writer->finish());
    std::ifstream in(config);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  EXPECT_EQ(save(), with_config.config);
  std::ofstream(config) << "somebody's own";
  EXPECT_EQ(save(), "somebody's own");
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
  std::filesystem::create_symlink("/dev/null", scratch_.path() / "devices/model.safetensors");
  const auto device = can_write_weights(scratch_.path() / "devices");
  ASSERT_FALSE(device);
  EXPECT_THAT(device.error().what, HasSubstr("is a device or a pipe"));
  EXPECT_THAT(std::filesystem::exists(out_), false);
}

}  // namespace
}  // namespace shard
