// What is modelled, and the replay of it.
#include "sim/like/simulate_eager.h"

#include <algorithm>
#include <string>
#include <utility>

#include "sim/like/pytorch/linux_device.h"

namespace shard::like {
namespace {

/// Where that was asked for is told in one place: simulate_eager().
Error missing(std::string what, std::string help) {
  return {.code = Errc::contradiction,
          .what = std::move(what) + " is not modelled for eager PyTorch 2",
          .where = {},
          .help = std::move(help)};
}

Result<void> check_course(const model::Model& model, const plan::Strategy& s) {
  if (model.family != model::Family::llama || model.kv_heads != model.heads || model.attention_bias || model.mlp_bias ||
      model.tied_embeddings)
    return missing("--model-code cs336 for a model that has not its shape",
                   "a config.json of model_type llama without grouped heads, biases and tied embeddings");
  if (s.precision != plan::Precision::fp32 && s.precision != plan::Precision::tf32)
    return missing("--model-code cs336 in 16 bits", "--autocast bf16, as its loop has it");
  return {};
}

Result<void> check_hugging_face(const model::Model& model, const plan::Strategy& s, const EagerOptions& options) {
  const bool half = options.autocast || s.precision == plan::Precision::bf16 || s.precision == plan::Precision::fp16;
  if (!eager::is_known_decoder(model))
    return missing("transformers' " + model.class_name, "shardscope dryrun, which runs the model itself");
  if (const std::string unknown = eager::unknown_detail(model, options.attention); !unknown.empty())
    return missing(unknown, "shardscope dryrun, which runs the model itself");
  const bool written_out = options.attention == eager::Attention::eager || eager::lacks_sdpa(model);
  if (const std::int64_t window = eager::window_of(model);
      window > 0 && (s.sequence >= window || options.attention == eager::Attention::eager))
    return missing("a window of attention within the sequence", "a shorter --sequence");
  if (model.dropout > 0 &&
      (half || options.attention == eager::Attention::eager || model.family != model::Family::gpt2))
    return missing(
        model.family == model::Family::gpt2 ? "dropout of attention's shares" : "dropout of " + model.class_name,
        "leave --dropout out");
  if (written_out) return {};
  constexpr std::int64_t kFlashMultiple = 8, kFlashMost = 256, kEfficientMost = 128;
  if (half && (model.head_dim % kFlashMultiple != 0 || model.head_dim > kFlashMost))
    return missing("a head of " + std::to_string(model.head_dim) + " in 16 bits",
                   "a head of a multiple of 8, at most 256");
  if (half && options.machine.compute_capability < 80)
    return missing("16 bits on a card without flash attention", "--precision fp32");
  if (!half && model.kv_heads == model.heads && (model.head_dim > kEfficientMost || model.head_dim % 4 != 0))
    return missing("a head of " + std::to_string(model.head_dim) + " in fp32",
                   "a head of a multiple of 4, at most 128");
  return {};
}

Result<void> check_deepspeed(const plan::Strategy& s, const EagerOptions& options) {
  if (s.stage != 1 && s.stage != 2)
    return missing("stage " + std::to_string(s.stage) + " of DeepSpeed", "--stage 2 or 1, or --like fsdp2");
  if (options.code == eager::Code::course) return missing("--model-code cs336 under DeepSpeed", "hugging-face");
  if (options.autocast) return missing("--autocast under DeepSpeed", "--precision bf16, over fp32 masters");
  if (s.precision == plan::Precision::fp16) return missing("the loss scale of DeepSpeed's fp16", "--precision bf16");
  if (s.precision == plan::Precision::bf16 && !options.masters)
    return missing("DeepSpeed without fp32 masters", "--masters fp32");
  if (s.shard_degree() != s.world_size) return missing("sharding in groups", "a group of all ranks");
  return {};
}

Result<void> check_megatron(const model::Model& model, const plan::Strategy& s, const EagerOptions& options) {
  const std::string name(name_of(options.framework));
  const std::int64_t t = s.tensor_parallel;
  if (model.family != model::Family::gpt2) return missing("this family under " + name, "a gpt2");
  if (options.code != eager::Code::hugging_face) return missing("--model-code under " + name, "leave it out");
  if (s.precision != plan::Precision::bf16)
    return missing("another precision than bf16 under " + name, "--precision bf16");
  if (options.autocast) return missing("--autocast under " + name, "leave it out");
  if (s.recompute != plan::Recompute::none) return missing("recomputation under " + name, "--recompute none");
  if (s.stage > 1) return missing("--stage " + std::to_string(s.stage) + " under " + name, "--stage 0 or 1");
  if (s.shard_degree() != s.data_parallel()) return missing("sharding in groups", "a group of all ranks");
  if (options.sequence_parallel && t == 1)
    return missing("--sequence-parallel without tensor parallelism", "--tensor-parallel 2 or more");
  if (options.sequence_parallel && s.sequence % t != 0)
    return missing("a sequence that " + std::to_string(t) + " ranks do not divide", "--sequence of a multiple");
  if (model.heads % t != 0 || model.intermediate % t != 0)
    return missing("heads that " + std::to_string(t) + " ranks do not divide", "a smaller --tensor-parallel");
  return {};
}

Result<void> check_sharding(const model::Model& model, const plan::Strategy& s, const EagerOptions& options) {
  if (options.framework == eager::Framework::none) {
    if (s.world_size > 1) return missing("a world of more than one rank", "--like fsdp2, or --world-size 1");
    if (s.stage != 0) return missing("--stage " + std::to_string(s.stage), "--like fsdp2, or --stage 0");
    return {};
  }
  const std::string name(name_of(options.framework));
  if (options.framework == eager::Framework::deepspeed) return check_deepspeed(s, options);
  if (options.framework == eager::Framework::megatron) return check_megatron(model, s, options);
  if (s.world_size < 2) return missing(name + " on one rank", "--world-size 2 or more, or --like pytorch");
  if (s.stage < 2) return missing("--stage " + std::to_string(s.stage) + " under " + name, "--stage 3 or 2");
  if (options.code == eager::Code::course) return missing("--model-code cs336 under " + name, "hugging-face");
  if (options.autocast) return missing("--autocast under " + name, "--precision bf16, over fp32 shards");
  if (s.shard_degree() != s.world_size) return missing("sharding in groups", "a group of all ranks");
  if (model.layers < 1) return missing("a model without blocks", "--like pytorch");
  return {};
}

Result<void> check(const model::Model& model, const plan::Strategy& s, const EagerOptions& options) {
  if (model.family == model::Family::mlp) return missing("an mlp", "--like pytorch@1.8");
  if (model.not_simulated) return *model.not_simulated;
  if (Result<void> ok = check_sharding(model, s, options); !ok) return ok;
  if (s.accumulation() > 1) return missing("gradient accumulation", "leave --global-batch out");
  if (s.recompute == plan::Recompute::selective)
    return missing("selective activation checkpointing", "--recompute block or none");
  if (s.recompute == plan::Recompute::block && options.code == eager::Code::course)
    return missing("activation checkpointing of --model-code cs336", "--recompute none");
  if (options.code == eager::Code::course && model.dropout > 0)
    return missing("dropout of --model-code cs336", "leave --dropout out");
  if (options.autocast && s.precision != plan::Precision::fp32)
    return missing("--autocast with parameters in 16 bits", "--precision fp32");
  if (!s.freeze.empty()) return missing("a frozen parameter", "leave --freeze out");
  if (options.framework == eager::Framework::megatron) return {};
  return options.code == eager::Code::course ? check_course(model, s) : check_hugging_face(model, s, options);
}

eager::Scalar scalar_of(plan::Precision precision) {
  switch (precision) {
    case plan::Precision::fp32:
    case plan::Precision::tf32: return eager::Scalar::f32;
    case plan::Precision::bf16: return eager::Scalar::bf16;
    case plan::Precision::fp16: return eager::Scalar::f16;
  }
  return eager::Scalar::f32;
}

eager::Rule rule_of(plan::OptimizerKind optimizer) {
  switch (optimizer) {
    case plan::OptimizerKind::sgd: return eager::Rule::sgd;
    case plan::OptimizerKind::adam: return eager::Rule::adam;
    case plan::OptimizerKind::adamw: return eager::Rule::adamw;
  }
  return eager::Rule::adamw;
}

eager::ShardingOptions sharding_of(const plan::Strategy& s, const EagerOptions& options) {
  const eager::Scalar compute = scalar_of(s.precision);
  const eager::Scalar wide = options.masters ? eager::Scalar::f32 : compute;
  return {.framework = options.framework,
          .ranks = options.framework == eager::Framework::megatron ? static_cast<std::int32_t>(s.data_parallel())
                                                                   : s.world_size,
          .compute = compute,
          .resting = wide,
          .reduced = wide,
          .reshard_after_forward = s.stage == 3,
          .original_parameters = options.original_parameters,
          .distributed_optimizer = s.stage == 1,
          .rule = rule_of(s.optimizer),
          .update = options.update,
          .stage = s.stage,
          .reduce_bucket = options.reduce_bucket};
}

}  // namespace

Result<LikeResult> simulate_eager(std::shared_ptr<const model::Model> model, const plan::Strategy& s,
                                  const EagerOptions& options) {
  if (s.dropout > 0) {
    auto dropping = std::make_shared<model::Model>(*model);
    dropping->dropout = s.dropout;
    model = std::move(dropping);
  }
  if (Result<void> ok = check(*model, s, options); !ok) {
    Error error = ok.error();
    if (error.where.empty()) error.where = "--like " + std::string(name_of(options.framework));
    return error;
  }
  std::optional<eager::Scalar> autocast;
  if (options.autocast) autocast = eager::Scalar::bf16;
  const eager::Run run =
      eager::run(model, {.machine = options.machine,
                         .code = options.framework == eager::Framework::megatron ? eager::Code::megatron : options.code,
                         .program = {.batch = s.micro_batch,
                                     .sequence = s.sequence,
                                     .precision = scalar_of(s.precision),
                                     .attention = options.attention,
                                     .wide_logits = options.wide_logits,
                                     .checkpoint = s.recompute == plan::Recompute::block,
                                     .autocast = autocast},
                         .rule = rule_of(s.optimizer),
                         .update = options.update,
                         .sharding = sharding_of(s, options),
                         .megatron = {.tensor = s.tensor_parallel,
                                      .sequence_parallel = options.sequence_parallel,
                                      .dropout = model->dropout},
                         .set_to_none = options.set_to_none});
  std::optional<SnapshotWriter> writer;
  const auto on = [&](std::optional<Bytes> capacity) {
    LinuxDevice device(capacity);
    CachingAllocatorOptions allocator = options.allocator;
    if (!capacity) allocator.allowed.reset();
    if (options.snapshot) writer.emplace("PyTorch " + std::string(name_of(options.framework)));
    return replay(run.plan, run.marks, allocator, device, run.streams, writer ? &*writer : nullptr);
  };
  Result<Replay> replayed = on(options.device_capacity);
  const bool fits = replayed.has_value() || replayed.error().code != Errc::does_not_fit;
  if (!fits) replayed = on(std::nullopt);
  if (!replayed) return replayed.error();
  LikeResult result{.framework = std::string(name_of(options.framework)),
                    .model = model->name,
                    .strategy = s,
                    .moments = std::move(replayed->moments),
                    .statistics = replayed->statistics,
                    .optimizer_state = Bytes{0},
                    .collectives = {},
                    .device_capacity = options.device_capacity,
                    .fits = fits,
                    .steps = "three steps"};
  if (writer) result.snapshot = std::make_shared<PredictedSnapshot>(writer->take());
  // A moment's maxima are of its own phase; the run's are the highest of them.
  for (const Moment& m : result.moments) {
    AllocatorStatistics& all = result.statistics;
    all.allocated.peak = std::max(all.allocated.peak, m.max_allocated);
    all.reserved.peak = std::max(all.reserved.peak, m.max_reserved);
  }
  for (const plan::Buffer& buffer : run.plan.buffers)
    if (buffer.category == Category::optimizer_state) result.optimizer_state += buffer.bytes;
  return result;
}

}  // namespace shard::like
