// --like first, then the configuration, then what people train with.
#include "sim/commands/whose_memory.h"

#include <string_view>
#include <vector>

namespace shard::commands {
namespace {

/// What a Hugging Face model is trained with where nobody says.
std::string_view usual_framework(const plan::Strategy& strategy) {
  if (strategy.world_size <= 1) return "pytorch";
  if (strategy.stage == 0) return "ddp";
  return strategy.stage == 3 ? "fsdp2" : "deepspeed";
}

const like::Framework* row_of(const std::vector<const like::Framework*>& named, const model::Model* model) {
  if (named.empty()) return nullptr;
  return model == nullptr ? named.front() : like::framework_for(named, *model);
}

}  // namespace

Result<WhoseMemory> whose_memory(const std::string& like, const std::string& configured,
                                 const cluster::Cluster& cluster, const model::Model* model,
                                 const plan::Strategy& strategy) {
  if (like == like::kOwnName) return WhoseMemory{.framework = nullptr, .asked = true};
  if (!like.empty()) {
    const std::vector<const like::Framework*> named = like::named_frameworks(like);
    if (named.empty()) return like::unknown_framework(like);
    return WhoseMemory{.framework = row_of(named, model), .asked = true};
  }
  if (cluster.device != cluster::DeviceKind::cuda) return WhoseMemory{};
  if (!configured.empty()) return WhoseMemory{.framework = row_of(like::named_frameworks(configured), model)};
  if (model == nullptr || model->class_name.empty()) return WhoseMemory{};
  return WhoseMemory{.framework = row_of(like::named_frameworks(usual_framework(strategy)), model)};
}

}  // namespace shard::commands
