// Training data, and in its place what a run is evaluated on.
#pragma once

#include <memory>

#include "executor/data/source.h"

namespace shard {

/// One thread, as any source.
class TrainingAndValidation final : public DataSource {
 public:
  TrainingAndValidation(std::unique_ptr<DataSource> training, std::unique_ptr<DataSource> validation)
      : training_(std::move(training)), validation_(std::move(validation)) {}

  /// From here on micro-batches are those of validation, which number them from 0 as well, or of training.
  void use_validation(bool yes) { now_ = yes ? validation_.get() : training_.get(); }

  [[nodiscard]] Result<void> fill(cpu::ThreadPool& pool, std::int64_t number, std::span<std::byte> input,
                                  std::span<std::byte> target) override {
    return now_->fill(pool, number, input, target);
  }
  /// Of training.
  [[nodiscard]] std::string describe() const override { return training_->describe(); }

 private:
  std::unique_ptr<DataSource> training_;
  std::unique_ptr<DataSource> validation_;
  DataSource* now_ = training_.get();
};

}  // namespace shard
