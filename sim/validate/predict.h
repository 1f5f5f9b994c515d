// The memory that a framework takes for a published run: what `simulate --like` says of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/validate/machine.h"
#include "sim/validate/published_run.h"
#include "traces/base/units.h"
#include "traces/base/word.h"

namespace shard::validate {

/// Why a run's memory is not predicted.
enum class NotPredicted : std::uint8_t {
  mixture,
  no_decoder,
  sizes,
  pipeline,
  context,
  framework,
  code,
  compile,
  recompute,
  float8,
  adapter,
  optimizer,
  offload,
  loss,
  rules,  ///< those of the framework, which say what they lack
};
[[nodiscard]] Word word(NotPredicted v);

/// Of the rank that holds most.
struct Prediction {
  Bytes states;     ///< parameters, gradients and optimizer states
  Bytes allocated;  ///< peak of steady steps, by PyTorch's allocator
  Bytes active;
  Bytes reserved;
  Bytes outside;  ///< of the allocator: context and communicators
  bool fits = true;
  [[nodiscard]] Bytes of(MemoryKind kind) const;
};

/// One of the two.
struct Predicted {
  std::optional<Prediction> memory;
  NotPredicted reason = NotPredicted::rules;
  std::string detail;  ///< what the rules lack
};

[[nodiscard]] Predicted predict(const PublishedRun& run, const RunMachine& machine);

}  // namespace shard::validate
