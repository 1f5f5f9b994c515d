// What is modelled, and the replay of it.
#include "sim/like/simulate_eager.h"

#include <string>
#include <utility>

#include "sim/like/frameworks/framework.h"

namespace shard::like {
namespace {

/// Where that was asked for is told in one place: simulate_eager().
Error missing(std::string what, std::string help) {
  return {.code = Errc::contradiction,
          .what = std::move(what) + " is not modelled for eager PyTorch 2",
          .where = {},
          .help = std::move(help)};
}

const Framework& row_of(const EagerOptions& options) {
  return options.row == nullptr ? *framework_of(options.framework) : *options.row;
}

/// NAME@VERSION.
std::string name_of(const EagerOptions& options) {
  const Framework& row = row_of(options);
  if (row.library == eager::Library::deepspeed && options.deepspeed != eager::kUsualDeepSpeed)
    return std::string(row.name) + "@" + eager::to_text(row.library, options.deepspeed);
  return options.version == eager::kNewest ? row.full_name()
                                           : std::string(row.name) + "@" + eager::to_text(options.version);
}

Result<void> check_course(const model::Model& model, const plan::Strategy& s, eager::Version version) {
  // Its einsum takes copies there that are not known; dry runs were up to 3.3 % higher.
  if (version < 209) return missing("--model-code cs336 under PyTorch " + eager::to_text(version), "2.9 or newer");
  if (model.family != model::Family::llama || model.kv_heads != model.heads || model.attention_bias || model.mlp_bias ||
      model.tied_embeddings)
    return missing("--model-code cs336 for a model that has not its shape",
                   "a config.json of model_type llama without grouped heads, biases and tied embeddings");
  if (s.precision != plan::Precision::fp32 && s.precision != plan::Precision::tf32)
    return missing("--model-code cs336 in 16 bits", "--autocast bf16, as its loop has it");
  return {};
}

Result<void> check_torchtitan(const model::Model& model, const plan::Strategy& s, const EagerOptions& options) {
  const bool known = model.class_name == "LlamaForCausalLM" || model.class_name == "Qwen3ForCausalLM";
  if (!known || model.attention_bias || model.mlp_bias || model.layers < 1)
    return missing("--model-code torchtitan of " + model.class_name, "a llama or qwen3 without biases");
  if (options.framework != eager::Framework::fsdp2 && options.framework != eager::Framework::none)
    return missing("--model-code torchtitan under " + std::string(name_of(options)), "--like fsdp2");
  if (options.autocast || s.precision != plan::Precision::bf16)
    return missing("--model-code torchtitan in another precision than bf16", "--precision bf16");
  if (s.tensor_parallel > 1) return missing("torchtitan's tensor parallelism", "--tensor-parallel 1");
  if (s.dropout > 0 || model.dropout > 0) return missing("dropout of torchtitan", "leave --dropout out");
  return {};
}

Result<void> check_transformers(const model::Model& model, const EagerOptions& options) {
  const std::string asked = "transformers " + eager::to_text(options.transformers);
  if (!eager::is_known(eager::Library::transformers, options.transformers))
    return missing(asked, "--transformers of " + eager::compared_text(eager::Library::transformers) +
                              ", or shardscope dryrun, which runs what is installed");
  const eager::Releases known = eager::transformers_of(model);
  if (options.transformers < known.oldest || options.transformers > known.newest)
    return missing(model.class_name + " of " + asked, "--transformers of " + eager::to_text(known.oldest) + " to " +
                                                          eager::to_text(known.newest) +
                                                          ", or shardscope dryrun, which runs what is installed");
  if (!eager::kAttentionWrittenOut.holds(options.transformers) && options.attention == eager::Attention::eager)
    return missing("--attention eager of " + asked, "--attention sdpa, or --transformers 5.5 or newer");
  return {};
}

Result<void> check_hugging_face(const model::Model& model, const plan::Strategy& s, const EagerOptions& options) {
  const bool half = options.autocast || s.precision == plan::Precision::bf16 || s.precision == plan::Precision::fp16;
  if (!eager::is_known_decoder(model))
    return missing("transformers' " + model.class_name, "shardscope dryrun, which runs the model itself");
  if (Result<void> ok = check_transformers(model, options); !ok) return ok;
  if (const std::string unknown = eager::unknown_detail(model, options.attention); !unknown.empty())
    return missing(unknown, "shardscope dryrun, which runs the model itself");
  const bool written_out = options.attention == eager::Attention::eager || eager::lacks_sdpa(model);
  if (const std::int64_t window = eager::window_of(model);
      window > 0 && (s.sequence >= window || options.attention == eager::Attention::eager))
    return missing("a window of attention within the sequence", "a shorter --sequence");
  if (model.dropout > 0 && (options.attention == eager::Attention::eager || model.family != model::Family::gpt2))
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
  if (s.stage < 1) return missing("stage " + std::to_string(s.stage) + " of DeepSpeed", "--stage 1, 2 or 3");
  if (s.stage == 3 && options.attention == eager::Attention::eager)
    return missing("attention written out under DeepSpeed's stage 3", "--attention sdpa");
  if (s.stage == 3 && !options.zero3.within_init && !eager::kReplacesLinear.holds(options.deepspeed))
    return missing(
        "stage 3 of DeepSpeed " + eager::to_text(eager::Library::deepspeed, options.deepspeed) + " without zero.Init",
        "--zero-init yes, or --like deepspeed@0.19.8");
  if (options.code == eager::Code::course) return missing("--model-code cs336 under DeepSpeed", "hugging-face");
  if (options.autocast) return missing("--autocast under DeepSpeed", "--precision bf16, over fp32 masters");
  if (s.precision == plan::Precision::fp16) return missing("the loss scale of DeepSpeed's fp16", "--precision bf16");
  if (s.precision == plan::Precision::bf16 && !options.masters)
    return missing("DeepSpeed without fp32 masters", "--masters fp32");
  if (s.shard_degree() != s.world_size) return missing("sharding in groups", "a group of all ranks");
  return {};
}

Result<void> check_megatron(const model::Model& model, const plan::Strategy& s, const EagerOptions& options) {
  const std::string name = name_of(options);
  const std::int64_t t = s.tensor_parallel;
  const bool llama = model.class_name == "LlamaForCausalLM" && !model.attention_bias && !model.mlp_bias;
  if (model.family != model::Family::gpt2 && !llama) return missing("this family under " + name, "a gpt2 or llama");
  if (llama && model.kv_heads % t != 0)
    return missing("fewer groups of heads than ranks", "a smaller --tensor-parallel");
  if (llama && model.dropout > 0) return missing("dropout of a llama under " + name, "leave --dropout out");
  if (options.code != eager::Code::hugging_face) return missing("--model-code under " + name, "leave it out");
  if (s.precision != plan::Precision::bf16)
    return missing("another precision than bf16 under " + name, "--precision bf16");
  if (options.autocast) return missing("--autocast under " + name, "leave it out");
  if (s.recompute != plan::Recompute::none) return missing("recomputation under " + name, "--recompute none");
  // Transformer Engine's products add to a buffer: a micro-step leaves nothing behind.
  if (s.accumulation() > 1 && !llama) return missing("gradient accumulation under " + name, "leave --global-batch out");
  if (s.clip_norm) return missing("gradient clipping under " + name, "leave --clip-norm out");
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

Result<void> check_ddp(const plan::Strategy& s, const EagerOptions& options) {
  if (s.shard_degree() != s.world_size) return missing("groups of ranks under ddp", "leave --shard-group out");
  if (s.stage != 0) return missing("--stage " + std::to_string(s.stage) + " of ddp", "--stage 0, or --like fsdp2");
  if (options.code == eager::Code::course) return missing("--model-code cs336 under ddp", "hugging-face");
  return {};
}

/// What of the model's data rests on the host; none for what no framework has.
std::optional<eager::Offload> offload_of(const plan::Placement& p) {
  if (p.policy == plan::PlacementPolicy::automatic) return std::nullopt;
  const plan::Share usual = p.policy == plan::PlacementPolicy::host ? plan::kOnHost : plan::kOnDevice;
  const plan::Share parameters = p.parameters.value_or(usual), gradients = p.gradients.value_or(usual);
  const plan::Share optimizer = p.optimizer.value_or(usual);
  if (p.all_on_device()) return eager::Offload::none;
  if (gradients != plan::kOnHost || optimizer != plan::kOnHost) return std::nullopt;
  if (parameters == plan::kOnDevice) return eager::Offload::optimizer;
  return parameters == plan::kOnHost ? std::optional(eager::Offload::all) : std::nullopt;
}

Result<void> check_deepspeed_offload(const plan::Strategy& s, std::optional<eager::Offload> offload) {
  if (!offload)
    return missing(
        "DeepSpeed with a part of its optimizer on the host, with its states on disk, or with parameters alone "
        "there,",
        "--grad-placement host --optimizer-placement host, in stage 3 --param-placement host, too");
  if (offload == eager::Offload::all && s.stage != 3)
    return missing("--placement host or --param-placement host under DeepSpeed's stage " + std::to_string(s.stage),
                   "--stage 3");
  return {};
}

Result<void> check_offload(const plan::Strategy& s, const EagerOptions& options) {
  const std::optional<eager::Offload> offload = offload_of(s.placement);
  const std::string name = name_of(options);
  if (offload == eager::Offload::none) {
    if (options.pin_memory == Pin::usual) return {};
    return missing("--pin-memory with all on the GPU", "--placement host, or leave --pin-memory out");
  }
  if (options.framework == eager::Framework::deepspeed) return check_deepspeed_offload(s, offload);
  if (options.framework != eager::Framework::fsdp1 && options.framework != eager::Framework::fsdp2)
    return missing("model data in host memory under " + name, "--placement device, or --like fsdp2");
  if (offload != eager::Offload::all)
    return missing(s.placement.policy == plan::PlacementPolicy::automatic
                       ? "--placement auto under " + name
                       : "--param-placement, --grad-placement and --optimizer-placement that differ under " + name,
                   "--placement host, which all of them follow");
  if (options.framework == eager::Framework::fsdp2) return {};
  if (options.pin_memory == Pin::no)
    return missing("pageable memory of --pin-memory false under " + name, "leave it out: what is offloaded is pinned");
  if (s.accumulation() > 1)
    return missing("gradient accumulation over --placement host, whose sums " + name + " loses,",
                   "--like fsdp2, or leave --global-batch out");
  return {};
}

Result<void> check_sharding(const model::Model& model, const plan::Strategy& s, const EagerOptions& options) {
  if (options.framework == eager::Framework::none) {
    if (s.world_size > 1) return missing("a world of more than one rank", "--like ddp or fsdp2, or --world-size 1");
    if (s.stage != 0) return missing("--stage " + std::to_string(s.stage), "--like fsdp2, or --stage 0");
    return {};
  }
  if (options.framework == eager::Framework::other) return {};
  const std::string name = name_of(options);
  if (options.framework == eager::Framework::deepspeed) return check_deepspeed(s, options);
  if (options.framework == eager::Framework::megatron) return check_megatron(model, s, options);
  if (s.unit != plan::UnitKind::module)
    return missing("--unit " + std::string(plan::to_string(s.unit)) + " under " + name,
                   "--unit module: blocks are wrapped");
  const bool may_wait = options.framework == eager::Framework::fsdp1;
  if (s.prefetch != 1 && !(may_wait && s.prefetch == 0))
    return missing("--prefetch " + std::to_string(s.prefetch) + " under " + name,
                   may_wait ? "--prefetch 1, the next unit, or 0" : "--prefetch 1, the next unit");
  if (s.world_size < 2) return missing(name + " on one rank", "--world-size 2 or more, or --like pytorch");
  if (options.framework == eager::Framework::ddp) return check_ddp(s, options);
  if (s.stage < 2) return missing("--stage " + std::to_string(s.stage) + " under " + name, "--stage 3 or 2");
  if (options.code == eager::Code::course) return missing("--model-code cs336 under " + name, "hugging-face");
  if (options.autocast) return missing("--autocast under " + name, "--precision bf16, over fp32 shards");
  if (s.shard_degree() < 2) return missing("a group of one rank under " + name, "--like ddp, or a larger group");
  if (model.layers < 1) return missing("a model without blocks", "--like pytorch");
  return {};
}

Result<void> check(const model::Model& model, const plan::Strategy& s, const EagerOptions& options) {
  if (model.family == model::Family::mlp) return missing("an mlp", "--like pytorch@1.8");
  if (model.not_simulated) return *model.not_simulated;
  if (Result<void> ok = check_offload(s, options); !ok) return ok;
  if (Result<void> ok = check_sharding(model, s, options); !ok) return ok;
  if (s.recompute == plan::Recompute::selective && options.code != eager::Code::torchtitan)
    return missing("selective activation checkpointing", "--recompute block or none");
  if (s.recompute == plan::Recompute::block && options.code == eager::Code::course)
    return missing("activation checkpointing of --model-code cs336", "--recompute none");
  if (options.code == eager::Code::course && model.dropout > 0)
    return missing("dropout of --model-code cs336", "leave --dropout out");
  if (options.autocast && s.precision != plan::Precision::fp32)
    return missing("--autocast with parameters in 16 bits", "--precision fp32");
  if (!s.freeze.empty()) return missing("a frozen parameter", "leave --freeze out");
  if (options.framework == eager::Framework::megatron) return {};
  if (options.code != eager::Code::hugging_face && options.transformers != eager::kUsualTransformers)
    return missing("--transformers with a --model-code that is not transformers'", "leave --transformers out");
  if (options.code != eager::Code::hugging_face && options.units_at_ends)
    return missing("--fsdp-units with a --model-code that is not transformers'", "leave --fsdp-units out");
  if (options.code == eager::Code::torchtitan) return check_torchtitan(model, s, options);
  return options.code == eager::Code::course ? check_course(model, s, options.version)
                                             : check_hugging_face(model, s, options);
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

/// torch.optim takes foreach by itself for parameters on GPUs alone.
eager::Update update_of(const plan::Strategy& s, const EagerOptions& options) {
  const bool on_gpu = offload_of(s.placement) == eager::Offload::none;
  return on_gpu || options.update == eager::Update::fused ? options.update : eager::Update::for_loop;
}

/// FSDP's CPUOffloadPolicy does, DeepSpeed's configuration by its release.
bool pins_by_default(const EagerOptions& options) {
  return options.framework == eager::Framework::fsdp1 || options.framework == eager::Framework::fsdp2 ||
         (row_of(options).library == eager::Library::deepspeed && eager::kPinsOffloaded.holds(options.deepspeed));
}

bool is_pinned(Pin pin, bool usual) {
  return pin == Pin::usual ? usual : pin == Pin::yes;
}

eager::ShardingOptions sharding_of(const model::Model& model, const plan::Strategy& s, const EagerOptions& options) {
  const eager::Scalar compute = scalar_of(s.precision);
  const eager::Scalar wide = options.masters ? eager::Scalar::f32 : compute;
  const bool in_groups = options.framework == eager::Framework::fsdp1 || options.framework == eager::Framework::fsdp2;
  const bool pinned = is_pinned(options.pin_memory, pins_by_default(options));
  const bool titan = options.code == eager::Code::torchtitan;
  return {.framework = options.framework,
          .make = row_of(options).make,
          .ranks = options.framework == eager::Framework::megatron ? static_cast<std::int32_t>(s.data_parallel())
                   : in_groups                                     ? s.shard_degree()
                                                                   : s.world_size,
          .replicated = in_groups && s.shard_degree() < s.world_size,
          .compute = compute,
          .resting = wide,
          .reduced = reduces_in_fp32(options) ? eager::Scalar::f32 : compute,
          .reshard_after_forward = s.stage == 3 && !s.keep_gathered,
          .keep_last = titan,
          .ends_apart = titan ? options.torchtitan.ends_apart && !model.tied_embeddings : options.units_at_ends,
          .original_parameters = options.original_parameters,
          .prefetch = s.prefetch > 0,
          .offload = offload_of(s.placement).value_or(eager::Offload::none),
          .pin_memory = pinned,
          .distributed_optimizer = s.stage == 1,
          .rule = rule_of(s.optimizer),
          .update = options.update,
          .clip = s.clip_norm,
          .micro_steps = s.accumulation(),
          .stage = s.stage,
          .reduce_bucket = options.reduce_bucket,
          .zero3 = options.zero3,
          .pin_parameters = is_pinned(options.pin_parameters, pinned),
          .rank = options.rank};
}

/// Of options that were checked.
std::shared_ptr<const Program> made_program(std::shared_ptr<const model::Model> model, const plan::Strategy& s,
                                            const EagerOptions& options, const eager::ShardingOptions& sharding) {
  std::optional<eager::Scalar> autocast;
  if (options.autocast) autocast = eager::Scalar::bf16;
  eager::Run run =
      eager::run(model, {.version = options.version,
                         .machine = options.machine,
                         .code = options.framework == eager::Framework::megatron ? eager::Code::megatron : options.code,
                         .program = {.batch = s.micro_batch,
                                     .sequence = s.sequence,
                                     .precision = scalar_of(s.precision),
                                     .attention = options.attention,
                                     .logits = options.logits,
                                     .transformers = options.transformers,
                                     .checkpoint = s.recompute != plan::Recompute::none,
                                     .cache = options.cache,
                                     .selective = s.recompute == plan::Recompute::selective,
                                     .torchtitan = options.torchtitan,
                                     .autocast = autocast},
                         .rule = rule_of(s.optimizer),
                         .update = update_of(s, options),
                         .sharding = sharding,
                         .megatron = {.tensor = s.tensor_parallel, .sequence_parallel = options.sequence_parallel},
                         .set_to_none = options.set_to_none,
                         .clip = s.clip_norm,
                         .micro_steps = s.accumulation()});
  run.program.origin = {.framework = name_of(options),
                        .model = model->name,
                        .steps = "three steps",
                        .world_size = s.world_size,
                        .uncertainty_ppm = kEagerUncertaintyPpm};
  return std::make_shared<const Program>(std::move(run.program));
}

}  // namespace

std::optional<eager::Framework> eager_framework(std::string_view name) {
  for (const Framework* const framework : named_frameworks(name))
    if (framework->teller == Teller::eager) return framework->sharding;
  return std::nullopt;
}

std::vector<std::string> not_compared(const EagerOptions& options) {
  using enum eager::Library;
  std::vector<std::string> notes;
  if (!eager::is_compared(deepspeed, options.deepspeed))
    notes.push_back("DeepSpeed " + eager::to_text(deepspeed, options.deepspeed) + " was not compared; " +
                    eager::compared_text(deepspeed) + " were");
  else if (options.deepspeed != eager::kUsualDeepSpeed)
    notes.push_back("DeepSpeed " + eager::to_text(deepspeed, options.deepspeed) +
                    " was compared without offloading, clipping and accumulation");
  if (options.code != eager::Code::hugging_face || options.transformers == eager::kUsualTransformers) return notes;
  const std::string asked = "transformers " + eager::to_text(options.transformers);
  if (!eager::is_compared(eager::Library::transformers, options.transformers))
    notes.push_back(asked + " was not compared; the releases around it have the same rules");
  if (options.framework != eager::Framework::none)
    notes.push_back(asked + " was compared on one GPU, not under " + name_of(options));
  if (options.version != eager::kNewest)
    notes.push_back(asked + " was compared over PyTorch " + eager::to_text(eager::kNewest) + ", not over " +
                    eager::to_text(options.version));
  return notes;
}

bool is_same_program(EagerOptions a, const EagerOptions& b) {
  a.allocator = b.allocator;
  a.device_capacity = b.device_capacity;
  a.snapshot = b.snapshot;
  return a == b;
}

Result<LikeResult> simulate_eager(std::shared_ptr<const model::Model> model, const plan::Strategy& s,
                                  const EagerOptions& options, std::shared_ptr<const Program> made) {
  if (s.dropout > 0) {
    auto dropping = std::make_shared<model::Model>(*model);
    dropping->dropout = s.dropout;
    model = std::move(dropping);
  }
  const eager::ShardingOptions sharding = sharding_of(*model, s, options);
  Result<void> ok = check(*model, s, options);
  if (ok && row_of(options).check != nullptr) ok = row_of(options).check(sharding);
  if (!ok) {
    Error error = ok.error();
    if (error.where.empty()) error.where = "--like " + name_of(options);
    return error;
  }
  if (made == nullptr) made = made_program(model, s, options, sharding);
  Result<MemoryAnswer> answer = replay(
      *made,
      {.allocator = options.allocator, .device_capacity = options.device_capacity, .snapshot = options.snapshot});
  if (!answer) return answer.error();
  LikeResult result{std::move(*answer)};
  result.framework = made->origin.framework;
  result.model = model->name;
  result.strategy = s;
  result.steps = made->origin.steps;
  result.program = std::move(made);
  return result;
}

}  // namespace shard::like
