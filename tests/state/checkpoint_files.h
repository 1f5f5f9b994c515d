// Checkpoints that a test saves: tensors of known bytes, divided among parts as a test says.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "executor/state/checkpoint/draft.h"
#include "executor/state/checkpoint/part.h"
#include "executor/state/checkpoint/reader.h"

namespace shard::test {

using TensorBytes = std::vector<std::vector<std::byte>>;

/// What each tensor of a layout holds; another seed is another content.
inline TensorBytes content_of(const checkpoint::Layout& layout, std::uint32_t seed) {
  std::mt19937 random(seed);
  TensorBytes content;
  for (const checkpoint::Layout::Place& place : layout.places) {
    content.emplace_back(static_cast<std::size_t>(place.bytes));
    for (std::byte& b : content.back()) b = static_cast<std::byte>(random());
  }
  return content;
}

/// What one part writes.
struct Range {
  std::int32_t tensor = 0;
  std::int64_t begin = 0, end = 0;
};

/// All of every tensor, in order.
inline std::vector<std::vector<Range>> by_one(const checkpoint::Layout& layout) {
  std::vector<Range> all;
  for (std::size_t t = 0; t < layout.places.size(); ++t)
    all.push_back({static_cast<std::int32_t>(t), 0, layout.places[t].bytes});
  return {all};
}

inline checkpoint::Manifest manifest_of(std::uint32_t seed) {
  return {.step = 0,
          .tokens = 4096 + seed,
          .micro_batches = 4,
          .numbers = {{"seed", std::to_string(seed)}},
          .about = {{"model", "a \"quoted\" name, \xc3\xa9\n"}},
          .files = {}};
}

/// Into a draft, as ranks do, up to the manifest of the pieces.
inline Result<checkpoint::Manifest> write_parts(const checkpoint::Draft& draft, const checkpoint::Layout& layout,
                                                const TensorBytes& content, std::uint32_t seed,
                                                const std::vector<std::vector<Range>>& parts) {
  checkpoint::Manifest manifest = manifest_of(seed);
  for (const std::vector<Range>& ranges : parts) {
    Result<checkpoint::Part> part = checkpoint::Part::open(draft.path(), layout);
    if (!part) return part.error();
    for (const Range& range : ranges) {
      const std::span<const std::byte> all = content[static_cast<std::size_t>(range.tensor)];
      const auto bytes =
          all.subspan(static_cast<std::size_t>(range.begin), static_cast<std::size_t>(range.end - range.begin));
      if (Result<void> written = part->write(range.tensor, range.begin, bytes); !written) return written.error();
    }
    const Result<std::vector<checkpoint::FilePieces>> pieces = part->finish();
    if (!pieces) return pieces.error();
    const auto sent = checkpoint::unpack(checkpoint::pack(*pieces));
    if (!sent) return sent.error();
    add_pieces(manifest, *sent);
  }
  return manifest;
}

inline std::vector<checkpoint::SmallFile> small_files(std::uint32_t seed) {
  return {{"config.json", "{\"seed\": " + std::to_string(seed) + "}\n"}, {"empty", ""}};
}

inline Result<std::filesystem::path> save(const std::filesystem::path& dir, std::int64_t step,
                                          const checkpoint::Layout& layout, std::uint32_t seed,
                                          const std::vector<std::vector<Range>>& parts) {
  Result<checkpoint::Draft> draft = checkpoint::Draft::create(dir, step, layout, small_files(seed));
  if (!draft) return draft.error();
  Result<checkpoint::Manifest> manifest = write_parts(*draft, layout, content_of(layout, seed), seed, parts);
  if (!manifest) return manifest.error();
  if (Result<void> done = draft->commit(std::move(*manifest)); !done) return done.error();
  return draft->name();
}
inline Result<std::filesystem::path> save(const std::filesystem::path& dir, std::int64_t step,
                                          const checkpoint::Layout& layout, std::uint32_t seed) {
  return save(dir, step, layout, seed, by_one(layout));
}

inline std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Every file's name and text.
inline std::map<std::string, std::string> texts_in(const std::filesystem::path& folder) {
  std::map<std::string, std::string> texts;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    texts[entry.path().filename().string()] = text_of(entry.path());
  return texts;
}

/// Names in a folder that are hidden.
inline std::vector<std::string> hidden_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().filename().string().starts_with('.')) names.push_back(entry.path().filename().string());
  return names;
}

/// What all tensors read as; the first error.
inline Result<TensorBytes> read_all(const std::filesystem::path& path) {
  Result<checkpoint::Reader> reader = checkpoint::Reader::open(path);
  if (!reader) return reader.error();
  TensorBytes content;
  for (std::int32_t t = 0; t < reader->tensors(); ++t) {
    content.emplace_back(static_cast<std::size_t>(reader->tensor(t).end - reader->tensor(t).begin));
    if (Result<void> read = reader->read(t, 0, content.back()); !read) return read.error();
  }
  return content;
}

/// How many trials a test made; its property `trials`, which tests/faults adds up.
class Trials {
 public:
  void one_more() { ++count_; }
  /// Before the test ends.
  void record() const { testing::Test::RecordProperty("trials", count_); }

 private:
  int count_ = 0;
};

}  // namespace shard::test
