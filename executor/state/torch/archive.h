// What torch.save writes: a zip of a pickle, which says what there is, and of the storages with tensors' bytes.
//
// Source of the form: torch/serialization.py and caffe2/serialize/inline_container.cc of PyTorch. Entries are
// NAME/data.pkl, NAME/byteorder, NAME/version and NAME/data/KEY for each storage; the pickle's persistent identifiers
// are ("storage", class, KEY, device, elements).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "traces/base/result.h"
#include "traces/import/pickle.h"

namespace shard::torch {

using Pickle = import::PickleReader;
using Value = import::PickleReader::Value;
using Kind = import::PickleReader::Kind;

/// One that is open. Nothing in it is executed. Not synchronised.
class Archive {
 public:
  /// Of a file's bytes from `offset` on, `length` of them (below 0: up to its end). Errors: no_input; malformed, with
  /// what it is instead where that is known; contradiction: a form that is not read (big-endian, TorchScript).
  [[nodiscard]] static Result<std::shared_ptr<Archive>> open(const std::filesystem::path& path, std::int64_t offset = 0,
                                                             std::int64_t length = -1);
  /// Borrows `bytes`; `label` names them in errors.
  [[nodiscard]] static Result<std::shared_ptr<Archive>> memory(std::span<const std::byte> bytes,
                                                               std::string_view label);
  ~Archive();

  [[nodiscard]] const Pickle& pickle() const;
  [[nodiscard]] Value root() const { return pickle().result(); }
  /// For errors: the file, and the byte where it is a stretch of one.
  [[nodiscard]] const std::string& where() const;

  /// Of a storage, by its key; -1 where there is none.
  [[nodiscard]] std::int64_t storage_bytes(std::string_view key) const;
  /// Bytes of a storage from `offset` on. Cheapest where each call begins where the one before it ended. Errors:
  /// malformed where there are not so many, or the zip's checksum is another.
  [[nodiscard]] Result<void> read(std::string_view key, std::int64_t offset, std::span<std::byte> into);
  /// Closes the file; the next read() opens it again.
  void rest();

 private:
  struct State;
  explicit Archive(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace shard::torch
