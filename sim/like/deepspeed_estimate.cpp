// The estimators' arithmetic, in doubles and in their order, since they round as Python does.
#include "sim/like/deepspeed_estimate.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <string_view>

namespace shard::like {
namespace {

constexpr double kBufferFactor = 1.5;

/// int() of Python.
Bytes whole_bytes(double bytes) {
  return Bytes{static_cast<std::int64_t>(bytes)};
}

Estimate of_stage_2(double parameters, const EstimateQuery& q) {
  const double gpus = static_cast<double>(q.gpus_per_node) * q.nodes;
  if (q.offload_optimizer)
    return {q, whole_bytes(2 * parameters), whole_bytes(parameters * std::max(4 * gpus, 16.0) * kBufferFactor)};
  return {q, whole_bytes(2 * parameters) + whole_bytes(18 * parameters / gpus),
          whole_bytes(parameters * 4 * q.gpus_per_node * kBufferFactor)};
}

Estimate of_stage_3(double parameters, double largest_layer, const EstimateQuery& q) {
  const double gpus = static_cast<double>(q.gpus_per_node) * q.nodes;
  const double node_share = 1.0 / q.nodes;
  const double per_node = 4.0 * q.gpus_per_node;
  const auto sharded = [&](double bytes) {  // of a parameter, in host memory
    const double of_parameter = bytes * node_share;
    return q.zero_init ? whole_bytes(parameters * bytes * node_share * kBufferFactor)
                       : whole_bytes(parameters * std::max(per_node, of_parameter) * kBufferFactor);
  };
  const Bytes layer = whole_bytes(4 * largest_layer);
  if (q.offload_optimizer && q.offload_parameters) return {q, layer, sharded(18)};
  if (q.offload_optimizer) return {q, layer + whole_bytes(2 * parameters / gpus), sharded(16)};
  return {q, layer + whole_bytes(18 * parameters / gpus),
          whole_bytes((q.zero_init ? largest_layer : parameters) * per_node * kBufferFactor)};
}

}  // namespace

EstimatedModel estimated_model(const ParameterList& parameters) {
  EstimatedModel model{.parameters = total_elems(parameters), .largest_layer = {}};
  std::map<std::string_view, Elems> of_module;
  for (const Parameter& p : parameters) {
    Elems& own = of_module[module_name(p.name)];
    own += p.elems;
    model.largest_layer = std::max(model.largest_layer, own);
  }
  return model;
}

Estimate estimate(const EstimatedModel& model, const EstimateQuery& query) {
  assert((query.stage == 2 || query.stage == 3) && query.gpus_per_node > 0 && query.nodes > 0);
  assert(!query.offload_parameters || (query.stage == 3 && query.offload_optimizer));
  const auto parameters = static_cast<double>(model.parameters.count());
  if (query.stage == 2) return of_stage_2(parameters, query);
  return of_stage_3(parameters, static_cast<double>(model.largest_layer.count()), query);
}

std::vector<Estimate> estimates(const EstimatedModel& model, std::int32_t gpus_per_node, std::int32_t nodes) {
  std::vector<Estimate> all;
  const auto add = [&](EstimateQuery query) {
    query.gpus_per_node = gpus_per_node;
    query.nodes = nodes;
    all.push_back(estimate(model, query));
  };
  for (const bool offload : {true, false}) add({.stage = 2, .offload_optimizer = offload});
  for (const bool parameters : {true, false})
    for (const bool zero_init : {true, false})
      add({.stage = 3, .offload_optimizer = true, .offload_parameters = parameters, .zero_init = zero_init});
  for (const bool zero_init : {true, false}) add({.stage = 3, .zero_init = zero_init});
  return all;
}

}  // namespace shard::like
