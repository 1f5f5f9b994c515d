// Writes a model's parameters as model.safetensors: read again, and given its name when it is right.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "sim/ir/plan.h"
#include "traces/base/dtype.h"
#include "traces/base/result.h"
#include "traces/base/units.h"

namespace shard {

/// The file that is written into a folder.
[[nodiscard]] std::filesystem::path weights_file_in(const std::filesystem::path& folder);

/// Can it be? Without touching anything: the folder, or the one it is to be made in, can be written to.
/// Errc::cannot_create.
[[nodiscard]] Result<void> can_write_weights(const std::filesystem::path& folder);

/// Fed by the digest phase of the plan of the first rank, which shows every parameter whole, as it comes: nothing is
/// held in memory. The masters are written where there are some. Until finish() nothing has the file's name.
class WeightsWriter {
 public:
  /// Makes the folder where it is absent. `stored`: f32, f16 or bf16, rounded to nearest even. The plan outlives this;
  /// its model is whole. Errors: cannot_create.
  [[nodiscard]] static Result<WeightsWriter> create(const std::filesystem::path& folder, const plan::Plan& plan,
                                                    Dtype stored);
  WeightsWriter(WeightsWriter&&) noexcept;
  WeightsWriter& operator=(WeightsWriter&&) noexcept;
  /// Without finish() nothing stays, the folder neither if it was made for this. What stays of a process that is killed
  /// is said at OutputFile, and the folder.
  ~WeightsWriter();

  /// An executor::StateReader. What is not a parameter's value is passed over.
  void add(model::ParamId param, plan::Digest::Content content, std::span<const std::byte> elements);

  /// Behind the phase: flushed to the disk, and read again: header and every byte. Errors: io.
  [[nodiscard]] Result<void> check();
  /// Gives it its name, replacing what had it. Errors: cannot_create, io.
  [[nodiscard]] Result<void> finish();

  [[nodiscard]] std::filesystem::path path() const;
  [[nodiscard]] Bytes bytes() const;  ///< of the whole file

 private:
  struct State;
  explicit WeightsWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace shard
