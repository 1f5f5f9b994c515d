// The rules, and what the values of a strategy break of them.
#include "sim/strategy/rules.h"

#include <algorithm>
#include <cassert>

#include "sim/strategy/fields.h"
#include "traces/base/mentions.h"

namespace shard::plan {
namespace {

constexpr Values kAny{};

bool takes_several_micro_steps(const Strategy& s) {
  return s.accumulation() > 1;
}
/// A gradient in its parameters' place is in their memory; where one of the two is not placed it follows the other.
bool moves_reused_shards(const Strategy& s) {
  const Placement& p = s.placement;
  return s.reuse_shard && p.parameters && p.gradients && *p.parameters != *p.gradients;
}

std::string take_one_micro_step(Strategy s) {
  s.global_batch = s.micro_batch * s.data_parallel();
  return option_text(field(FieldId::global_batch), s);
}
std::string move_gradients_too(Strategy s) {
  s.placement.gradients = s.placement.parameters;
  return option_text(field(FieldId::grad_placement), s);
}

constexpr Rule kRules[] = {
    // What says nothing beside another option.
    {"chunk-size", kAny, "chunk-bytes", kAny, Broken::both_given, "and {} both set the chunk size", "keep one of them"},
    {"chunk-size|chunk-bytes", kAny, "unit", other_than("chunk"), Broken::if_given, "has no meaning for {}",
     "--unit chunk, or leave --{} out"},
    {"distributed-storage", one_of("true"), "unit", other_than("chunk"), Broken::both_given,
     "is about chunks, and {} makes none", "--unit chunk, or leave --{} out"},
    {"prefetch", other_than("0|1"), "stage", one_of("0|1|2"), Broken::both_given,
     "has nothing to run ahead of: {} gathers no parameters", "--stage 3, or leave --{} out",
     "placement|param-placement|grad-placement|optimizer-placement"},
    {"partition", one_of("parameter"), "stage", one_of("0"), Broken::both_given,
     "says who owns which optimizer state, and {} leaves all of it on every rank", "--stage 1, or leave --{} out"},
    {"tensor-parallel-layout", kAny, "tensor-parallel", one_of("1"), Broken::both_given,
     "says how ranks split a model, and {} splits none", "--tensor-parallel 2, or leave --{} out"},
    {"param-placement|grad-placement|optimizer-placement", other_than("device"), "placement", one_of("device"),
     Broken::both_given, "says another memory than {}", "--placement static"},
    {"param-placement|grad-placement|optimizer-placement", other_than("host"), "placement", one_of("host"),
     Broken::both_given, "says another memory than {}", "--placement static"},
    {"gpu-margin-mem-ratio|from-trace", kAny, "placement", other_than("auto"), Broken::if_given,
     "has no meaning for {}", "--placement auto, or leave --{} out"},
    {"disk-path", kAny, "optimizer-placement", other_than("disk"), Broken::if_given,
     "is for optimizer state on disk, and {} puts none there", "--optimizer-placement disk, or leave --{} out"},
    // What no plan can be made of.
    {"shard-group", other_than("0"), "stage", one_of("0"), Broken::by_values, "shards, but {} shards nothing",
     "--stage 3"},
    {"shard-group", other_than("0"), "partition", one_of("parameter"), Broken::by_values,
     "cuts flats, but {} gives away whole parameters", "--partition flat"},
    {"fp32-reduce-scatter", one_of("true"), "precision", one_of("fp32|tf32"), Broken::by_values,
     "widens 16-bit gradients, but {} has none", "--precision bf16"},
    {"partition", one_of("parameter"), "stage", one_of("2|3"), Broken::by_values, "belongs to stage 1, and not to {}",
     "--stage 1"},
    {"chunk-owner", one_of("rank"), "stage", one_of("0"), Broken::by_values,
     "gives whole units to single ranks, but {} keeps all of them on every rank", "--stage 3"},
    {"chunk-owner", one_of("rank"), "partition", one_of("parameter"), Broken::by_values,
     "gives whole units to single ranks, but {} gives away single parameters", "--partition flat"},
    {"chunk-owner", one_of("rank"), "distributed-storage", one_of("false"), Broken::by_values,
     "gives whole units to single ranks, but {} keeps all of them on every rank", "leave one of them out"},
    {"distributed-storage", one_of("false"), "unit", other_than("chunk"), Broken::by_values,
     "keeps every chunk whole on every rank, but {} makes no chunks", "--unit chunk, or --stage 0"},
    {"distributed-storage", one_of("false"), "shard-group", other_than("0"), Broken::by_values,
     "keeps every chunk whole on every rank, but {} shards inside groups", "leave one of them out"},
    {"distributed-storage", one_of("false"), "partition", one_of("parameter"), Broken::by_values,
     "keeps every chunk whole on every rank, but {} gives optimizer state to single ranks", "--partition flat"},
    {"distributed-storage", one_of("false"), "keep-gathered", one_of("true"), Broken::by_values,
     "keeps every chunk whole on every rank, but {} is about units that are gathered", "leave one of them out"},
    {"distributed-storage", one_of("false"), "reuse-fp16-shard", one_of("true"), Broken::by_values,
     "keeps every chunk whole on every rank, but {} is about shards", "leave one of them out"},
    {"distributed-storage", one_of("false"), "reduce-scatter-bucket-size-mb", other_than("0"), Broken::by_values,
     "keeps every chunk whole on every rank, but {} is about gradients that are scattered", "leave one of them out"},
    {"keep-gathered", one_of("true"), "stage", one_of("0|1|2"), Broken::by_values,
     "keeps units after they were gathered for forward, but {} gathers none for it", "--stage 3"},
    {"reuse-fp16-shard", one_of("true"), "precision", one_of("fp32|tf32"), Broken::by_values,
     "puts the gradient's shard where the 16-bit parameters' was, but {} has no masters to make the parameters from "
     "again",
     "--precision bf16"},
    {"reuse-fp16-shard", one_of("true"), "stage", one_of("0|1|2"), Broken::by_values,
     "puts the gradient's shard where the 16-bit parameters' was, but {} keeps all parameters on every rank",
     "--stage 3"},
    {"reuse-fp16-shard", one_of("true"), "fp32-reduce-scatter", one_of("true"), Broken::by_values,
     "puts the gradient's shard where the 16-bit parameters' was, but {} makes gradients twice as large",
     "leave one of them out"},
    {"reuse-fp16-shard",
     one_of("true"),
     "global-batch",
     kAny,
     Broken::by_values,
     "puts the gradient's shard where the 16-bit parameters' was, but {} takes several micro-steps, which need the "
     "parameters again",
     "",
     {},
     takes_several_micro_steps,
     take_one_micro_step},
    {"grad-placement",
     kAny,
     "param-placement",
     kAny,
     Broken::by_values,
     "moves gradients, which --reuse-fp16-shard keeps in their parameters' place, but {} says where that is",
     "",
     {},
     moves_reused_shards,
     move_gradients_too},
    {"reduce-scatter-bucket-size-mb", other_than("0"), "stage", one_of("0|1"), Broken::by_values,
     "reduces units together after every micro-step, but {} reduces them once a step", "--stage 2"},
    {"reduce-scatter-bucket-size-mb", other_than("0"), "chunk-owner", one_of("rank"), Broken::by_values,
     "reduces units together after every micro-step, but {} sends them to different ranks", "--chunk-owner split"},
};

}  // namespace

std::span<const Rule> rules() {
  return kRules;
}

std::vector<std::string_view> words_in(std::string_view list) {
  std::vector<std::string_view> words;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find('|'), list.size());
    words.push_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return words;
}

bool Values::hold(std::string_view value) const {
  const std::vector<std::string_view> words = words_in(list);
  return (std::ranges::find(words, value) != words.end()) == listed;
}

Result<void> check_rules(const Strategy& s) {
  for (const Rule& rule : kRules) {
    if (rule.broken != Broken::by_values) continue;
    const Field* const field = find_field(rule.options);
    const Field* const other = find_field(rule.other);
    assert(field != nullptr && other != nullptr);
    if (!rule.values.hold(value_text(*field, s)) || !rule.others.hold(value_text(*other, s))) continue;
    if (rule.also != nullptr && !rule.also(s)) continue;
    const std::size_t gap = rule.why.find("{}");
    return contradiction_of({option_piece(*field, s), ' ' + std::string(rule.why.substr(0, gap)),
                             option_piece(*other, s), std::string(rule.why.substr(gap + 2))},
                            "strategy", rule.mend != nullptr ? rule.mend(s) : std::string(rule.help));
  }
  return {};
}

}  // namespace shard::plan
