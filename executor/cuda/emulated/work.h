// What is put on streams.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "executor/cuda/emulated/activity.h"
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
  EmulatedWork told{};            ///< what is told of it when it has run; nothing of Kind::none

  [[nodiscard]] bool can_run() const { return !hangs && (!ready || ready()); }
};

/// Runs it and tells that; `launched`: the call that launched its graph, 0 where it is in none. `to` may be null.
inline std::optional<Error> run_and_tell(const Step& step, EmulatedActivity* to, std::uint32_t launched) {
  if (to == nullptr || step.told.kind == EmulatedWork::Kind::none) return step.run();
  EmulatedWork work = step.told;
  if (launched != 0) work.correlation = launched;
  work.begin_ns = EmulatedActivity::now_ns();
  auto error = step.run();
  work.end_ns = EmulatedActivity::now_ns();
  to->worked(work);
  return error;
}

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
