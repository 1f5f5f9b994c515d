// Reads a DeepSpeed configuration: keys that say something only together.
#include <algorithm>
#include <cmath>
#include <optional>

#include "sim/foreign/batches.h"
#include "sim/foreign/deepspeed.h"

namespace shard::foreign {
namespace {

constexpr double kMebibyte = 1 << 20;
/// What our option takes at most, a tebibyte.
constexpr double kMostMib = 1 << 20;
constexpr std::int64_t kMicroOfTrainer = 8;

std::optional<Leaf> leaf_at(const Reading& reading, const char* pointer) {
  const Value* const value = pointer == nullptr ? nullptr : reading.root().at(pointer);
  if (value == nullptr) return std::nullopt;
  return Leaf{pointer, value};
}

/// A switch; nothing where it is absent. "auto" is off.
Result<std::optional<bool>> flag_at(Reading& reading, const char* pointer) {
  const std::optional<Leaf> leaf = leaf_at(reading, pointer);
  if (!leaf) return std::optional<bool>{};
  if (leaf->value->kind == Kind::null) {
    reading.leave(pointer, "not set");
    return std::optional<bool>{};
  }
  if (is_auto(*leaf->value)) return std::optional(false);
  const std::optional<bool> flag = flag_in(*leaf->value);
  if (!flag) return reading.wrong_kind(*leaf, "true or false");
  return flag;
}

Result<void> settle_precision(Reading& reading) {
  const char* const keys[] = {"/fp16/enabled", "/bf16/enabled", "/bfloat16/enabled"};
  std::optional<Leaf> on;
  for (const char* key : keys) {
    const Result<std::optional<bool>> flag = flag_at(reading, key);
    if (!flag) return flag.error();
    const std::optional<Leaf> leaf = leaf_at(reading, key);
    if (!leaf || !*flag) continue;
    reading.understand(key);
    if (!**flag) continue;  // "auto" follows the option that is given, else the model's own type
    if (on && std::string_view(key).starts_with("/bf") && on->pointer.starts_with("/fp"))
      return reading.refused(*leaf, on->pointer + " is true as well, and parameters have one precision",
                             "leave one of the two out");
    on = leaf;
    const Setting* const before = reading.setting("precision");
    const std::string chosen_key = before == nullptr ? "" : before->pointer;
    reading.set(*leaf, "precision", std::string_view(key) == "/fp16/enabled" ? "fp16" : "bf16");
    if (!chosen_key.empty()) reading.understand(chosen_key);
  }
  return {};
}

/// Sets an option of the loss scaler where there is one.
Result<void> scaler_number(Reading& reading, const char* pointer, std::string_view option, bool has_scaler,
                           bool is_power) {
  const std::optional<Leaf> leaf = leaf_at(reading, pointer);
  if (!leaf) return {};
  if (leaf->value->kind == Kind::null || is_auto(*leaf->value))
    return reading.leave(pointer, "not set"), Result<void>();
  const std::optional<double> number = number_in(*leaf->value);
  if (!number) return reading.wrong_kind(*leaf, "a number");
  if (*number < 0) return reading.refused(*leaf, "it is not below 0", "0");
  if (!has_scaler) return reading.leave(pointer, "of the loss scale, and only fp16 has one"), Result<void>();
  if (is_power && *number > 90) return reading.refused(*leaf, "no scale is so large", "16");
  const double value = is_power ? std::exp2(*number) : *number;
  const bool whole = option == "growth-interval" || option == "hysteresis";
  if (option == "growth-interval" && value < 1) return reading.refused(*leaf, "a window has at least one step", "1000");
  if (whole ? value > 1e9 : value < 1e-30 || value > 1e30)
    return reading.leave(pointer, "beyond what --" + std::string(option) + " takes"), Result<void>();
  reading.set(*leaf, option, whole ? std::to_string(static_cast<std::int64_t>(value)) : number_text(value));
  return {};
}

Result<void> settle_scaler(Reading& reading) {
  bool has_scaler = precision_in_force(reading) == "fp16";
  if (const std::optional<Leaf> fixed = leaf_at(reading, "/fp16/loss_scale")) {
    const std::optional<double> scale = number_in(*fixed->value);
    if (fixed->value->kind == Kind::null || is_auto(*fixed->value))
      reading.leave(fixed->pointer, "not set");
    else if (!scale)
      return reading.wrong_kind(*fixed, "a number");
    else if (*scale < 0)
      return reading.refused(*fixed, "it is not below 0", "0, for a scale that moves");
    else if (*scale == 0)
      reading.understand(fixed->pointer);
    else
      reading.leave(fixed->pointer, "a loss scale that stays is not modelled: it moves here");
  }
  struct Knob {
    const char* pointer;
    std::string_view option;
    bool is_power;
  };
  constexpr Knob kKnobs[] = {{"/fp16/initial_scale_power", "initial-scale", true},
                             {"/fp16/loss_scale_window", "growth-interval", false},
                             {"/fp16/hysteresis", "hysteresis", false},
                             {"/fp16/min_loss_scale", "min-scale", false}};
  for (const Knob& knob : kKnobs)
    if (Result<void> ok = scaler_number(reading, knob.pointer, knob.option, has_scaler, knob.is_power); !ok) return ok;
  const auto number = [&](std::string_view option, double otherwise) {
    const std::optional<std::string> text = reading.in_force(option);
    return text ? number_in(text_value(*text, 0)).value_or(otherwise) : otherwise;
  };
  if (reading.setting("min-scale") != nullptr && number("min-scale", 0) > number("initial-scale", 65536))
    reading.drop("min-scale", "above the scale of the first step");
  return {};
}

/// Which memory an offload key names: "", "host" or "disk".
Result<std::string> memory_at(Reading& reading, const char* device, std::initializer_list<const char*> flags) {
  for (const char* flag : flags) {
    const Result<std::optional<bool>> on = flag_at(reading, flag);
    if (!on) return on.error();
    if (*on) reading.understand(flag);
    if (*on && **on && !leaf_at(reading, device)) return std::string("host");
  }
  const std::optional<Leaf> leaf = leaf_at(reading, device);
  if (!leaf) return std::string();
  reading.understand(device);
  if (leaf->value->kind == Kind::null || is_auto(*leaf->value)) return std::string();
  if (leaf->value->kind != Kind::text) return reading.wrong_kind(*leaf, "none, cpu or nvme");
  const std::string name = lower(leaf->value->text);
  if (name == "cpu") return std::string("host");
  if (name == "nvme") return std::string("disk");
  if (name == "none" || name.empty()) return std::string();
  if (name == "gpu" || name == "cuda") {
    reading.leave(device, "no device that DeepSpeed knows (none, cpu, nvme): taken as none");
    return std::string();
  }
  return reading.refused(*leaf, "DeepSpeed offloads to cpu or nvme", "cpu");
}

/// The leaf behind an offload: the device, or the first of the older flags.
std::optional<Leaf> cause_of(const Reading& reading, std::initializer_list<const char*> pointers) {
  for (const char* pointer : pointers)
    if (const std::optional<Leaf> leaf = leaf_at(reading, pointer)) return leaf;
  return std::nullopt;
}

/// Where the optimizer rests: "host", or the fraction that stays. An Error where the ratio is none.
Result<std::string> share_of(Reading& reading, const char* ratio_key, std::string where) {
  const std::optional<Leaf> ratio = leaf_at(reading, ratio_key);
  if (!ratio) return where;
  const std::optional<double> share = number_in(*ratio->value);
  if (!share) return reading.wrong_kind(*ratio, "a number");
  if (!(*share >= 0 && *share <= 1)) return reading.refused(*ratio, "a fraction is between 0 and 1", "1.0");
  if (*share < 1 && stage_in_force(reading) != 3) {
    reading.leave(ratio_key, "DeepSpeed splits the optimizer in stage 3 alone");
    return where;
  }
  reading.understand(ratio_key);
  return where == "host" && *share < 1 ? number_text(1 - *share) : where;
}

Result<void> settle_optimizer_offload(Reading& reading, const OffloadKeys& keys) {
  const Result<std::string> memory = memory_at(reading, keys.optimizer, {keys.optimizer_flag});
  if (!memory) return memory.error();
  const std::optional<Leaf> path = leaf_at(reading, keys.path);
  if (memory->empty() || stage_in_force(reading) == 0) {
    if (const auto cause = cause_of(reading, {keys.optimizer, keys.optimizer_flag}); cause && !memory->empty())
      reading.leave(cause->pointer, "DeepSpeed offloads what ZeRO shards, and stage 0 shards nothing");
    if (path) reading.leave(keys.path, "nothing is offloaded to it");
    if (leaf_at(reading, keys.ratio)) reading.leave(keys.ratio, "nothing is offloaded");
    return {};
  }
  const Leaf cause = *cause_of(reading, {keys.optimizer, keys.optimizer_flag});
  const Result<std::string> where = share_of(reading, keys.ratio, *memory);
  if (!where) return where.error();
  reading.set(cause, "optimizer-placement", *where);
  // Gradients go where they are stepped.
  reading.set(cause, "grad-placement", *where == "disk" ? "host" : *where);
  if (*where != "disk") {
    if (path) reading.leave(keys.path, "nothing is offloaded to it");
    return {};
  }
  const bool named = path && path->value->kind == Kind::text && !path->value->text.empty();
  if (path && !named) reading.leave(keys.path, "not set");
  reading.set(named ? *path : cause, "disk-path", named ? path->value->text : "/local_nvme",
              named ? Certainty::stated : Certainty::assumed);
  return {};
}

/// Of what the optimizer's offload puts on the host, where there is one.
Result<void> settle_pinning(Reading& reading, const OffloadKeys& keys) {
  for (const char* const key : keys.pin) {
    const Result<std::optional<bool>> pinned = flag_at(reading, key);
    if (!pinned) return pinned.error();
    if (!*pinned) continue;
    const bool offloads = reading.setting("optimizer-placement") != nullptr;
    if (!reading.given().framework_answers() || !offloads)
      reading.leave(key, offloads ? "host memory is always pinned here" : "nothing is offloaded");
    else
      reading.set(*leaf_at(reading, key), "pin-memory", **pinned ? "true" : "false");
  }
  return {};
}

Result<void> settle_param_offload(Reading& reading, const OffloadKeys& keys) {
  const Result<std::string> memory = memory_at(reading, keys.param, {keys.param_flags[0], keys.param_flags[1]});
  if (!memory) return memory.error();
  if (memory->empty()) return {};
  const Leaf cause = *cause_of(reading, {keys.param, keys.param_flags[0], keys.param_flags[1]});
  if (stage_in_force(reading) != 3) {
    reading.leave(cause.pointer, "DeepSpeed offloads parameters in stage 3 alone");
    return {};
  }
  reading.set(cause, "param-placement", "host");
  if (*memory == "disk") reading.leave(cause.pointer, "only optimizer state rests on disk here: taken as host memory");
  return {};
}

/// Stages 2 and 3 reduce gradients in buckets.
Result<void> settle_buckets(Reading& reading) {
  const char* const key = "/zero_optimization/reduce_bucket_size";
  const std::optional<Leaf> leaf = leaf_at(reading, key);
  if (!leaf) return {};
  const bool is_chosen = is_auto(*leaf->value);
  if (leaf->value->kind == Kind::null) return reading.leave(key, "not set"), Result<void>();
  std::optional<double> elements = number_in(*leaf->value);
  if (!elements && !is_chosen) return reading.wrong_kind(*leaf, "a number of elements");
  if (elements && *elements < 0) return reading.refused(*leaf, "a bucket is not below 0", "5e8");
  const bool of_deepspeed = reading.given().framework_answers();
  if (stage_in_force(reading) < 2 && !of_deepspeed)
    return reading.leave(key, "gradients of stages 0 and 1 are reduced unit by unit, once a step"), Result<void>();
  if (is_chosen) {
    const std::optional<std::int64_t> hidden = reading.given().hidden_size();
    elements = hidden ? static_cast<double>(*hidden) * static_cast<double>(*hidden) : 5e8;
  }
  const Certainty certainty = is_chosen ? Certainty::assumed : Certainty::stated;
  if (of_deepspeed)
    reading.set(*leaf, "reduce-bucket-size",
                std::to_string(static_cast<std::int64_t>(std::clamp(*elements, 1.0, 1e15))), certainty);
  if (stage_in_force(reading) < 2) return {};
  const double bytes = *elements * (precision_in_force(reading) == "fp32" ? 4 : 2);
  const double mib = std::min(std::ceil(bytes / kMebibyte), kMostMib);
  reading.set(*leaf, "reduce-scatter-bucket-size-mb", std::to_string(static_cast<std::int64_t>(mib)), certainty);
  return {};
}

Result<void> settle_predivide(Reading& reading) {
  const Result<std::optional<bool>> before = flag_at(reading, "/prescale_gradients");
  if (!before) return before.error();
  if (*before) reading.understand("/prescale_gradients");
  const std::optional<Leaf> leaf = leaf_at(reading, "/gradient_predivide_factor");
  if (!leaf) return {};
  if (leaf->value->kind == Kind::null) return reading.leave(leaf->pointer, "not set"), Result<void>();
  const std::optional<double> factor = number_in(*leaf->value);
  if (!factor) return reading.wrong_kind(*leaf, "a number");
  if (*factor <= 0) return reading.refused(*leaf, "a divisor is above 0", "1.0");
  if (*before && **before && *factor >= 1e-6 && *factor <= 1e6)
    reading.set(*leaf, "gradient-predivide-factor", number_text(*factor));
  else
    reading.leave(leaf->pointer, "counts with prescale_gradients alone");
  return {};
}

/// The first of these that asks for sums in fp32.
Result<void> settle_sums(Reading& reading) {
  for (const char* key : {"/communication_data_type", "/data_types/grad_accum_dtype", "/gradient_accumulation_dtype",
                          "/fp32_allreduce"}) {
    const std::optional<Leaf> leaf = leaf_at(reading, key);
    if (!leaf) continue;
    if (leaf->value->kind == Kind::null || is_auto(*leaf->value)) {
      reading.leave(key, "not set");
      continue;
    }
    const std::string name = leaf->value->kind == Kind::text ? lower(leaf->value->text) : "";
    const bool wide = name == "fp32" || name == "float32" || name == "float" || flag_in(*leaf->value) == true;
    const bool narrow = name == "fp16" || name == "bf16" || name == "float16" || name == "bfloat16" || name == "half" ||
                        flag_in(*leaf->value) == false;
    if (!wide && !narrow) return reading.wrong_kind(*leaf, "fp32, fp16 or bf16");
    if (narrow || precision_in_force(reading) == "fp32")
      reading.leave(key,
                    narrow ? "gradients are summed in the precision of the model here" : "gradients are fp32 already");
    else if (reading.setting("fp32-reduce-scatter") != nullptr)
      reading.understand(key);
    else
      reading.set(*leaf, "fp32-reduce-scatter", "true");
  }
  return {};
}

Result<void> settle_optimizer(Reading& reading) {
  const std::optional<Leaf> type = leaf_at(reading, "/optimizer/type");
  const Result<std::optional<bool>> decoupled = flag_at(reading, "/optimizer/params/adam_w_mode");
  if (!decoupled) return decoupled.error();
  if (*decoupled) reading.understand("/optimizer/params/adam_w_mode");
  std::string chosen = "adamw";
  if (type) {
    if (type->value->kind == Kind::null) return reading.leave(type->pointer, "not set"), Result<void>();
    if (type->value->kind != Kind::text) return reading.wrong_kind(*type, "a name");
    const std::string name = lower(type->value->text);
    if (name == "adam" || name == "fusedadam" || name == "cpuadam" || name == "deepspeedcpuadam" ||
        name == "hybridadam")
      chosen = *decoupled && !**decoupled ? "adam" : "adamw";
    else if (name == "sgd")
      chosen = "sgd";
    else if (name != "adamw")
      chosen.clear();
    if (is_auto(*type->value))
      reading.set(*type, "optimizer", "adamw", Certainty::assumed);
    else if (chosen.empty())
      reading.leave(type->pointer,
                    "the optimizer " + type->value->text + " is not modelled: --optimizer's default is taken for it");
    else
      reading.set(*type, "optimizer", chosen);
  }
  if (reading.in_force("optimizer") == "sgd")
    for (const char* option : {"beta1", "beta2", "epsilon"}) reading.drop(option, "sgd has no moments");
  return {};
}

}  // namespace

void settle_groups(Reading& reading) {
  const auto number = [&](std::string_view option) {
    const std::optional<std::string> text = reading.in_force(option);
    return text ? whole_in(text_value(*text, 0)).value_or(1) : 1;
  };
  const std::int64_t split = std::max<std::int64_t>(1, number("tensor-parallel"));
  if (reading.setting("tensor-parallel") != nullptr && number("world-size") % split != 0)
    reading.drop("tensor-parallel", "groups of " + std::to_string(split) + " do not divide --world-size " +
                                        std::to_string(number("world-size")));
  if (reading.setting("shard-group") == nullptr) return;
  const std::int64_t ranks = number("world-size") / std::max<std::int64_t>(1, number("tensor-parallel"));
  const std::int64_t size = number("shard-group");
  if (stage_in_force(reading) == 0)
    reading.drop("shard-group", "stage 0 shards nothing");
  else if (size < 2 || ranks % size != 0)
    reading.drop("shard-group", "does not divide the " + std::to_string(ranks) + " data-parallel ranks");
}

Result<void> settle_offload(Reading& reading, const OffloadKeys& keys) {
  if (Result<void> ok = settle_optimizer_offload(reading, keys); !ok) return ok;
  if (Result<void> ok = settle_pinning(reading, keys); !ok) return ok;
  return settle_param_offload(reading, keys);
}

int stage_in_force(const Reading& reading) {
  const std::optional<std::string> text = reading.in_force("stage");
  const std::optional<std::int64_t> stage = text ? whole_in(text_value(*text, 0)) : 0;
  return stage ? static_cast<int>(std::clamp<std::int64_t>(*stage, 0, 3)) : 0;
}

std::string precision_in_force(const Reading& reading) {
  const std::string name = reading.in_force("precision").value_or("fp32");
  return name == "tf32" ? "fp32" : name;
}

Result<void> settle_deepspeed(Reading& reading) {
  if (Result<void> ok = settle_precision(reading); !ok) return ok;
  if (Result<void> ok = settle_scaler(reading); !ok) return ok;
  if (Result<void> ok = settle_offload(
          reading,
          {.optimizer = "/zero_optimization/offload_optimizer/device",
           .optimizer_flag = "/zero_optimization/cpu_offload",
           .ratio = "/zero_optimization/offload_optimizer/ratio",
           .path = "/zero_optimization/offload_optimizer/nvme_path",
           .pin = {"/zero_optimization/offload_optimizer/pin_memory", "/zero_optimization/cpu_offload_use_pin_memory"},
           .param = "/zero_optimization/offload_param/device",
           .param_flags = {"/zero_optimization/cpu_offload_params", "/zero_optimization/cpu_offload_param"}});
      !ok)
    return ok;
  if (Result<void> ok = settle_buckets(reading); !ok) return ok;
  if (Result<void> ok = settle_stage3(reading); !ok) return ok;
  if (Result<void> ok = settle_predivide(reading); !ok) return ok;
  if (Result<void> ok = settle_sums(reading); !ok) return ok;
  if (Result<void> ok = settle_optimizer(reading); !ok) return ok;
  settle_groups(reading);
  if (Result<void> ok = settle_batches(reading, {.micro = "/train_micro_batch_size_per_gpu",
                                                 .accumulation = "/gradient_accumulation_steps",
                                                 .whole = "/train_batch_size",
                                                 .assumed_micro = kMicroOfTrainer});
      !ok)
    return ok;
  // The file may have told how many ranks there are.
  settle_groups(reading);
  return {};
}

}  // namespace shard::foreign
