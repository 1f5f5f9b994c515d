// What does a --model argument resolve to, and what does a wrong one say?
#include "sim/model/read_model.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "sim/model/examples.h"

namespace shard::model {
namespace {

namespace fs = std::filesystem;

class ReadModel : public testing::Test {
 protected:
  ReadModel() {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(testing::TempDir()) / (std::string("shardscope_read_model_") + info->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~ReadModel() override { fs::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return (folder_ / name).string();
  }
  fs::path folder_;
};

constexpr const char* kSmall = R"({"model_type": "mlp", "sizes": [3, 2]})";

TEST_F(ReadModel, PathToAFile) {
  const auto model = read_model(write("tiny.json", kSmall));
  ASSERT_TRUE(model) << to_string(model.error());
  EXPECT_EQ(model->name, "tiny");
  EXPECT_EQ(model->parameter_elements(), 8);
}

TEST_F(ReadModel, DirectoryHoldingConfigJson) {
  write("config.json", kSmall);
  const auto model = read_model(folder_.string());
  ASSERT_TRUE(model) << to_string(model.error());
  EXPECT_EQ(model->name, folder_.filename().string());
}

TEST_F(ReadModel, DirectoryWithoutConfigJson) {
  const auto model = read_model(folder_.string());
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().code, Errc::no_input);
  EXPECT_EQ(model.error().where, (folder_ / "config.json").string());
}

TEST_F(ReadModel, AbsentFile) {
  for (const std::string& argument : {std::string("absent.json"), (folder_ / "absent").string()}) {
    const auto model = read_model(argument);
    ASSERT_FALSE(model);
    EXPECT_EQ(model.error().code, Errc::no_input);
    EXPECT_EQ(model.error().where, argument);
  }
}

TEST_F(ReadModel, ConfigJsonThatIsADirectory) {
  fs::create_directories(folder_ / "config.json");
  const auto model = read_model(folder_.string());
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().code, Errc::no_input);
}

TEST_F(ReadModel, WeightsInsteadOfAConfig) {
  const std::string path = write("model.bin", "");
  fs::resize_file(path, std::uintmax_t{1} << 30);
  const auto model = read_model(path);
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().code, Errc::malformed);
  EXPECT_NE(to_string(model.error()).find("16 MiB"), std::string::npos);
}

TEST_F(ReadModel, BadContentNamesTheFile) {
  const std::string path = write("bad.json", R"({"model_type": "gpt2", "n_embd": "wide"})");
  const auto model = read_model(path);
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().where, path + "#/n_embd");
}

TEST_F(ReadModel, MisspeltExampleGetsTheClosestName) {
  for (const auto& [argument, meant] : {std::pair{"gpt2-medum", "'gpt2-medium'"}, {"lama-7b", "'llama-7b'"}}) {
    const auto model = read_model(argument);
    ASSERT_FALSE(model);
    EXPECT_EQ(model.error().code, Errc::usage);
    EXPECT_NE(model.error().help.find(meant), std::string::npos) << model.error().help;
  }
}

TEST_F(ReadModel, OddArgumentsAreRefused) {
  for (const std::string& argument :
       {std::string(), std::string(100'000, 'x'), std::string("a\0b", 3), std::string("\xff\xfe")}) {
    EXPECT_FALSE(read_model(argument));
  }
}

TEST(Examples, AreTheFilesOfTheFolderAndAllLoad) {
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(TEST_DATA).parent_path() / "examples/models")) {
    if (entry.path().extension() != ".json") continue;
    ++files;
    const auto example = find_example_model(entry.path().stem().string());
    ASSERT_TRUE(example) << entry.path();
    std::ostringstream text;
    text << std::ifstream(entry.path(), std::ios::binary).rdbuf();
    EXPECT_EQ(example->config_json, text.str());
    const auto model = read_model(example->name);
    ASSERT_TRUE(model) << to_string(model.error());
    EXPECT_EQ(model->name, example->name);
  }
  EXPECT_EQ(files, example_models().size());
  EXPECT_EQ(files, 7U);
}

}  // namespace
}  // namespace shard::model
