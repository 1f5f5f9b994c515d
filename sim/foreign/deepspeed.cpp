// Reads a DeepSpeed configuration: single keys.
#include "sim/foreign/deepspeed.h"

#include <algorithm>
#include <array>

#include "sim/foreign/readers.h"

namespace shard::foreign {
namespace {

/// Keys that nobody else has.
constexpr std::string_view kMarks[] = {
    "zero_optimization",
    "train_batch_size",
    "train_micro_batch_size_per_gpu",
    "zero_allow_untested_optimizer",
    "steps_per_print",
    "wall_clock_breakdown",
    "zero_force_ds_cpu_optimizer",
    "compression_training",
    "flops_profiler",
    "prescale_gradients",
    "gradient_predivide_factor",
    "activation_checkpointing",
    "fp16",
    "bf16",
    "autotuning",
    "curriculum_learning",
};

/// Defaults of Hugging Face's Trainer, which fills "auto" in (transformers, TrainingArguments).
struct Auto {
  std::string_view option;
  std::string_view value;
};
constexpr Auto kAuto[] = {{"lr", "5e-05"}, {"epsilon", "1e-08"}, {"weight-decay", "0"}, {"warmup-steps", "0"}};

/// Lists where one value belongs.
bool is_for_tuning(const Leaf& leaf) {
  if (leaf.value->kind != Kind::list || leaf.pointer == "/optimizer/params/betas") return false;
  const std::span<const Row> rows = deepspeed_rows();
  const auto row = std::ranges::find(rows, leaf.pointer, &Row::key);
  return row != rows.end() && row->take != nullptr && row->take != take_stage;
}

Result<void> not_set(Reading& reading, const Leaf& leaf) {
  reading.leave(leaf.pointer, "not set");
  return {};
}

std::string schedule_of(std::string_view type) {
  if (type == "warmuplr") return "constant";
  if (type == "warmupdecaylr") return "linear";
  if (type == "warmupcosinelr") return "cosine";
  return "";
}

}  // namespace

bool is_deepspeed(const Text& text) {
  if (text.is_json && !text.tree)  // malformed: its reader says where
    return std::ranges::any_of(std::span(kMarks).first(4), [&](std::string_view mark) {
      return text.content.find('"' + std::string(mark) + '"') != std::string::npos;
    });
  if (!text.tree || text.tree->find("distributed_type") != nullptr) return false;
  return std::ranges::any_of(kMarks, [&](std::string_view mark) {
    const Value* const value = text.tree->find(mark);
    if (value == nullptr) return false;
    return (mark != "fp16" && mark != "bf16") || value->is_table();
  });
}

Result<ForeignConfig> read_deepspeed(const Text& text, const Given& given) {
  Result<Value> root = read_deepspeed_json(text.content, text.file);
  if (!root) return root.error();
  if (!root->is_table())
    return Error{
        .code = Errc::malformed,
        .what = "a DeepSpeed configuration is a JSON object, and this is " + std::string(to_string(root->kind)),
        .where = text.file,
        .help = "{\"train_batch_size\": 8}"};
  Reading reading("DeepSpeed", text.file, *root, given);
  reading.open_up(
      *root, [](const Leaf& leaf) { return is_placeholder(*leaf.value); }, kPlaceholder);
  const Value* const tunes = root->at("/autotuning/enabled");
  if (tunes != nullptr && flag_in(*tunes) == true)
    reading.open_up(*root, is_for_tuning, "values for DeepSpeed's autotuner to try: simulate predicts one at a time");
  if (Result<void> ok = reading.walk(deepspeed_rows()); !ok) return ok.error();
  if (Result<void> ok = settle_deepspeed(reading); !ok) return ok.error();
  reading.set_framework("deepspeed");
  return reading.finish();
}

Result<void> take_zero_flag(Reading& reading, const Leaf& leaf, const Row& row) {
  if (leaf.value->kind == Kind::null) return not_set(reading, leaf);
  const std::optional<bool> on = flag_in(*leaf.value);
  if (!on) return reading.wrong_kind(leaf, "a table");
  reading.set(leaf, row.option, *on ? "1" : "0");
  return {};
}

Result<void> take_stage(Reading& reading, const Leaf& leaf, const Row& row) {
  if (leaf.value->kind == Kind::null) return not_set(reading, leaf);
  if (is_auto(*leaf.value)) return reading.set(leaf, row.option, "0", Certainty::assumed), Result<void>();
  if (leaf.value->kind == Kind::list) {
    reading.leave(leaf.pointer, "stages for DeepSpeed's autotuner to try: shardscope simulate --stage N predicts each");
    return {};
  }
  const std::optional<std::int64_t> stage = whole_in(*leaf.value);
  if (!stage) return reading.wrong_kind(leaf, "a stage from 0 to 3");
  if (*stage < 0 || *stage > 3) return reading.refused(leaf, "ZeRO has stages 0 to 3", "3");
  reading.set(leaf, row.option, std::to_string(*stage));
  return {};
}

Result<void> take_shard_group(Reading& reading, const Leaf& leaf, const Row& row) {
  if (leaf.value->kind == Kind::null) return not_set(reading, leaf);
  const std::optional<std::int64_t> size = whole_in(*leaf.value);
  if (!size) return reading.wrong_kind(leaf, "a whole number");
  if (*size < 2)
    reading.understand(leaf.pointer);
  else
    reading.set(leaf, row.option, std::to_string(*size));
  return {};
}

Result<void> take_clipping(Reading& reading, const Leaf& leaf, const Row& row) {
  if (leaf.value->kind == Kind::null) return not_set(reading, leaf);
  if (is_auto(*leaf.value)) return reading.set(leaf, row.option, "1", Certainty::assumed), Result<void>();
  if (leaf.value->kind == Kind::text && lower(leaf.value->text) == "none")
    return reading.understand(leaf.pointer), Result<void>();
  const std::optional<double> norm = number_in(*leaf.value);
  if (!norm) return reading.wrong_kind(leaf, "a number");
  if (*norm < 0) return reading.refused(leaf, "a norm is not below 0", "1.0, or 0 for none");
  if (*norm == 0)
    reading.understand(leaf.pointer);
  else
    reading.set(leaf, row.option, number_text(*norm));
  return {};
}

Result<void> take_rate(Reading& reading, const Leaf& leaf, const Row& row) {
  if (is_auto(*leaf.value) && reading.setting(row.option) == nullptr) {
    const auto at = std::ranges::find(kAuto, row.option, &Auto::option);
    reading.set(leaf, row.option, at == std::end(kAuto) ? "0" : std::string(at->value), Certainty::assumed);
    return {};
  }
  // Two keys give the rate: the optimizer's counts, the scheduler's where there is no other.
  if (reading.setting(row.option) != nullptr) {
    reading.leave(leaf.pointer, "another key says it as well, and counts");
    return {};
  }
  return take_number(reading, leaf, row);
}

Result<void> take_betas(Reading& reading, const Leaf& leaf, const Row& /*row*/) {
  if (leaf.value->kind == Kind::null) return not_set(reading, leaf);
  if (is_auto(*leaf.value)) {
    reading.set(leaf, "beta1", "0.9", Certainty::assumed);
    reading.set(leaf, "beta2", "0.999", Certainty::assumed);
    return {};
  }
  if (leaf.value->kind != Kind::list || leaf.value->items.size() < 2)
    return reading.wrong_kind(leaf, "a list of two numbers");
  std::array<std::string, 2> betas;
  for (std::size_t i = 0; i < 2; ++i) {
    const Value& item = leaf.value->items[i];
    if (is_auto(item)) return reading.leave(leaf.pointer, "a list with \"auto\" in it"), Result<void>();
    const std::optional<double> beta = number_in(item);
    if (!beta) return reading.wrong_kind(leaf, "a list of two numbers");
    if (!(*beta >= 0 && *beta <= 1)) return reading.refused(leaf, "a decay is between 0 and 1", "[0.9, 0.999]");
    betas[i] = number_text(*beta);
  }
  reading.set(leaf, "beta1", betas[0]);
  reading.set(leaf, "beta2", betas[1]);
  return {};
}

Result<void> take_schedule(Reading& reading, const Leaf& leaf, const Row& row) {
  if (leaf.value->kind == Kind::null) return not_set(reading, leaf);
  if (leaf.value->kind != Kind::text) return reading.wrong_kind(leaf, "a name");
  const std::string schedule = schedule_of(lower(leaf.value->text));
  if (schedule.empty())
    reading.leave(leaf.pointer, "train has no such schedule; the rate changes neither memory nor time");
  else
    reading.set(leaf, row.option, schedule);
  return {};
}

Result<void> take_warmup(Reading& reading, const Leaf& leaf, const Row& row) {
  if (is_auto(*leaf.value)) return take_rate(reading, leaf, row);
  if (leaf.value->kind == Kind::null) return not_set(reading, leaf);
  const std::optional<std::int64_t> steps = whole_in(*leaf.value);
  if (!steps) return reading.wrong_kind(leaf, "a whole number");
  if (*steps < 0) return reading.refused(leaf, "steps are not below 0", "0");
  reading.set(leaf, row.option, std::to_string(*steps));
  return {};
}

Result<void> take_tensor_parallel(Reading& reading, const Leaf& leaf, const Row& row) {
  if (leaf.value->kind == Kind::null) return not_set(reading, leaf);
  const std::optional<std::int64_t> size = whole_in(*leaf.value);
  if (!size) return reading.wrong_kind(leaf, "a whole number");
  if (*size < 0) return reading.refused(leaf, "ranks are not below 0", "1");
  if (*size < 2)
    reading.understand(leaf.pointer);
  else
    reading.set(leaf, row.option, std::to_string(*size));
  return {};
}

}  // namespace shard::foreign
