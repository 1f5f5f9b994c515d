// The strategies that bugs are planted into, small ones of two ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/strategy/strategy.h"

namespace shard::plan {

Strategy zero(std::int32_t stage, std::int32_t world = 2, std::int64_t accumulation = 2);
Strategy freezing(std::int32_t stage, std::vector<std::string> patterns, Precision precision = Precision::fp32);
Strategy by_parameter();
Strategy for_gpus();
Strategy for_gpus(Strategy s);
Strategy by_messages(std::int32_t stage);
/// Two ranks share each model, two such pairs the data.
Strategy split_in_two(std::int32_t stage, model::TensorLayout layout = model::TensorLayout::megatron);
Strategy split_and_clipped(std::int32_t stage);
Strategy dropping(Strategy s);
Strategy recomputed();
Strategy in_order_of_arrival();
Strategy clipped(std::int32_t stage);
Strategy scaled(std::int32_t stage, std::int32_t world = 2);
Strategy clipped_sgd();
Strategy on_host(std::int32_t stage);
/// Only one kind of model data away from the device.
Strategy optimizer_on(Share share, Precision precision = Precision::fp32);
Strategy gradients_on_host(std::int32_t stage);
Strategy clipped_gradients_on_host();
Strategy optimizer_clipped_on_host();
Strategy owned(std::int32_t stage);
/// Of one size, or beginning at these parameters.
Strategy chunked(std::vector<std::int32_t> starts);
Strategy kept();
Strategy reused(Ownership ownership = Ownership::split);
Strategy owned_on_host(std::int32_t stage);
Strategy reused_on_host(Ownership ownership = Ownership::split);
Strategy in_buckets();

}  // namespace shard::plan
