// One safetensors file, open for reading at many places.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <utility>
#include <vector>

#include "executor/state/safetensors.h"
#include "traces/base/result.h"

namespace shard {

/// A safetensors file that is open, its header read and checked.
class TensorFile {
 public:
  /// Errors: no_input, io, malformed.
  [[nodiscard]] static Result<TensorFile> open(const std::filesystem::path& path);
  TensorFile(TensorFile&& other) noexcept;
  TensorFile& operator=(TensorFile&&) = delete;
  ~TensorFile();

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] const std::vector<safetensors::Tensor>& tensors() const { return tensors_; }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }
  /// Of the tensors' bytes, from `offset` on. Errors: io; malformed where the file
  /// is shorter than it was.
  [[nodiscard]] Result<void> read(std::int64_t offset, std::span<std::byte> into) const;

 private:
  TensorFile(std::filesystem::path path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  [[nodiscard]] Result<void> read_at(std::int64_t offset, std::span<std::byte> into) const;

  std::filesystem::path path_;
  int descriptor_ = -1;
  std::int64_t bytes_ = 0;  ///< when it was opened
  std::int64_t data_begin_ = 0;
  std::vector<safetensors::Tensor> tensors_;
};

}  // namespace shard
