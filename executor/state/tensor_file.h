// One safetensors file, open for reading at many places.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <utility>
#include <vector>

#include "executor/state/safetensors.h"
#include "traces/base/input_file.h"
#include "traces/base/result.h"

namespace shard {

/// A safetensors file that is open, its header read and checked.
class TensorFile {
 public:
  /// Errors: no_input, io, malformed.
  [[nodiscard]] static Result<TensorFile> open(const std::filesystem::path& path);

  [[nodiscard]] const std::filesystem::path& path() const { return file_.path(); }
  [[nodiscard]] const std::vector<safetensors::Tensor>& tensors() const { return tensors_; }
  [[nodiscard]] std::int64_t bytes() const { return file_.bytes(); }
  /// Of the tensors' bytes, from `offset` on. Errors: io; malformed where the file
  /// is shorter than it was.
  [[nodiscard]] Result<void> read(std::int64_t offset, std::span<std::byte> into) const;

 private:
  explicit TensorFile(InputFile file) : file_(std::move(file)) {}
  [[nodiscard]] Result<void> read_at(std::int64_t offset, std::span<std::byte> into) const;

  InputFile file_;
  std::int64_t data_begin_ = 0;
  std::vector<safetensors::Tensor> tensors_;
};

}  // namespace shard
