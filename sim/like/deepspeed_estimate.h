// What DeepSpeed's own estimators say that a model's states need, beside what they leave out (activations, buckets).
#pragma once

#include <cstdint>
#include <vector>

#include "sim/model/parameters.h"
#include "traces/base/units.h"

namespace shard::like {

/// What the estimators are asked.
struct EstimateQuery {
  int stage = 2;                    ///< 2 or 3
  std::int32_t gpus_per_node = 1;   ///< at least 1
  std::int32_t nodes = 1;           ///< at least 1
  bool offload_optimizer = false;   ///< cpu_offload
  bool offload_parameters = false;  ///< cpu_offload_params: stage 3 with offload_optimizer only
  bool zero_init = true;            ///< stage 3: parameters are born sharded
};

/// Bytes: of one GPU, and of one node's host memory.
struct Estimate {
  EstimateQuery query;
  Bytes gpu{};
  Bytes host{};
};

/// What they know of a model.
struct EstimatedModel {
  Elems parameters{};
  Elems largest_layer{};  ///< the most parameters that one module owns itself
};

[[nodiscard]] EstimatedModel estimated_model(const ParameterList& parameters);

/// As estimate_zero2_model_states_mem_needs and estimate_zero3_model_states_mem_needs of DeepSpeed edaa72212
/// (stage_1_and_2.py, stage3.py) answer with their buffer factor of 1.5, to the byte.
[[nodiscard]] Estimate estimate(const EstimatedModel& model, const EstimateQuery& query);

/// Every answer that their tables show for so many GPUs: stage 2 with and without offload, stage 3 in six ways.
[[nodiscard]] std::vector<Estimate> estimates(const EstimatedModel& model, std::int32_t gpus_per_node,
                                              std::int32_t nodes);

}  // namespace shard::like
