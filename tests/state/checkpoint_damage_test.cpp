// Is every flipped bit and every cut of every file of a checkpoint noticed, and everything that a manifest may not say?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "executor/state/checkpoint/directory.h"
#include "tests/state/checkpoint_files.h"
#include "tests/state/files.h"

namespace shard::checkpoint {
namespace {

using testing::HasSubstr;
using namespace test;
namespace fs = std::filesystem;

class CheckpointDamage : public testing::Test {
 protected:
  CheckpointDamage() {
    layout_ = lay_out(std::vector<TensorSpec>{{"a", "F32", {5}}, {"b", "BF16", {3}}},
                      std::vector<TensorSpec>{{"m.a", "F32", {5}}}, 20);
    const auto saved = save(folder_.path(), 1, layout_, 3);
    EXPECT_TRUE(saved) << to_string(saved.error());
    path_ = *saved;
  }
  void TearDown() override { trials_.record(); }
  void put(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
  }
  /// Noticed: verify() fails, and whoever reads gets an error or what was saved.
  void expect_noticed(const std::string& name, const std::string& how) {
    trials_.one_more();
    EXPECT_FALSE(verify(path_)) << name << ' ' << how;
    if (const auto read = read_all(path_)) {
      EXPECT_TRUE(*read == content_of(layout_, 3)) << name << ' ' << how;
    }
  }
  Trials trials_;
  WeightsFolder folder_{"checkpoint_damage", memory_directory()};
  Layout layout_;
  fs::path path_;
};

TEST_F(CheckpointDamage, EveryFlippedBitIsNoticed) {
  for (const auto& [name, text] : texts_in(path_)) {
    for (std::size_t bit = 0; bit < text.size() * 8; ++bit) {
      std::string other = text;
      other[bit / 8] = static_cast<char>(other[bit / 8] ^ (1 << bit % 8));
      put(name, other);
      expect_noticed(name, "bit " + std::to_string(bit));
      EXPECT_TRUE(name != kManifestFile || !list(folder_.path())->back().complete) << bit;
    }
    put(name, text);
  }
  EXPECT_TRUE(verify(path_));
}

TEST_F(CheckpointDamage, EveryCutAndEveryByteMoreIsNoticed) {
  for (const auto& [name, text] : texts_in(path_)) {
    for (std::size_t left = 0; left <= text.size() + 1; ++left) {
      if (left == text.size()) continue;
      put(name, left < text.size() ? text.substr(0, left) : text + "\n");
      expect_noticed(name, "left " + std::to_string(left));
      EXPECT_FALSE(list(folder_.path())->back().complete) << name << left;
      EXPECT_FALSE(Reader::open(path_)) << name << left;
    }
    put(name, text);
  }
}

TEST_F(CheckpointDamage, EveryFileThatIsGoneIsNoticed) {
  for (const auto& [name, text] : texts_in(path_)) {
    fs::remove(path_ / name);
    expect_noticed(name, "gone");
    EXPECT_FALSE(list(folder_.path())->back().complete);
    put(name, text);
  }
}

TEST_F(CheckpointDamage, AWrongByteIsNamedWithItsTensor) {
  const std::string name = layout_.files[1].name;
  std::string text = text_of(path_ / name);
  text.back() = static_cast<char>(~text.back());
  put(name, text);
  const auto read = read_all(path_);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Errc::malformed);
  EXPECT_THAT(read.error().where, HasSubstr(name));
  EXPECT_THAT(read.error().what, testing::AllOf(HasSubstr("in tensor 'b'"), HasSubstr("bytes ")));
  EXPECT_THAT(read.error().help, HasSubstr("--resume"));
}

// A right checksum around what is wrong.
TEST(CheckpointManifest, WhatItMayNotSayIsRefused) {
  const std::string right =
      R"({"format":"shardscope checkpoint","version":1,"step":1,"tokens":2,"micro_batches":3,"numbers":[["n","v"]],"about":[],"files":[{"name":"f","bytes":8,"pieces":[[0,4,"0000000000000000"],[4,4,"00000000000000ff"]]}]})";
  ASSERT_TRUE(parse_body(right, "m")) << to_string(parse_body(right, "m").error());
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = right;
    return text.replace(text.find(from), from.size(), to);
  };
  const std::pair<std::string, const char*> kWrong[] = {
      {with("shardscope", "another"), "no manifest of a checkpoint"},
      {with("\"version\":1", "\"version\":2"), "version 2"},
      {with("\"version\":1", "\"version\":0"), "version 0"},
      {with("\"step\":1", "\"step\":-1"), "'step'"},
      {with("\"step\":1", "\"step\":1.5"), "'step'"},
      {with("\"step\":1", "\"step\":9223372036854775808"), "'step'"},
      {with("\"tokens\":2,", ""), "'tokens'"},
      {with("[\"n\",\"v\"]", "[\"n\"]"), "'numbers'"},
      {with("\"f\"", "\"../f\""), "no name"},
      {with("\"f\"", "\"..\""), "no name"},
      {with("\"f\"", "\".\""), "no name"},
      {with("\"f\"", "\"\""), "no name"},
      {with("\"f\"", "\"f\\u0000\""), "no name"},
      {with("\"f\"", "\"manifest.json\""), "no name"},
      {with("\"bytes\":8", "\"bytes\":-8"), "bytes from 0"},
      {with("\"bytes\":8", "\"bytes\":9"), "bytes 8 to 9"},
      {with("\"bytes\":8", "\"bytes\":7"), "cannot be one"},
      {with("\"bytes\":8", "\"bytes\":9223372036854775807"), "in no piece"},
      {with("[0,4,", "[1,3,"), "bytes 0 to 1"},
      {with("[0,4,", "[0,3,"), "bytes 3 to 4"},
      {with("[0,4,", "[0,5,"), "in two pieces"},
      {with("[0,4,", "[0,0,"), "cannot be one"},
      {with("[0,4,", "[9223372036854775807,4,"), "cannot be one"},
      {with("[0,4,", "[0,9223372036854775807,"), "cannot be one"},
      {with("00ff", "00FF"), "16 digits"},
      {with("00ff", "0ff"), "16 digits"},
      {with("}]}", "},{\"name\":\"f\",\"bytes\":0,\"pieces\":[]}]}"), "stands twice"},
      {"[]", "no JSON object"},
      {std::string(100'000, '['), "nests deeper"},
      {"", "no JSON object"},
  };
  for (const auto& [text, what] : kWrong) {
    const auto parsed = parse_body(text, "manifest");
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, Errc::malformed);
    EXPECT_EQ(parsed.error().where, "manifest");
    EXPECT_THAT(parsed.error().what, HasSubstr(what)) << text.substr(0, 400);
    EXPECT_FALSE(parsed.error().help.empty());
  }
}

TEST(CheckpointManifest, APieceDoesNotCrossAMultipleOfAMebibyte) {
  FileEntry file{"f", kPieceBytes + 8, {{0, kPieceBytes, 1}, {kPieceBytes, 8, 2}}};
  EXPECT_TRUE(check_pieces(file, "m"));
  file.pieces = {{0, 16, 1}, {16, kPieceBytes - 8, 2}};
  EXPECT_THAT(check_pieces(file, "m").error().what, HasSubstr("across a multiple"));
  file.pieces = {{0, kPieceBytes + 8, 1}};
  EXPECT_FALSE(check_pieces(file, "m"));
}

TEST(CheckpointManifest, TextAndBackIsTheSame) {
  Manifest manifest = manifest_of(5);
  manifest.files = {{"a", 3, {{0, 3, ~0ULL}}}, {"empty", 0, {}}};
  const auto again = parse(to_text(manifest), "m");
  ASSERT_TRUE(again) << to_string(again.error());
  EXPECT_EQ(*again, manifest);
}

}  // namespace
}  // namespace shard::checkpoint
