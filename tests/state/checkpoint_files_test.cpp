// Is what parts save in any division read back as it was, and is the same checkpoint the same bytes?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <thread>

#include "executor/state/checkpoint/directory.h"
#include "executor/state/checkpoint/hash.h"
#include "executor/state/tensor_file.h"
#include "tests/state/checkpoint_files.h"
#include "tests/state/files.h"

namespace shard::checkpoint {
namespace {

using testing::HasSubstr;
using namespace test;
namespace fs = std::filesystem;

std::vector<TensorSpec> random_tensors(std::mt19937& random, const std::string& prefix, std::size_t most) {
  static const char* const kTypes[] = {"F32", "BF16", "F16", "I32"};
  std::vector<TensorSpec> tensors(random() % (most + 1));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    tensors[i] = {prefix + std::to_string(i), kTypes[random() % 4], {}};
    const std::size_t dimensions = random() % 3;
    for (std::size_t d = 0; d < dimensions; ++d) tensors[i].shape.push_back(static_cast<std::int64_t>(random() % 900));
  }
  return tensors;
}

/// Every byte once, cut and dealt at random, in a random order.
std::vector<std::vector<Range>> random_parts(std::mt19937& random, const Layout& layout) {
  std::vector<std::vector<Range>> parts(1 + random() % 4);
  for (std::size_t t = 0; t < layout.places.size(); ++t)
    for (std::int64_t at = 0; at < layout.places[t].bytes;) {
      const std::int64_t end = std::min(layout.places[t].bytes, at + 1 + static_cast<std::int64_t>(random() % 800'000));
      parts[random() % parts.size()].push_back({static_cast<std::int32_t>(t), at, end});
      at = end;
    }
  for (std::vector<Range>& part : parts)
    if (random() % 2 == 0) std::shuffle(part.begin(), part.end(), random);
  return parts;
}

/// Files but the manifest, whose pieces follow the division.
std::map<std::string, std::string> files_of(const fs::path& path) {
  auto texts = texts_in(path);
  EXPECT_EQ(texts.erase(kManifestFile), 1u);
  return texts;
}

TEST(CheckpointFiles, AnyDivisionGivesTheSameFilesThatReadBack) {
  std::mt19937 random(7);
  for (std::uint32_t round = 0; round < 20; ++round) {
    const WeightsFolder folder("checkpoint_random");
    const Layout layout = lay_out(random_tensors(random, "w.", 12), random_tensors(random, "m.", 12),
                                  round % 2 == 0 ? 5'000'000'000 : 1'500'000);
    const auto one = save(folder.path() / "one", 3, layout, round);
    ASSERT_TRUE(one) << to_string(one.error());
    const auto many = save(folder.path() / "many", 3, layout, round, random_parts(random, layout));
    ASSERT_TRUE(many) << to_string(many.error());
    EXPECT_TRUE(files_of(*one) == files_of(*many));
    const auto read = read_all(*many);
    ASSERT_TRUE(read) << to_string(read.error());
    EXPECT_TRUE(*read == content_of(layout, round));
    EXPECT_TRUE(verify(*many));
    EXPECT_TRUE(hidden_in(folder.path() / "many").empty());
  }
}

TEST(CheckpointFiles, EveryHeaderIsOneThatTensorFileReads) {
  const WeightsFolder folder("checkpoint_headers");
  const std::vector<TensorSpec> weights{{"a", "F32", {3, 4}}, {"b", "BF16", {5}}, {"none", "F16", {0, 2}}};
  const std::vector<TensorSpec> state{{"m.a", "F32", {3, 4}}, {"step", "I32", {}}};
  const Layout layout = lay_out(weights, state);
  const auto path = save(folder.path(), 12, layout, 1);
  ASSERT_TRUE(path) << to_string(path.error());
  EXPECT_EQ(path->filename(), "step-00000012");
  const auto model = TensorFile::open(*path / "model.safetensors");
  ASSERT_TRUE(model) << to_string(model.error());
  ASSERT_EQ(model->tensors().size(), 3u);
  EXPECT_EQ(model->tensors()[1].name, "b");
  std::vector<std::byte> b(10);
  ASSERT_TRUE(model->read(model->tensors()[1].begin, b));
  EXPECT_EQ(b, content_of(layout, 1)[1]);
  const auto optimizer = TensorFile::open(*path / "optimizer.safetensors");
  ASSERT_TRUE(optimizer) << to_string(optimizer.error());
  EXPECT_EQ(optimizer->tensors()[1].name, "step");
}

TEST(CheckpointFiles, WeightsAreCutBetweenTensorsWithAnIndex) {
  const std::vector<TensorSpec> weights{
      {"a", "F32", {10}}, {"b", "F32", {10}}, {"big", "F32", {100}}, {"c", "F32", {1}}};
  const Layout layout = lay_out(weights, std::vector<TensorSpec>{{"m", "F32", {10}}}, 80);
  std::vector<std::string> names;
  for (const Layout::File& file : layout.files) names.push_back(file.name);
  EXPECT_THAT(names, testing::ElementsAre("model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors",
                                          "model-00003-of-00003.safetensors", "optimizer.safetensors"));
  // As transformers writes it: json.dumps(index, indent=2, sort_keys=True) and a line's end.
  EXPECT_EQ(layout.index, R"({
  "metadata": {
    "total_size": 484
  },
  "weight_map": {
    "a": "model-00001-of-00003.safetensors",
    "b": "model-00001-of-00003.safetensors",
    "big": "model-00002-of-00003.safetensors",
    "c": "model-00003-of-00003.safetensors"
  }
}
)");
  const WeightsFolder folder("checkpoint_index");
  const auto path = save(folder.path(), 1, layout, 1);
  ASSERT_TRUE(path) << to_string(path.error());
  EXPECT_EQ(text_of(*path / kIndexFile), layout.index);
  std::int64_t bytes = 0;
  for (const auto& [name, text] : files_of(*path))
    if (name.find("safetensors") != std::string::npos) bytes += static_cast<std::int64_t>(text.size());
  EXPECT_EQ(bytes, layout.bytes);
}

TEST(CheckpointFiles, NeighboursInOrderAreOnePieceUpToTheBorder) {
  std::vector<TensorSpec> biases;
  for (int i = 0; i < 500; ++i) biases.push_back({"bias." + std::to_string(i), "F32", {16}});
  const WeightsFolder folder("checkpoint_pieces");
  const auto path = save(folder.path(), 1, lay_out(biases, std::vector<TensorSpec>{{"m", "F32", {600, 1024}}}), 1);
  ASSERT_TRUE(path) << to_string(path.error());
  const auto manifest = read_manifest(*path);
  ASSERT_TRUE(manifest);
  EXPECT_EQ(manifest->files[0].pieces.size(), 2u);  // the header, and all tensors
  EXPECT_EQ(manifest->files[1].pieces.size(), 4u);  // the header, and three MiB begun
}

TEST(CheckpointFiles, TheManifestSaysWhatItWasTold) {
  const WeightsFolder folder("checkpoint_facts");
  const auto path = save(folder.path(), 5, lay_out(std::vector<TensorSpec>{{"a", "F32", {3}}}, {}), 9);
  ASSERT_TRUE(path) << to_string(path.error());
  const auto reader = Reader::open(*path);
  ASSERT_TRUE(reader);
  const Manifest& m = reader->manifest();
  EXPECT_EQ(m.step, 5);
  EXPECT_EQ(m.tokens, manifest_of(9).tokens);
  EXPECT_EQ(m.numbers, manifest_of(9).numbers);
  EXPECT_EQ(m.about, manifest_of(9).about);
  EXPECT_EQ(reader->find("a"), std::optional<std::int32_t>(0));
  EXPECT_EQ(reader->find("b"), std::nullopt);
  EXPECT_EQ(*reader->small_file("config.json"), small_files(9)[0].text);
  EXPECT_EQ(reader->small_file("none").error().code, Errc::no_input);
}

TEST(CheckpointFiles, BytesThatNobodyOrTwoWroteAreNoCheckpoint) {
  const WeightsFolder folder("checkpoint_cover");
  const Layout layout = lay_out(std::vector<TensorSpec>{{"a", "F32", {100}}}, {});
  const auto gap = save(folder.path(), 1, layout, 1, {{{0, 0, 40}}, {{0, 44, 400}}});
  ASSERT_FALSE(gap);
  EXPECT_EQ(gap.error().code, Errc::internal);
  EXPECT_THAT(gap.error().what, HasSubstr("in no piece"));
  const auto twice = save(folder.path(), 1, layout, 1, {{{0, 0, 48}}, {{0, 44, 400}}});
  ASSERT_FALSE(twice);
  EXPECT_THAT(twice.error().what, HasSubstr("in two pieces"));
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(CheckpointFiles, ThreadsReadAtOnceWhatIsThere) {
  const WeightsFolder folder("checkpoint_threads");
  const Layout layout = lay_out(std::vector<TensorSpec>{{"a", "F32", {700'000}}}, {});
  const auto path = save(folder.path(), 1, layout, 4);
  ASSERT_TRUE(path);
  const auto reader = Reader::open(*path);
  ASSERT_TRUE(reader);
  const TensorBytes content = content_of(layout, 4);
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (unsigned seed = 0; seed < 4; ++seed)
    threads.emplace_back([&, seed] {
      std::mt19937 random(seed);
      for (int i = 0; i < 50; ++i) {
        const std::size_t begin = random() % content[0].size();
        std::vector<std::byte> got(random() % (content[0].size() - begin));
        const bool read = reader->read(0, static_cast<std::int64_t>(begin), got).has_value();
        if (!read || !std::equal(got.begin(), got.end(), content[0].begin() + static_cast<std::ptrdiff_t>(begin)))
          ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(CheckpointFiles, PiecesThatAnotherRankSentAreReadOrRefused) {
  const std::vector<FilePieces> pieces{{"a.safetensors", {{0, 5, 17}, {5, 1, ~0ULL}}}, {"b", {}}};
  const std::string text = pack(pieces);
  EXPECT_EQ(*unpack(text), pieces);
  EXPECT_TRUE(unpack("")->empty());
  for (const char* broken : {"a", "a 1\n", "a -1\n", "a 1\n0 5 12\n", "a 1\n0 x 0000000000000000\n"})
    EXPECT_FALSE(unpack(broken)) << broken;
}

// The published vector of XXH3 for no bytes (xxHash, tests/sanity_test_vectors.h), in pieces as at once.
TEST(CheckpointFiles, TheHashIsXxh3) {
  EXPECT_EQ(hash_of(std::string_view()), 0x2D06800538D394C2U);
  const std::string text(1000, 'x');
  RunningHash running;
  for (std::size_t at = 0; at < text.size(); at += 100) running.add(std::as_bytes(std::span(text).subspan(at, 100)));
  EXPECT_EQ(running.value(), hash_of(text));
  EXPECT_EQ(parse_hash(hash_text(0x0123456789abcdefU)), std::optional<std::uint64_t>(0x0123456789abcdefU));
}

}  // namespace
}  // namespace shard::checkpoint
