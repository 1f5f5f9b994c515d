// Batches of a loop of one's own.
#include "executor/api/step_data.h"

#include <cstring>

namespace shardscope {

shard::Result<void> StepData::fill(shard::cpu::ThreadPool& pool, std::int64_t number, std::span<std::byte> input,
                                   std::span<std::byte> target) {
  if (own_.rows.empty()) return base_->fill(pool, number, input, target);
  const std::int64_t bytes = shape_.sequence * static_cast<std::int64_t>(sizeof(std::int32_t));
  const std::int64_t first = number % micro_batches_ * shape_.batch;
  for (std::int64_t b = 0; b < shape_.batch; ++b) {
    const std::int32_t* const row = own_.rows.data() + (first + b) * (shape_.sequence + 1);
    std::memcpy(input.data() + b * bytes, row, static_cast<std::size_t>(bytes));
    std::memcpy(target.data() + b * bytes, row + 1, static_cast<std::size_t>(bytes));
  }
  return {};
}

}  // namespace shardscope
