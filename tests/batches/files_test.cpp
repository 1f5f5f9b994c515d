// Are token files of other tools read as they wrote them, and is what is wrong with one said before a run?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "executor/data/data_files.h"
#include "executor/data/token_file.h"
#include "tests/batches/token_files.h"

namespace shard::test {
namespace {

using data::TokenFile;
using testing::HasSubstr;

std::vector<std::int64_t> all_of(const TokenFile& file) {
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(file.count()));
  EXPECT_TRUE(file.read(0, tokens));
  return tokens;
}

TEST(TokenFiles, AreKnownByWhatIsInThem) {
  const Folder folder;
  write(folder / "nanogpt.bin", bytes_of(counting<std::uint16_t>(5, 65530)));
  write(folder / "gpt2.bin", llmc_header(20240520, 1, 5) + bytes_of(counting<std::uint16_t>(5, 65530)));
  write(folder / "llama3.bin", llmc_header(20240801, 7, 5) + bytes_of(counting<std::uint32_t>(5, 65530)));
  for (const char* name : {"nanogpt.bin", "gpt2.bin", "llama3.bin"}) {
    const Result<TokenFile> file = TokenFile::open_tokens(folder / name);
    ASSERT_TRUE(file) << name << to_string(file.error());
    EXPECT_EQ(all_of(*file), counting<std::int64_t>(5, 65530)) << name;
  }
}

template <class T>
void expect_megatron(std::uint8_t code, std::int64_t from) {
  const Folder folder;
  write(folder / "text_document.bin", bytes_of(counting<T>(9, from)));
  write(folder / "text_document.idx", megatron_index(code, sizeof(T), {4, 0, 5}));
  const Result<TokenFile> file = TokenFile::open_tokens(folder / "text_document.bin");
  ASSERT_TRUE(file) << to_string(file.error());
  EXPECT_EQ(all_of(*file), counting<std::int64_t>(9, from));
  const BatchShape shape{.batch = 1, .sequence = 8, .order = DataOrder::sequential};
  const auto source = open_data((folder / "text_document").string(), gpt2_of(1 << 20), shape);
  ASSERT_TRUE(source) << to_string(source.error());
  EXPECT_EQ((*micro_batch(**source, shape, 0))[0], counting<std::int32_t>(9, from));
}

TEST(TokenFiles, OfMegatronHaveTheTypeThatTheirIndexSays) {
  expect_megatron<std::uint8_t>(1, 200);
  expect_megatron<std::int16_t>(3, 30000);
  expect_megatron<std::int32_t>(4, 100000);
  expect_megatron<std::int64_t>(5, 100000);
  expect_megatron<std::uint16_t>(8, 65000);
}

TEST(TokenFiles, WhatAnIndexContradictsIsSaid) {
  const auto refused = [](const std::string& index, const std::string& content) {
    const Folder folder;
    write(folder / "a.bin", content);
    write(folder / "a.idx", index);
    const Result<TokenFile> file = TokenFile::open_tokens(folder / "a.bin");
    EXPECT_FALSE(file);
    if (file) return std::string();
    EXPECT_EQ(file.error().code, Errc::malformed);
    return to_string(file.error());
  };
  const std::string nine = bytes_of(counting<std::uint16_t>(9));
  const std::string index = megatron_index(8, 2, {4, 5});
  EXPECT_THAT(refused(index, nine + "x"), HasSubstr("the index beside it says 9 tokens of 2 bytes, the file has 19"));
  EXPECT_THAT(refused(index.substr(0, index.size() - 1), nine), HasSubstr("wrong size"));
  EXPECT_THAT(refused(index + "x", nine), HasSubstr("wrong size"));
  EXPECT_THAT(refused(index.substr(0, 20), nine), HasSubstr("no index of Megatron"));
  EXPECT_THAT(refused(megatron_index(7, 4, {9}), nine), HasSubstr("type code 7"));
  EXPECT_THAT(refused(megatron_index(8, 2, {-1, 10}), nine), HasSubstr("sequence 0 of the index has -1 tokens"));
  std::string newer = index;
  newer[9] = 2;
  EXPECT_THAT(refused(newer, nine), HasSubstr("version 2"));
}

TEST(TokenFiles, NoDamagedIndexIsMoreThanRefused) {
  std::mt19937 random(3);
  const Folder folder;
  const std::string content = bytes_of(counting<std::uint16_t>(60));
  const std::string index = megatron_index(8, 2, {10, 20, 30});
  write(folder / "a.bin", content);
  int taken = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string damaged = index;
    for (auto n = 1 + random() % 3; n > 0; --n)
      if (!damaged.empty()) damaged[random() % damaged.size()] = static_cast<char>(random());
    if (random() % 4 == 0) damaged.resize(random() % (damaged.size() + 1));
    fs::remove(folder / "a.idx");  // file systems bring what is written over to the disk before they go on
    write(folder / "a.idx", damaged);
    const Result<TokenFile> file = TokenFile::open_tokens(folder / "a.bin");
    if (!file) continue;
    ++taken;
    EXPECT_EQ(file->count() * (damaged[17] == 1 ? 1 : damaged[17] == 4 ? 4 : damaged[17] == 5 ? 8 : 2), 120);
    EXPECT_EQ(static_cast<std::int64_t>(all_of(*file).size()), file->count());
  }
  EXPECT_GT(taken, 100);
}

TEST(DataFiles, AreListedByCommasFoldersAndPatterns) {
  const Folder folder;
  for (const char* name : {"b.bin", "a.bin", "c.bin", "notes.txt", "with,comma.bin"}) write(folder / name, "xy");
  const auto names = [&](const std::string& argument) {
    std::vector<std::string> found;
    for (const fs::path& path : files_of_data(argument)) found.push_back(path.filename().string());
    return found;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names(folder.path()), (Names{"a.bin", "b.bin", "c.bin", "with,comma.bin"}));
  EXPECT_EQ(names((folder / "?.bin").string()), (Names{"a.bin", "b.bin", "c.bin"}));
  EXPECT_EQ(names((folder / "b.bin").string() + ',' + (folder / "a.bin").string()), (Names{"b.bin", "a.bin"}));
  EXPECT_EQ(names((folder / "with,comma.bin").string()), Names{"with,comma.bin"});
  EXPECT_EQ(names("text:" + (folder / "*.txt").string()), Names{"notes.txt"});
  const auto none = data::data_files((folder / "x*.bin").string());
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Errc::no_input);
  EXPECT_EQ(data::data_files((folder / "notes.txt").string()).error().code, Errc::usage);
}

TEST(DataFiles, ATokenBeyondTheVocabularyIsSaidWithItsFileAndPosition) {
  const Folder folder;
  write(folder / "a.bin", bytes_of(counting<std::uint16_t>(20)));
  write(folder / "b.bin", bytes_of(counting<std::uint16_t>(20, 90)));
  const auto source = open_data(folder.path(), gpt2_of(100), {.batch = 1, .sequence = 4});
  ASSERT_FALSE(source);
  EXPECT_EQ(source.error().code, Errc::contradiction);
  EXPECT_THAT(to_string(source.error()), HasSubstr("token 100 at position 10"));
  EXPECT_THAT(to_string(source.error()), HasSubstr("b.bin"));
}

}  // namespace
}  // namespace shard::test
