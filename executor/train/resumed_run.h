// A run that goes on where a checkpoint of it, or of one like it, stands.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "executor/state/checkpoint/reader.h"
#include "executor/train/checkpoint_tensors.h"
#include "executor/train/session.h"

namespace shard::train {

/// What the numbers of a run depend on that the checkpoint's run has otherwise, in words: "precision fp32, now bf16".
[[nodiscard]] std::vector<std::string> differences(const std::vector<checkpoint::Fact>& saved,
                                                   const std::vector<checkpoint::Fact>& now);

/// One rank's. Reads what the rank keeps and no other tensor's bytes, apart from what shares a hash with it.
class ResumedRun {
 public:
  /// `folder`: a checkpoint, or a folder of them, of which the newest complete one is taken. `inexact`: state that the
  /// checkpoint lacks begins as a new run's does. Errors: those of Reader; contradiction where a tensor is missing or
  /// has another shape or type.
  [[nodiscard]] static Result<std::shared_ptr<const ResumedRun>> open(const std::filesystem::path& folder,
                                                                      const model::Model& model,
                                                                      const plan::Strategy& strategy, bool inexact);

  [[nodiscard]] const checkpoint::Manifest& manifest() const { return reader_.manifest(); }
  [[nodiscard]] const std::filesystem::path& path() const { return reader_.path(); }
  /// The session begins with the checkpoint's state, behind its steps. Outlives the session.
  void tell(SessionOptions& session) const;
  /// Read from the files so far, by this rank.
  [[nodiscard]] Bytes read_bytes() const { return Bytes{reader_.bytes_read()}; }

 private:
  explicit ResumedRun(checkpoint::Reader reader) : reader_(std::move(reader)) {}
  [[nodiscard]] Result<void> find_tensors(const CheckpointTensors& wanted, bool inexact);
  [[nodiscard]] Result<void> values(model::ParamId param, std::int64_t first, std::span<float> values) const;
  [[nodiscard]] Result<void> state(model::ParamId param, plan::StateContent content, std::int64_t first,
                                   std::span<std::byte> elements) const;

  checkpoint::Reader reader_;
  CheckpointTensors tensors_{};  ///< numbers are the file's; -1: it has none
};

}  // namespace shard::train
