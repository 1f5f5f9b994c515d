// Single arguments of Megatron-LM.
#include "sim/foreign/megatron.h"

#include <algorithm>
#include <set>
#include <utility>

#include "sim/foreign/readers.h"
#include "sim/foreign/script_document.h"

namespace shard::foreign {
namespace {

/// Of the launch commands of others, too: what tells Megatron's apart is that several are there.
constexpr std::string_view kMegatronMarks[] = {
    "--tensor-model-parallel-size",
    "--pipeline-model-parallel-size",
    "--num-attention-heads",
    "--ffn-hidden-size",
    "--micro-batch-size",
    "--global-batch-size",
    "--num-layers",
    "--hidden-size",
    "--max-position-embeddings",
    "--use-distributed-optimizer",
    "--tokenizer-type",
    "--lr-decay-style",
    "--model-parallel-size",
    "--seq-length",
    "--train-iters",
};

/// Of the model, without a value.
constexpr std::string_view kModelFlags[] = {"swiglu",
                                            "disable-bias-linear",
                                            "add-qkv-bias",
                                            "group-query-attention",
                                            "use-rotary-position-embeddings",
                                            "untie-embeddings-and-output-weights"};

/// A flag, as argparse's store_true has it, or with a word behind it that says so.
bool megatron_is_on(const Value& value) {
  return flag_in(value).value_or(true);
}

}  // namespace

bool is_megatron(const Text& text) {
  if (text.is_json || text.content.find("\ndef ") != std::string::npos) return false;
  return std::ranges::count_if(
             kMegatronMarks, [&](std::string_view mark) { return text.content.find(mark) != std::string::npos; }) >= 3;
}

Result<ForeignConfig> read_megatron(const Text& text, const Given& given) {
  std::vector<std::string_view> known;
  std::vector<std::string_view> flags(std::begin(kModelFlags), std::end(kModelFlags));
  for (const Row& row : megatron_rows()) {
    if (row.key.find('*') == std::string_view::npos) known.push_back(row.key.substr(1));
    if (row.take == megatron_flag || row.take == megatron_precision || row.take == megatron_stage ||
        row.take == megatron_offload || row.take == megatron_recompute)
      flags.push_back(row.key.substr(1));
  }
  const Result<ScriptDocument> document = launch_document(text.content, text.file, known, flags);
  if (!document) return document.error();
  Reading reading("Megatron-LM", text.file, document->root, given);
  if (Result<void> ok = reading.walk(megatron_rows()); !ok) return ok.error();
  if (Result<void> ok = settle_megatron(reading, document->unread); !ok) return ok.error();
  leave_unread(reading, document->unread, megatron_rows());
  reading.set_framework("megatron");
  ForeignConfig config = reading.finish();
  leave_rest(config, document->root);
  return config;
}

void leave_rest(ForeignConfig& config, const Value& root) {
  std::set<std::string> told(config.understood.begin(), config.understood.end());
  for (const LeftOut& each : config.left_out) told.insert(each.key);
  for (Leaf& leaf : leaves(root))
    if (told.insert(leaf.pointer).second)
      config.left_out.push_back({std::move(leaf.pointer), "has no meaning beside what else is there"});
}

void leave_unread(Reading& reading, std::span<const LeftOut> unread, std::span<const Row> rows) {
  for (const LeftOut& each : unread) {
    const auto row = std::ranges::find(rows, each.key, &Row::key);
    const bool ours = row != rows.end() && !row->option.empty();
    reading.leave(each.key, ours ? each.reason + ": give --" + std::string(row->option) : each.reason);
  }
}

Result<void> megatron_later(Reading&, const Leaf&, const Row&) {
  return {};
}

Result<void> megatron_flag(Reading& reading, const Leaf& leaf, const Row& row) {
  if (!megatron_is_on(*leaf.value))
    reading.leave(leaf.pointer, "not set");
  else if (row.option.empty())
    reading.understand(leaf.pointer);
  else
    reading.set(leaf, row.option, "true");
  return {};
}

Result<void> megatron_number(Reading& reading, const Leaf& leaf, const Row& row) {
  return take_number(reading, leaf, row);
}

Result<void> megatron_one(Reading& reading, const Leaf& leaf, const Row& row) {
  const Result<std::int64_t> size = ways_in(reading, leaf);
  if (!size) return size.error();
  if (*size <= 1)
    reading.understand(leaf.pointer);
  else
    reading.leave(leaf.pointer, std::string(row.says) + ": what is predicted has 1");
  return {};
}

Result<void> megatron_precision(Reading& reading, const Leaf& leaf, const Row& row) {
  if (!megatron_is_on(*leaf.value)) return reading.leave(leaf.pointer, "not set"), Result<void>();
  const std::string mine = leaf.pointer.substr(1);
  if (const Setting* other = reading.setting(row.option); other != nullptr && other->value != mine)
    return reading.refused(leaf, "--" + other->value + " and --" + mine + " exclude each other", "keep one of them");
  reading.set(leaf, row.option, mine);
  return {};
}

Result<void> megatron_scale(Reading& reading, const Leaf& leaf, const Row& row) {
  const std::optional<double> scale = number_in(*leaf.value);
  if (!scale) return reading.wrong_kind(leaf, "a number");
  reading.leave(leaf.pointer, std::string(row.says) + ": a dynamic one is predicted, which changes no more than time");
  return {};
}

Result<void> megatron_stage(Reading& reading, const Leaf& leaf, const Row& row) {
  if (!megatron_is_on(*leaf.value)) return reading.leave(leaf.pointer, "not set"), Result<void>();
  // Megatron-DeepSpeed's --zero-stage says more.
  if (reading.setting(row.option) != nullptr) return reading.understand(leaf.pointer), Result<void>();
  reading.set(leaf, row.option, leaf.pointer == "/use-torch-fsdp2" ? "3" : "1");
  return {};
}

Result<void> megatron_zero(Reading& reading, const Leaf& leaf, const Row& row) {
  const std::optional<std::int64_t> stage = whole_in(*leaf.value);
  if (!stage) return reading.wrong_kind(leaf, "a stage from 0 to 3");
  if (*stage < 0 || *stage > 3) return reading.refused(leaf, "ZeRO has stages 0 to 3", "3");
  reading.set(leaf, row.option, std::to_string(*stage));
  return {};
}

Result<void> megatron_sharding(Reading& reading, const Leaf& leaf, const Row& row) {
  constexpr std::string_view kStages[] = {"no_shard", "optim", "optim_grads", "optim_grads_params"};
  const auto stage = std::ranges::find(kStages, leaf.value->text);
  if (leaf.value->kind != Kind::text || stage == std::end(kStages))
    return reading.wrong_kind(leaf, "no_shard, optim, optim_grads or optim_grads_params");
  reading.set(leaf, row.option, std::to_string(stage - std::begin(kStages)));
  return {};
}

Result<void> megatron_offload(Reading& reading, const Leaf& leaf, const Row& row) {
  if (!megatron_is_on(*leaf.value)) return reading.leave(leaf.pointer, "not set"), Result<void>();
  reading.set(leaf, row.option, "host");
  if (leaf.pointer == "/cpu-optimizer") reading.set(leaf, "grad-placement", "host");
  return {};
}

Result<void> megatron_granularity(Reading& reading, const Leaf& leaf, const Row& row) {
  const std::string kind = lower(leaf.value->text);
  if (kind != "full" && kind != "selective") return reading.wrong_kind(leaf, "full or selective");
  reading.set(leaf, row.option, kind == "full" ? "block" : "selective");
  return {};
}

Result<void> megatron_recompute(Reading& reading, const Leaf& leaf, const Row& row) {
  if (!megatron_is_on(*leaf.value)) return reading.leave(leaf.pointer, "not set"), Result<void>();
  reading.set(leaf, row.option, leaf.pointer == "/recompute-activations" ? "selective" : "block");
  return {};
}

Result<void> megatron_optimizer(Reading& reading, const Leaf& leaf, const Row& row) {
  if (leaf.value->kind != Kind::text) return reading.wrong_kind(leaf, "adam or sgd");
  const std::string name = lower(leaf.value->text);
  if (name == "adam" || name == "adamw")
    reading.set(leaf, row.option, "adamw");
  else if (name == "sgd")
    reading.set(leaf, row.option, "sgd");
  else
    reading.leave(leaf.pointer, "the states of " + leaf.value->text + " are not modelled: AdamW's are predicted");
  return {};
}

Result<void> megatron_clip(Reading& reading, const Leaf& leaf, const Row& row) {
  const std::optional<double> norm = number_in(*leaf.value);
  if (!norm) return reading.wrong_kind(leaf, "a number");
  if (*norm < 0) return reading.refused(leaf, "a norm is not below 0", "1.0, or 0 for none");
  if (*norm == 0)
    reading.understand(leaf.pointer);
  else
    reading.set(leaf, row.option, number_text(*norm));
  return {};
}

}  // namespace shard::foreign
