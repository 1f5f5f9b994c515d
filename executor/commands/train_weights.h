// Weights of `shardscope train`: the options, what is checked before any rank starts, and a rank's part in reading and
// saving them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "executor/comm/communicator.h"
#include "executor/state/weights.h"
#include "executor/state/weights_writer.h"
#include "executor/train/session.h"
#include "sim/cli/command_line.h"
#include "traces/base/dtype.h"

namespace shard::commands {

struct WeightOptions {
  std::string read;  ///< empty: parameters are drawn
  std::string save;  ///< a folder; empty: nothing is saved
  Dtype saved_dtype = Dtype::f32;
  Bytes largest_file{5'000'000'000};
};

/// Declare --weights, and --save-weights, --weights-dtype and --max-shard-size.
void add_read_weights_option(cli::Group& group, WeightOptions& options);
void add_save_weights_options(cli::Group& group, WeightOptions& options);

/// Finds every parameter in the files; null without --weights. Errors: Weights::open's.
[[nodiscard]] Result<std::shared_ptr<const Weights>> open_weights(const WeightOptions& options,
                                                                  const model::Model& model);
/// Can they be saved where and how that is asked for? Contradiction (78): a dtype or a size for nothing; cannot_create
/// (73).
[[nodiscard]] Result<void> check_save(const cli::Command& command, const WeightOptions& options);

/// What a run says of weights.
struct WeightsReport {
  std::string read;  ///< Weights::describe(); empty: none
  std::int64_t tensors = 0;
  std::string saved;  ///< the file, or the index of several; empty: none
  std::size_t saved_files = 0;
  Bytes saved_bytes{0};
};

/// One rank's reading and saving; outlives the session that it is told to.
class RankWeights {
 public:
  /// `read` may be null. Rank 0 makes the files of what is saved, and ranks that share its model open them; `config`:
  /// the model's, to lie beside them. All ranks call it: contradiction (78) where their files differ.
  [[nodiscard]] static Result<std::unique_ptr<RankWeights>> start(const WeightOptions& options,
                                                                  std::shared_ptr<const Weights> read,
                                                                  const std::string& config, const plan::Plan& plan,
                                                                  Communicator& communicator);
  /// Sets the session's first values and its reader of state. Values that are not finite end the session (malformed:
  /// file, tensor and element), but where it keeps going.
  void tell(train::SessionOptions& session);
  [[nodiscard]] Bytes read_bytes() const { return read_bytes_; }  ///< of files, by this rank
  /// Behind the run, on all ranks: what was saved is on the disk and right, and not yet under its name.
  [[nodiscard]] Result<void> check(Communicator& communicator);
  /// On rank 0: gives it its name.
  [[nodiscard]] Result<void> finish();
  [[nodiscard]] WeightsReport report() const;

 private:
  RankWeights() = default;
  std::shared_ptr<const Weights> read_;
  std::optional<WeightsWriter> writer_;
  Bytes read_bytes_{0};
  std::int32_t rank_ = 0;
};

}  // namespace shard::commands
