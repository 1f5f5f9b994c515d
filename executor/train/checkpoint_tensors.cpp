// Names, types and shapes; shapes are those of the whole model.
#include "executor/train/checkpoint_tensors.h"

#include <string>
#include <utility>

#include "executor/state/safetensors.h"

namespace shard::train {
CheckpointTensors checkpoint_tensors(const model::Model& model, const plan::Strategy& strategy) {
  CheckpointTensors t;
  const auto parameters = static_cast<std::int32_t>(model.parameters.size());
  const bool moments = strategy.optimizer != plan::OptimizerKind::sgd;
  std::int32_t next = parameters;
  const auto add_state = [&](std::string name, const char* dtype, std::vector<std::int64_t> shape) {
    t.state.push_back({.name = std::move(name), .dtype = dtype, .shape = std::move(shape)});
    return next++;
  };
  for (std::int32_t p = 0; p < parameters; ++p) {
    const Parameter& parameter = model.parameters[static_cast<std::size_t>(p)];
    const bool frozen = model.is_frozen(model::ParamId{p});
    const bool cut = model.split.degree > 1 && model.split.parameters[static_cast<std::size_t>(p)].cut();
    const std::vector<std::int64_t>& shape =
        cut ? model.split.parameters[static_cast<std::size_t>(p)].whole : parameter.shape;
    t.weights.push_back({.name = parameter.name,
                         .dtype = safetensors::dtype_word(frozen ? strategy.storage() : Dtype::f32),
                         .shape = shape});
    t.value.push_back(p);
    const bool stepped = moments && !frozen;
    t.moment[0].push_back(stepped ? add_state(parameter.name + ".exp_avg", "F32", shape) : -1);
    t.moment[1].push_back(stepped ? add_state(parameter.name + ".exp_avg_sq", "F32", shape) : -1);
    t.count.push_back(frozen ? -1 : add_state(parameter.name + ".step", "I32", {}));
  }
  if (strategy.has_scaler()) {
    t.scaler = add_state("loss_scaler.scale", "F32", {});
    add_state("loss_scaler.good_steps", "I32", {});
    add_state("loss_scaler.overflows", "I32", {});
  }
  return t;
}

}  // namespace shard::train
