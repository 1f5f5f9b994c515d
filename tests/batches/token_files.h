// Token files as other tools write them, made by hand from their layouts.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "executor/data/source.h"
#include "sim/model/read_model.h"

namespace shard::test {

namespace fs = std::filesystem;

/// A folder of the test's own, gone behind it.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "batches.XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { fs::remove_all(path_); }
  [[nodiscard]] fs::path operator/(const std::string& name) const { return path_ / name; }
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

inline void write(const fs::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

template <class T>
std::vector<T> counting(std::int64_t count, std::int64_t from = 0) {
  std::vector<T> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(static_cast<T>(from + i));
  return values;
}

/// llm.c's header of 256 int32.
inline std::string llmc_header(std::int32_t magic, std::int32_t version, std::int32_t tokens) {
  std::vector<std::int32_t> head(256, 0);
  head[0] = magic;
  head[1] = version;
  head[2] = tokens;
  return bytes_of(head);
}

/// Megatron-LM's index of sequences of these lengths, every one of them a document.
inline std::string megatron_index(std::uint8_t code, std::int64_t width, const std::vector<std::int32_t>& lengths) {
  std::vector<std::int64_t> pointers;
  std::vector<std::int64_t> documents{0};
  std::int64_t at = 0;
  for (const std::int32_t length : lengths) {
    pointers.push_back(at);
    at += length * width;
    documents.push_back(static_cast<std::int64_t>(pointers.size()));
  }
  return std::string("MMIDIDX\0\0", 9) + bytes_of<std::uint64_t>({1}) + static_cast<char>(code) +
         bytes_of<std::uint64_t>({lengths.size(), documents.size()}) + bytes_of(lengths) + bytes_of(pointers) +
         bytes_of(documents);
}

inline const model::Model& gpt2_of(std::int64_t vocabulary) {
  static std::vector<std::pair<std::int64_t, model::Model>> known;
  for (const auto& [v, model] : known)
    if (v == vocabulary) return model;
  const Folder folder;
  write(folder / "config.json", R"({"model_type": "gpt2", "n_embd": 8, "n_head": 1, "n_layer": 1, "n_positions": 64, "vocab_size": )" +
                                    std::to_string(vocabulary) + "}");
  known.reserve(16);
  return known.emplace_back(vocabulary, *model::read_model((folder / "config.json").string())).second;
}

/// The tokens of micro-batch `number`: those of each sequence and its last target.
inline Result<std::vector<std::vector<std::int32_t>>> micro_batch(DataSource& source, const BatchShape& shape,
                                                                  std::int64_t number) {
  cpu::ThreadPool pool(1);
  std::vector<std::int32_t> in(static_cast<std::size_t>(shape.batch * shape.sequence));
  std::vector<std::int32_t> out(in.size());
  if (Result<void> r = source.fill(pool, number, std::as_writable_bytes(std::span(in)),
                                   std::as_writable_bytes(std::span(out)));
      !r)
    return r.error();
  std::vector<std::vector<std::int32_t>> sequences;
  for (std::int64_t b = 0; b < shape.batch; ++b) {
    const auto first = in.begin() + b * shape.sequence;
    sequences.emplace_back(first, first + shape.sequence);
    sequences.back().push_back(out[static_cast<std::size_t>((b + 1) * shape.sequence - 1)]);
  }
  return sequences;
}

}  // namespace shard::test
