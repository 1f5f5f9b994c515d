// What Colossal-AI's Gemini would send, copy and hold: the answer to `simulate --like colossalai-gemini`.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/cluster/verdict.h"
#include "sim/like/gemini_passes.h"
#include "sim/like/ledger.h"
#include "sim/model/graph.h"
#include "sim/strategy/strategy.h"
#include "traces/base/result.h"

namespace shard::like {

/// One training step on one rank. "Model data" as the peer's chunk manager accounts it: fp16 payloads and fp32 masters,
/// without Adam's state.
struct GeminiIteration {
  LedgerMoment after_forward;   ///< sums since the step began
  LedgerMoment after_backward;  ///< the peer's figures for a step end here
  friend bool operator==(const GeminiIteration&, const GeminiIteration&) = default;
};

struct GeminiResult {
  GeminiRules rules{};
  std::string model;
  GeminiOptions options;
  ChunkLayout layout;
  std::int64_t offloaded_chunks = 0;
  double keep_gathered_bytes = 0;
  Bytes rest_device;  ///< model data before the first step
  Bytes rest_host;
  std::vector<GeminiIteration> iterations{};  ///< the first, then steady ones
  Bytes device_peak{};                        ///< everything: creation, copies side by side, Adam's state, activations
  std::string peak_op{};
  std::vector<LedgerHolder> holders{};  ///< at that peak, largest first
  Bytes optimizer_state{};              ///< of this rank, device and host together
  bool with_activations = false;
  std::optional<Bytes> device_capacity{};
  cluster::ByteRange outside{};      ///< of the allocator: context and libraries
  bool fits = true;                  ///< unless its verdict is does_not_fit
  std::vector<std::string> notes{};  ///< for stderr
  [[nodiscard]] cluster::Room room() const { return {.capacity = device_capacity, .outside = outside}; }
  [[nodiscard]] cluster::Verdict verdict() const { return cluster::verdict_of(device_peak, room()); }
};

/// Runs the first step and iterations - 1 steady ones. `name_at_version`: gemini_options.h. Errors: usage (unknown
/// version: the closest and the list), those of check_gemini().
[[nodiscard]] Result<GeminiResult> simulate_gemini(std::string_view name_at_version, const ParameterList& parameters,
                                                   const GeminiOptions& options, std::int32_t iterations = 3,
                                                   std::optional<Bytes> device_capacity = std::nullopt,
                                                   cluster::ByteRange outside = {});

/// The same with the model's own operators and activations; `strategy` has passed plan::check(). Errc::contradiction
/// for accumulation, which the peer does in chunks of its own.
[[nodiscard]] Result<GeminiResult> simulate_gemini(std::string_view name_at_version,
                                                   std::shared_ptr<const model::Model> model,
                                                   const plan::Strategy& strategy, const GeminiOptions& options,
                                                   std::int32_t iterations = 3,
                                                   std::optional<Bytes> device_capacity = std::nullopt,
                                                   cluster::ByteRange outside = {});

}  // namespace shard::like
