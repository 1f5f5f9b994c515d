// Where the batches of a loop of one's own come from: a step's own tokens where it brought some, else --data.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "executor/data/source.h"

namespace shardscope {

/// Tokens of the step that runs: rows of sequence + 1, a micro-batch after the other; empty where it brought none.
/// Written between steps.
struct OwnTokens {
  std::span<const std::int32_t> rows{};
};

class StepData final : public shard::DataSource {
 public:
  /// `own` outlives it. `micro_batches`: of a step.
  StepData(std::unique_ptr<shard::DataSource> base, const OwnTokens& own, const shard::BatchShape& shape,
           std::int64_t micro_batches)
      : base_(std::move(base)), own_(own), shape_(shape), micro_batches_(micro_batches) {}

  [[nodiscard]] shard::Result<void> fill(shard::cpu::ThreadPool& pool, std::int64_t number, std::span<std::byte> input,
                                         std::span<std::byte> target) override;
  [[nodiscard]] std::string describe() const override { return base_->describe(); }

 private:
  std::unique_ptr<shard::DataSource> base_;
  const OwnTokens& own_;
  shard::BatchShape shape_;
  std::int64_t micro_batches_;
};

}  // namespace shardscope
