// Reads a configuration of Hugging Face accelerate, and the file of the Trainer's --fsdp_config.
#include "sim/foreign/accelerate.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>

#include "sim/foreign/batches.h"
#include "sim/foreign/deepspeed.h"
#include "sim/foreign/readers.h"
#include "traces/base/input_file.h"

namespace shard::foreign {
namespace {

constexpr std::string_view kConfigFile = "/deepspeed_config/deepspeed_config_file";

std::string upper(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return result;
}

/// "NO" is a boolean to YAML.
std::string word_of(const Value& value) {
  if (value.kind == Kind::boolean) return value.boolean ? "YES" : "NO";
  return upper(value.text);
}

bool has_section(const Reading& reading, std::string_view name) {
  const Value* const section = reading.root().find(name);
  return section != nullptr && section->is_table() && !section->members.empty();
}

/// "FSDP": what the file says, else what the one section that is there says.
std::string type_of(const Reading& reading) {
  if (const Value* const type = reading.root().find("distributed_type"); type != nullptr && type->kind != Kind::null)
    return word_of(*type);
  if (has_section(reading, "deepspeed_config")) return "DEEPSPEED";
  if (has_section(reading, "fsdp_config")) return "FSDP";
  return has_section(reading, "megatron_lm_config") ? "MEGATRON_LM" : "NO";
}

/// The type that reads the section of a key; empty for keys outside of sections.
std::string_view reader_of(std::string_view pointer) {
  if (pointer.starts_with("/deepspeed_config/")) return "DEEPSPEED";
  if (pointer.starts_with("/fsdp_config/")) return "FSDP";
  if (pointer.starts_with("/megatron_lm_config/")) return "MEGATRON_LM";
  return "";
}

/// Whether a key is of a section that accelerate does not look at; it is left out then. So is what is not set.
bool is_passed_over(Reading& reading, const Leaf& leaf) {
  if (leaf.value->kind == Kind::null) return reading.leave(leaf.pointer, "not set"), true;
  const std::string_view reader = reader_of(leaf.pointer);
  if (reader.empty() || type_of(reading) == reader) return false;
  reading.leave(leaf.pointer, "accelerate reads it with distributed_type " + std::string(reader) + " alone");
  return true;
}

/// The file of DeepSpeed's keys takes the place of this one.
bool is_in_file_instead(Reading& reading, const Leaf& leaf) {
  const Value* const file = reading.root().at(kConfigFile);
  if (file == nullptr || file->kind != Kind::text) return false;
  reading.leave(leaf.pointer, "accelerate ignores it beside deepspeed_config_file");
  return true;
}

/// For a key that only says yes or no; nothing where it is passed over.
Result<std::optional<bool>> flag_of(Reading& reading, const Leaf& leaf) {
  if (is_passed_over(reading, leaf)) return std::optional<bool>{};
  const std::optional<bool> flag = flag_in(*leaf.value);
  if (!flag) return reading.wrong_kind(leaf, "true or false");
  reading.understand(leaf.pointer);
  return flag;
}

std::int64_t number_at(const Reading& reading, std::string_view key) {
  const Value* const value = reading.root().find(key);
  return value == nullptr ? 1 : std::max<std::int64_t>(1, whole_in(*value).value_or(1));
}

/// Sharding inside each machine.
void set_group_of_machine(Reading& reading, const Leaf& leaf) {
  const std::int64_t group = number_at(reading, "num_processes") / number_at(reading, "num_machines");
  if (number_at(reading, "num_machines") > 1 && group > 1) reading.set(leaf, "shard-group", std::to_string(group));
}

/// What the section does not say, the type does.
void settle_stage(Reading& reading) {
  const Value* const type = reading.root().find("distributed_type");
  if (type == nullptr || reading.setting("stage") != nullptr || reading.root().at(kConfigFile) != nullptr) return;
  const Leaf leaf{"/distributed_type", type};
  const std::string name = type_of(reading);
  if (name == "DEEPSPEED")
    reading.set(leaf, "stage", "2", Certainty::assumed);
  else if (name == "FSDP")
    reading.set(leaf, "stage", "3", Certainty::assumed);
  else if (name == "NO" || name == "MEGATRON_LM" || name.starts_with("MULTI_"))
    reading.set(leaf, "stage", "0");
}

/// The keys of deepspeed_config_file, beside this file or where the command runs.
Result<void> settle_config_file(Reading& reading) {
  const Value* const value = reading.root().at(kConfigFile);
  if (value == nullptr || value->kind == Kind::null) return {};
  const Leaf leaf{std::string(kConfigFile), value};
  if (is_passed_over(reading, leaf)) return {};
  if (value->kind != Kind::text) return reading.wrong_kind(leaf, "a path");
  std::filesystem::path file = value->text;
  if (is_absent(file) && !file.empty()) file = std::filesystem::path(reading.file()).parent_path() / value->text;
  if (is_absent(file)) {
    reading.leave(leaf.pointer, "there is no such file here, so what it says is not known: --ds-config FILE");
    return {};
  }
  Result<Text> text = read_text(file);
  if (!text) {
    Error error = text.error();
    if (error.help.empty()) error.help = "a file that can be read, or " + leaf.pointer + " left out";
    error.what += ", which " + reading.file() + " names at " + leaf.pointer;
    return error;
  }
  Given given = reading.given();
  given.option = [&reading](std::string_view option) {
    return option == "world-size" ? reading.in_force(option) : reading.given().option(option);
  };
  Result<ForeignConfig> config = read_deepspeed(*text, given);
  if (!config) return config.error();
  reading.understand(leaf.pointer);
  reading.add(std::move(*config), leaf.pointer, text->file);
  return {};
}

/// The FSDP of a section's version, 1 where it does not say.
std::string_view fsdp_of(const Value* version) {
  return version != nullptr && whole_in(*version) == 2 ? "fsdp2" : "fsdp1";
}

/// Where a file says the version: accelerate's, or that of the Trainer's --fsdp_config.
constexpr std::array kVersions{"/fsdp_config/fsdp_version", "/fsdp_version", "/version"};

const Value* version_of_fsdp(const Reading& reading) {
  for (const char* const pointer : kVersions)
    if (const Value* const version = reading.root().at(pointer); version != nullptr) return version;
  return nullptr;
}

/// FSDP 1 gathers nothing ahead in backward where a file does not ask for it; FSDP 2 always does.
void settle_prefetch(Reading& reading) {
  const Setting* const stage = reading.setting("stage");
  if (stage == nullptr || stage->value == "0" || reading.setting("prefetch") != nullptr) return;
  if (fsdp_of(version_of_fsdp(reading)) == "fsdp1")
    reading.assume({stage->pointer, reading.root().at(stage->pointer)}, "prefetch", "0");
}

/// Units are blocks, as of the same options by hand. Which release of accelerate runs, no file says; later ones have
/// more (utils/fsdp_utils.py, fsdp2_prepare_model).
void settle_units(Reading& reading) {
  if (fsdp_of(version_of_fsdp(reading)) != "fsdp2") return;
  for (const char* const pointer : kVersions)
    if (reading.root().at(pointer) != nullptr)
      reading.leave(pointer,
                    "taken as units of blocks and the model, gradients summed in fp32: accelerate sums in --precision, "
                    "and from 1.14 on makes units of the embedding and of the last norm with the head, too: "
                    "--reduce-dtype precision --fsdp-units ends");
}

/// Whose run it is.
void settle_framework(Reading& reading) {
  const std::string type = type_of(reading);
  if (type == "DEEPSPEED") reading.set_framework("deepspeed");
  if (type == "MEGATRON_LM") reading.set_framework("megatron");
  if (type == "NO" || type.starts_with("MULTI_")) reading.set_framework(type == "NO" ? "pytorch" : "ddp");
  if (type == "FSDP") reading.set_framework(fsdp_of(version_of_fsdp(reading)));
}

bool is_fsdp_file(const Text& text) {
  if (!text.tree || text.tree->members.empty()) return false;
  const auto is_known = [](const Member& member) {
    return member.key.starts_with("fsdp_") || member.key.starts_with("xla") ||
           member.key == "transformer_layer_cls_to_wrap" || member.key == "min_num_params";
  };
  return std::ranges::any_of(text.tree->members, is_known) &&
         std::ranges::all_of(text.tree->members, [](const Member& member) {
           return std::ranges::any_of(fsdp_rows(), [&](const Row& row) {
             const std::string_view key = row.key.substr(1);
             return key.substr(0, key.find('/')) == member.key;
           });
         });
}

Result<void> read_fsdp_file(Reading& reading) {
  if (Result<void> ok = reading.walk(fsdp_rows()); !ok) return ok;
  // The Trainer's --fsdp says the strategy; it is full_shard as a rule.
  if (reading.setting("stage") == nullptr && !reading.root().members.empty()) {
    const Member& first = reading.root().members.front();
    if (first.value.is_table()) return {};
    reading.assume({pointer_part(first.key), &first.value}, "stage", "3");
  }
  settle_prefetch(reading);
  settle_units(reading);
  return {};
}

}  // namespace

bool is_accelerate(const Text& text) {
  if (!text.tree) return false;
  const auto has = [&](std::string_view key) { return text.tree->find(key) != nullptr; };
  return has("distributed_type") || has("compute_environment") || (has("num_processes") && has("mixed_precision")) ||
         has("deepspeed_config") || has("fsdp_config") || is_fsdp_file(text);
}

Result<ForeignConfig> read_accelerate(const Text& text, const Given& given) {
  Result<Value> root = text.is_json ? read_json(text.content, text.file) : read_yaml(text.content, text.file);
  if (!root && text.is_json && text.tree) root = *text.tree;
  if (!root) return root.error();
  if (!root->is_table())
    return Error{.code = Errc::malformed,
                 .what = "a configuration of accelerate is a table, and this is " + std::string(to_string(root->kind)),
                 .where = text.file,
                 .help = "distributed_type: MULTI_GPU"};
  Reading reading("accelerate", text.file, *root, given);
  reading.open_up(
      *root, [](const Leaf& leaf) { return is_placeholder(*leaf.value); }, kPlaceholder);
  if (is_fsdp_file(text)) {
    if (Result<void> ok = read_fsdp_file(reading); !ok) return ok.error();
    reading.set_framework(fsdp_of(version_of_fsdp(reading)));
    return reading.finish();
  }
  if (Result<void> ok = reading.walk(accelerate_rows()); !ok) return ok.error();
  settle_stage(reading);
  settle_framework(reading);
  if (type_of(reading) == "FSDP") {
    settle_prefetch(reading);
    settle_units(reading);
  }
  if (Result<void> ok = settle_config_file(reading); !ok) return ok.error();
  const bool in_file = reading.root().at(kConfigFile) != nullptr;
  if (type_of(reading) == "DEEPSPEED" && !in_file)
    if (Result<void> ok = settle_offload(reading, {.optimizer = "/deepspeed_config/offload_optimizer_device",
                                                   .path = "/deepspeed_config/offload_optimizer_nvme_path",
                                                   .param = "/deepspeed_config/offload_param_device"});
        !ok)
      return ok.error();
  settle_groups(reading);
  const std::string type = type_of(reading);
  const char* const steps = type == "DEEPSPEED" && !in_file ? "/deepspeed_config/gradient_accumulation_steps"
                            : type == "MEGATRON_LM"         ? "/megatron_lm_config/megatron_lm_num_micro_batches"
                                                            : "/gradient_accumulation_steps";
  if (Result<void> ok = settle_batches(reading, {.micro = "", .accumulation = steps, .whole = ""}); !ok)
    return ok.error();
  for (const char* key : {"offload_optimizer_device", "offload_optimizer_nvme_path", "offload_param_device",
                          "gradient_accumulation_steps"}) {
    const std::string pointer = "/deepspeed_config/" + std::string(key);
    const Value* const value = reading.root().at(pointer);
    if (value != nullptr && !is_passed_over(reading, {pointer, value})) is_in_file_instead(reading, {pointer, value});
  }
  return reading.finish();
}

Result<void> take_distributed_type(Reading& reading, const Leaf& leaf, const Row& /*row*/) {
  if (leaf.value->kind == Kind::null) return reading.leave(leaf.pointer, "not set"), Result<void>();
  if (leaf.value->kind != Kind::text && leaf.value->kind != Kind::boolean)
    return reading.wrong_kind(leaf, "MULTI_GPU, DEEPSPEED, FSDP or MEGATRON_LM");
  const std::string name = type_of(reading);
  if (name == "NO" || name == "DEEPSPEED" || name == "FSDP" || name == "MEGATRON_LM" || name.starts_with("MULTI_"))
    reading.understand(leaf.pointer);
  else
    reading.leave(leaf.pointer, "a way to run that is not modelled: taken as MULTI_GPU");
  return {};
}

Result<void> take_mixed_precision(Reading& reading, const Leaf& leaf, const Row& row) {
  if (is_passed_over(reading, leaf)) return {};
  if (leaf.value->kind != Kind::text && leaf.value->kind != Kind::boolean)
    return reading.wrong_kind(leaf, "no, fp16 or bf16");
  const std::string name = word_of(*leaf.value);
  if (name == "FP8") {
    reading.leave(leaf.pointer, "8-bit products are not modelled: --precision bf16 is the nearest");
    return {};
  }
  if (name == "FP32" || name == "FLOAT32") return reading.set(leaf, row.option, "fp32"), Result<void>();
  if (name != "NO" && name != "FP16" && name != "BF16")
    return reading.refused(leaf, "accelerate knows no, fp16, bf16 and fp8", "bf16");
  reading.set(leaf, row.option, name == "NO" ? "fp32" : lower(name));
  return {};
}

Result<void> take_degree(Reading& reading, const Leaf& leaf, const Row& row) {
  if (is_passed_over(reading, leaf)) return {};
  const std::optional<std::int64_t> degree = whole_in(*leaf.value);
  if (!degree) return reading.wrong_kind(leaf, "a whole number");
  if (*degree < 2)
    reading.understand(leaf.pointer);
  else
    reading.set(leaf, row.option, std::to_string(*degree));
  return {};
}

Result<void> take_section_stage(Reading& reading, const Leaf& leaf, const Row& row) {
  if (is_passed_over(reading, leaf) || is_in_file_instead(reading, leaf)) return {};
  return take_stage(reading, leaf, row);
}

Result<void> take_section_clipping(Reading& reading, const Leaf& leaf, const Row& row) {
  if (is_passed_over(reading, leaf)) return {};
  if (leaf.pointer.starts_with("/deepspeed_config/") && is_in_file_instead(reading, leaf)) return {};
  return take_clipping(reading, leaf, row);
}

Result<void> take_sharding_strategy(Reading& reading, const Leaf& leaf, const Row& row) {
  if (is_passed_over(reading, leaf)) return {};
  constexpr std::string_view kNames[] = {"FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD",
                                         "HYBRID_SHARD_ZERO2"};
  std::string name = word_of(*leaf.value);
  // Older files have the strategy's number.
  if (const std::optional<std::int64_t> number = whole_in(*leaf.value); number && *number >= 1 && *number <= 5)
    name = kNames[*number - 1];
  if (name.starts_with('_')) name.erase(0, 1);
  if (std::ranges::find(kNames, name) == std::end(kNames)) {
    if (leaf.value->kind != Kind::text && leaf.value->kind != Kind::integer)
      return reading.wrong_kind(leaf, "a strategy's name");
    return reading.refused(leaf, "FSDP has FULL_SHARD, SHARD_GRAD_OP, NO_SHARD, HYBRID_SHARD and HYBRID_SHARD_ZERO2",
                           "FULL_SHARD");
  }
  reading.set(leaf, row.option, name == "NO_SHARD" ? "0" : "3");
  if (name.starts_with("HYBRID")) set_group_of_machine(reading, leaf);
  if (name == "SHARD_GRAD_OP" || name == "HYBRID_SHARD_ZERO2") reading.set(leaf, "keep-gathered", "true");
  return {};
}

Result<void> take_reshard(Reading& reading, const Leaf& leaf, const Row& row) {
  if (is_passed_over(reading, leaf)) return {};
  if (leaf.value->kind == Kind::text && !flag_in(*leaf.value)) {
    Row strategy = row;
    strategy.option = "stage";
    return take_sharding_strategy(reading, leaf, strategy);  // the strategy's name under the key of version 2
  }
  const std::optional<bool> again = flag_in(*leaf.value);
  if (!again) return reading.wrong_kind(leaf, "true or false");
  if (reading.setting("stage") == nullptr)
    reading.set(leaf, "stage", "3");
  else
    reading.understand(leaf.pointer);
  if (!*again) reading.set(leaf, "keep-gathered", "true");
  return {};
}

Result<void> take_fsdp_offload(Reading& reading, const Leaf& leaf, const Row& /*row*/) {
  const Result<std::optional<bool>> flag = flag_of(reading, leaf);
  if (!flag) return flag.error();
  if (*flag && **flag)
    for (const char* option : {"param-placement", "grad-placement", "optimizer-placement"})
      reading.set(leaf, option, "host");
  return {};
}

Result<void> take_fsdp_recompute(Reading& reading, const Leaf& leaf, const Row& row) {
  const Result<std::optional<bool>> flag = flag_of(reading, leaf);
  if (!flag) return flag.error();
  if (*flag && **flag) reading.set(leaf, row.option, "block");
  return {};
}

Result<void> take_version(Reading& reading, const Leaf& leaf, const Row& /*row*/) {
  if (is_passed_over(reading, leaf)) return {};
  const std::optional<std::int64_t> version = whole_in(*leaf.value);
  if (!version) return reading.wrong_kind(leaf, "1 or 2");
  reading.understand(leaf.pointer);
  return {};
}

Result<void> take_orig_params(Reading& reading, const Leaf& leaf, const Row& row) {
  const Result<std::optional<bool>> flag = flag_of(reading, leaf);
  if (!flag) return flag.error();
  if (*flag) reading.set(leaf, row.option, **flag ? "true" : "false");
  return {};
}

Result<void> take_wrap_policy(Reading& reading, const Leaf& leaf, const Row& row) {
  if (is_passed_over(reading, leaf)) return {};
  const std::string name = word_of(*leaf.value);
  if (name == "TRANSFORMER_BASED_WRAP")
    reading.set(leaf, row.option, "module");
  else if (name == "SIZE_BASED_WRAP")
    reading.leave(leaf.pointer, "units are blocks or tensors here (--unit), not of a least size");
  else if (name == "NO_WRAP" || name == "NO")
    reading.leave(leaf.pointer, "a unit of the whole model is not modelled: blocks are taken (--unit module)");
  else
    return leaf.value->kind == Kind::text
               ? reading.refused(leaf, "accelerate knows TRANSFORMER_BASED_WRAP, SIZE_BASED_WRAP and NO_WRAP",
                                 "TRANSFORMER_BASED_WRAP")
               : reading.wrong_kind(leaf, "a policy's name");
  return {};
}

Result<void> take_wrapped_class(Reading& reading, const Leaf& leaf, const Row& row) {
  if (is_passed_over(reading, leaf)) return {};
  if (leaf.value->kind != Kind::text && leaf.value->kind != Kind::list)
    return reading.wrong_kind(leaf, "the name of a class");
  if (reading.setting(row.option) == nullptr)
    reading.set(leaf, row.option, "module");
  else
    reading.understand(leaf.pointer);
  return {};
}

Result<void> take_backward_prefetch(Reading& reading, const Leaf& leaf, const Row& row) {
  if (is_passed_over(reading, leaf)) return {};
  const std::string name = word_of(*leaf.value);
  if (fsdp_of(version_of_fsdp(reading)) == "fsdp2")
    reading.leave(leaf.pointer, "FSDP 2 takes no notice of it");
  else if (name == "BACKWARD_PRE")
    reading.set(leaf, row.option, "1");
  else if (name == "BACKWARD_POST" || name == "NO_PREFETCH" || name == "NO" || name == "NONE")
    reading.set(leaf, row.option, "0");
  else
    return leaf.value->kind == Kind::text
               ? reading.refused(leaf, "FSDP has BACKWARD_PRE, BACKWARD_POST and NO_PREFETCH", "BACKWARD_PRE")
               : reading.wrong_kind(leaf, "BACKWARD_PRE, BACKWARD_POST or NO_PREFETCH");
  return {};
}

Result<void> take_megatron_recompute(Reading& reading, const Leaf& leaf, const Row& row) {
  const Result<std::optional<bool>> flag = flag_of(reading, leaf);
  if (!flag) return flag.error();
  if (*flag && **flag) reading.set(leaf, row.option, "selective");
  return {};
}

Result<void> take_megatron_optimizer(Reading& reading, const Leaf& leaf, const Row& row) {
  const Result<std::optional<bool>> flag = flag_of(reading, leaf);
  if (!flag) return flag.error();
  if (*flag && **flag) reading.set(leaf, row.option, "1");
  return {};
}

}  // namespace shard::foreign
