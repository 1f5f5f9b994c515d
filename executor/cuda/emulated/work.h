// What is put on streams.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "executor/cuda/emulated/op_record.h"
#include "traces/base/result.h"

namespace shard::cuda::emulated {

/// A kernel, a product, a copy, a fill, a call of the host or a transfer.
struct Step {
  Op op{};  ///< whose; never null
  std::vector<Access> accesses{};
  std::function<std::optional<Error>()> run{};
  bool hangs = false;             ///< planted: it never finishes
  std::function<bool()> ready{};  ///< whether it can run, asked once its turn has come and until it can; null: at once

  [[nodiscard]] bool can_run() const { return !hangs && (!ready || ready()); }
};

/// How much of each stream is known to be finished: by stream, a number of pieces of work.
using Clock = std::vector<std::int64_t>;

struct Capture;

/// What an event stands for.
struct Moment {
  bool done = false;
  double seconds = 0;                  ///< of the steady clock, once done
  Clock clock{};                       ///< what is finished once this is
  std::shared_ptr<Capture> capture{};  ///< where it was recorded in one
  std::vector<std::int32_t> nodes{};   ///< of the capture
};

}  // namespace shard::cuda::emulated
