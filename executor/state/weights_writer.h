// Writes a model's parameters into a folder as Hugging Face's libraries read them: read again, and named when right.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/ir/plan.h"
#include "traces/base/dtype.h"
#include "traces/base/result.h"
#include "traces/base/units.h"

namespace shard {

struct SavedWeights {
  std::filesystem::path folder;
  Dtype stored = Dtype::f32;                  ///< f32, f16 or bf16, rounded to nearest even
  std::int64_t largest_file = 5'000'000'000;  ///< bytes of tensors in a file, where that has more than one tensor
  std::string config;                         ///< config.json where the folder has none; empty: none
};

/// The files that loaders look for in a folder: model.safetensors, and the index of those that more than one hold.
[[nodiscard]] std::vector<std::filesystem::path> saved_weights_files(const std::filesystem::path& folder);

/// Can they be? Without touching anything: the folder, or the one it is to be made in, can be written to.
/// Errc::cannot_create.
[[nodiscard]] Result<void> can_write_weights(const std::filesystem::path& folder);

/// One rank's part, fed by the digest phase of its plan, which shows every parameter as it comes: nothing is held in
/// memory. The masters are written where there are some. Of ranks that share a model each of the first model's writes
/// its part. Until finish() nothing has a file's name.
class WeightsWriter {
 public:
  /// Of the first rank. Makes the folder where it is absent, and all files with their whole size. The plan outlives
  /// this. Errors: cannot_create.
  [[nodiscard]] static Result<WeightsWriter> create(const SavedWeights& what, const plan::Plan& plan);
  /// Of tensor rank `tensor_rank`, which shares the model with the first: `draft` is that one's. Errors: no_input where
  /// the folder is not seen from here.
  [[nodiscard]] static Result<WeightsWriter> join(const std::filesystem::path& draft, const SavedWeights& what,
                                                  const plan::Plan& plan, std::int32_t tensor_rank);
  WeightsWriter(WeightsWriter&&) noexcept;
  WeightsWriter& operator=(WeightsWriter&&) noexcept;
  /// Without finish() nothing stays, the folder neither if it was made for this; as little after a signal (stop.h).
  /// What stays of a process that is killed is one hidden directory, which the next save into the folder removes.
  ~WeightsWriter();

  [[nodiscard]] const std::filesystem::path& draft() const;

  /// An executor::StateReader. What is not a parameter's value is passed over.
  void add(model::ParamId param, plan::Digest::Content content, std::span<const std::byte> elements);

  /// Behind the phase: what this rank wrote is read again and flushed to the disk. A text for the first rank's check().
  /// Errors: io.
  [[nodiscard]] Result<std::string> finish_part();
  /// Of the first rank, with what every part said: is every byte of every file there, are the headers right? Errors:
  /// io.
  [[nodiscard]] Result<void> check(std::span<const std::string> parts);
  /// Of the first rank: gives the files their names, replacing what had them; files of weights that were there and are
  /// none of these go. Errors: cannot_create, io.
  [[nodiscard]] Result<void> finish();

  /// What is opened: model.safetensors, or the index where there are several files.
  [[nodiscard]] std::filesystem::path path() const;
  [[nodiscard]] std::size_t files() const;  ///< of tensors
  [[nodiscard]] Bytes bytes() const;        ///< of all, the index with them

 private:
  struct State;
  explicit WeightsWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace shard
