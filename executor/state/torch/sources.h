// Where the elements of a checkpoint's tensors are: tensors of archives, opened when they are read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "executor/state/torch/archive.h"
#include "executor/state/torch/tensor.h"
#include "traces/base/result.h"

namespace shard::torch {

/// Keeps at most a few files open, however many there are. Not synchronised.
class Sources {
 public:
  Sources();
  ~Sources();
  Sources(Sources&&) noexcept;
  Sources& operator=(Sources&&) noexcept;

  /// A tensor of an archive that is open. Its number.
  std::int32_t add(std::shared_ptr<Archive> archive, Tensor tensor);
  /// An archive whose whole content is one tensor of that shape: bytes of a file, as DCP keeps each. `what` names the
  /// tensor in errors.
  std::int32_t add(const std::filesystem::path& file, std::int64_t offset, std::int64_t length,
                   std::vector<std::int64_t> shape, std::string what);

  /// Elements of a source from number `first` on. Errors: of Archive and tensor_of(); malformed where the tensor is
  /// another than was said.
  [[nodiscard]] Result<void> read(std::int32_t source, std::int64_t first, std::span<float> values);
  /// A source of one number.
  [[nodiscard]] Result<std::int64_t> count(std::int32_t source);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace shard::torch
