// The keys of a DeepSpeed configuration: what each becomes, or why it changes nothing here.
#include <cmath>

#include "sim/foreign/deepspeed.h"

namespace shard::foreign {
namespace {

// Reasons that many keys have.
constexpr std::string_view kPrints = "what is logged changes neither memory nor time";
constexpr std::string_view kCheckpoint = "about saving and loading, which is no part of a step";
constexpr std::string_view kFetch =
    "how DeepSpeed orders its gathers: Shardscope gathers unit by unit (--unit, --prefetch)";
constexpr std::string_view kOverlap =
    "Shardscope always overlaps communication with computation where the plan lets it";
constexpr std::string_view kGather =
    "updated parameters are always gathered from their shards, unit by unit; DeepSpeed's bucket of it is not modelled";
constexpr std::string_view kQuantized = "quantized communication is not modelled: traffic is predicted at full width";
constexpr std::string_view kCompression = "compression and quantization of the model are not modelled";
constexpr std::string_view kCurriculum = "sequences keep one length here (--sequence)";
constexpr std::string_view kRecompute =
    "counts only where the model's own code calls deepspeed.checkpointing: --recompute block says here that it does";
constexpr std::string_view kInference = "of inference, not of a training step";
constexpr std::string_view kPinned =
    "host memory is always pinned here; where DeepSpeed's is told, as its optimizer's is";
constexpr std::string_view kSwap = "how DeepSpeed stages data on its way to host or disk: not modelled";
constexpr std::string_view kTuning =
    "DeepSpeed's autotuner tries strategies; shardscope search and simulate predict them";
constexpr std::string_view kComment = "a comment";
constexpr std::string_view kOptimizerKnob = "of the optimizer's arithmetic: changes neither memory nor time";

constexpr Row kDeepSpeedRows[] = {
    // Batch numbers are settled together.
    {"/train_batch_size", "global-batch", later, "sequences of a step"},
    {"/train_micro_batch_size_per_gpu", "micro-batch", later, "sequences per rank and micro-step; auto: 8"},
    {"/gradient_accumulation_steps", "global-batch", later, "micro-batch x steps x ranks; auto: 1"},
    // Sharding.
    {"/zero_optimization", "stage", take_zero_flag, "true: stage 1, as DeepSpeed reads it; false: 0"},
    {"/zero_optimization/stage", "stage", take_stage, "the same"},
    {"/zero_optimization/reduce_bucket_size", "reduce-scatter-bucket-size-mb", later,
     "stages 2 and 3, in elements of the gradient; auto: hidden size squared"},
    {"/zero_optimization/stage3_prefetch_bucket_size", "stage3-prefetch-bucket-size", later,
     "stage 3, elements, where DeepSpeed's memory is told; auto: 0.9 times the hidden size squared; 0: --prefetch 0"},
    {"/zero_optimization/prefetch_bucket_size", "stage3-prefetch-bucket-size", later, "the same"},
    {"/zero_optimization/mics_shard_size", "shard-group", take_shard_group, "ranks that share shards; -1: all"},
    {"/zero_optimization/mics_hierarchical_params_gather", "", nullptr, kFetch},
    {"/zero_optimization/zero_hpz_partition_size", "", nullptr,
     "a second copy of the parameters in each node is not modelled; it takes 2 bytes per parameter and partition"},
    {"/zero_optimization/stage3_param_persistence_threshold", "stage3-param-persistence-threshold", later,
     "stage 3, elements, where DeepSpeed's memory is told; auto: 10 times the hidden size"},
    {"/zero_optimization/param_persistence_threshold", "stage3-param-persistence-threshold", later, "the same"},
    {"/zero_optimization/stage3_model_persistence_threshold", "", nullptr,
     "bounds what stays gathered in DeepSpeed; here every unit is released"},
    {"/zero_optimization/model_persistence_threshold", "", nullptr,
     "bounds what stays gathered in DeepSpeed; here every unit is released"},
    {"/zero_optimization/stage3_max_live_parameters", "stage3-max-live-parameters", later,
     "stage 3, elements, where DeepSpeed's memory is told"},
    {"/zero_optimization/max_live_parameters", "stage3-max-live-parameters", later, "the same"},
    {"/zero_optimization/stage3_max_reuse_distance", "stage3-max-reuse-distance", later,
     "stage 3, elements, where DeepSpeed's memory is told"},
    {"/zero_optimization/max_reuse_distance", "stage3-max-reuse-distance", later, "the same"},
    {"/zero_optimization/sub_group_size", "sub-group-size", later,
     "stage 3, elements, where DeepSpeed's memory is told"},
    {"/zero_optimization/module_granularity_threshold", "", nullptr, kFetch},
    {"/zero_optimization/use_all_reduce_for_fetch_params", "", nullptr, kFetch},
    {"/zero_optimization/stage3_use_all_reduce_for_fetch_params", "", nullptr, kFetch},
    {"/zero_optimization/allgather_sequential", "", nullptr, kFetch},
    {"/zero_optimization/leaf_module/**", "", nullptr, kFetch},
    {"/zero_optimization/memory_efficient_linear", "", nullptr, "linear layers keep here what their backward reads"},
    {"/zero_optimization/contiguous_gradients", "", nullptr, "gradients always lie in flat buffers here"},
    {"/zero_optimization/reduce_scatter", "", nullptr,
     "gradients of stages 2 and 3 are always scattered as they are reduced here"},
    {"/zero_optimization/use_multi_rank_bucket_allreduce", "", nullptr,
     "DeepSpeed all-reduces buckets of stages 1 and 2; here they are scattered as they are reduced"},
    {"/zero_optimization/allgather_partitions", "", nullptr, kGather},
    {"/zero_optimization/allgather_bucket_size", "", nullptr, kGather},
    {"/zero_optimization/allgather_size", "", nullptr, kGather},
    {"/zero_optimization/overlap_comm", "", nullptr, kOverlap},
    {"/zero_optimization/round_robin_gradients", "", nullptr, "how DeepSpeed spreads copies to the host over ranks"},
    {"/zero_optimization/zero_quantized_weights", "", nullptr, kQuantized},
    {"/zero_optimization/zero_quantized_nontrainable_weights", "", nullptr, kQuantized},
    {"/zero_optimization/zero_quantized_gradients", "", nullptr, kQuantized},
    {"/zero_optimization/zeropp_loco_param/**", "", nullptr, kQuantized},
    {"/zero_optimization/ignore_unused_parameters", "", nullptr, "every parameter is used here"},
    {"/zero_optimization/legacy_stage1", "", nullptr, "an older form of stage 1 is not modelled"},
    {"/zero_optimization/load_from_fp32_weights", "", nullptr, kCheckpoint},
    {"/zero_optimization/elastic_checkpoint", "", nullptr, kCheckpoint},
    {"/zero_optimization/pipeline_loading_checkpoint", "", nullptr, kCheckpoint},
    {"/zero_optimization/stage3_gather_16bit_weights_on_model_save", "", nullptr, kCheckpoint},
    {"/zero_optimization/gather_16bit_weights_on_model_save", "", nullptr, kCheckpoint},
    {"/zero_optimization/stage3_gather_fp16_weights_on_model_save", "", nullptr, kCheckpoint},
    {"/zero_optimization/override_module_apply", "", nullptr, "about building the model, which is no part of a step"},
    {"/zero_optimization/log_trace_cache_warnings", "", nullptr, kPrints},
    {"/zero_optimization/zenflow/**", "", nullptr, "ZenFlow's delayed steps are not modelled"},
    {"/zero_optimization/save_muon_momentum_buffer_in_memory", "", nullptr, kOptimizerKnob},
    // Placement.
    {"/zero_optimization/offload_optimizer/device", "optimizer-placement", later,
     "cpu: host, gradients too; nvme: disk, with nvme_path as --disk-path"},
    {"/zero_optimization/offload_optimizer/ratio", "optimizer-placement", later, "what is not offloaded stays"},
    {"/zero_optimization/offload_optimizer/nvme_path", "disk-path", later, "with device nvme"},
    {"/zero_optimization/offload_optimizer/pin_memory", "pin-memory", later,
     "where DeepSpeed's memory is told; pinned here always"},
    {"/zero_optimization/offload_optimizer/*", "", nullptr, kSwap},
    {"/zero_optimization/offload_param/device", "param-placement", later, "cpu: host, in stage 3"},
    {"/zero_optimization/offload_param/pin_memory", "", nullptr, kPinned},
    {"/zero_optimization/offload_param/*", "", nullptr, kSwap},
    {"/zero_optimization/cpu_offload", "optimizer-placement", later, "true: host, gradients too"},
    {"/zero_optimization/cpu_offload_params", "param-placement", later, "true: host, in stage 3"},
    {"/zero_optimization/cpu_offload_param", "param-placement", later, "the same"},
    {"/zero_optimization/cpu_offload_use_pin_memory", "pin-memory", later, "the same"},
    // Numbers.
    {"/fp16/enabled", "precision", later, "true: fp16; auto: --precision, else the model's config.json"},
    {"/bf16/enabled", "precision", later, "true: bf16; auto: --precision, else the model's config.json"},
    {"/bfloat16/enabled", "precision", later, "the same"},
    {"/fp16/loss_scale", "initial-scale", later,
     "0: dynamic; another number: a scale that stays, which is not modelled"},
    {"/fp16/initial_scale_power", "initial-scale", later, "2 to this power"},
    {"/fp16/loss_scale_window", "growth-interval", later, "the same"},
    {"/fp16/hysteresis", "hysteresis", later, "the same"},
    {"/fp16/min_loss_scale", "min-scale", later, "the same"},
    {"/fp16/consecutive_hysteresis", "", nullptr, "the loss scale's hysteresis is refilled as it grows"},
    {"/fp16/auto_cast", "", nullptr, "inputs have the precision of the model here"},
    {"/fp16/fp16_master_weights_and_gradients", "", nullptr, "master parameters are fp32 here"},
    {"/fp16/fp16_master_weights_and_grads", "", nullptr, "master parameters are fp32 here"},
    {"/fp16/fp16", "", nullptr, "DeepSpeed reads enabled alone"},
    {"/fp16/opt_level", "", nullptr, "of Apex AMP; DeepSpeed's own fp16 has no levels"},
    {"/bf16/immediate_grad_update", "", nullptr, "of DeepSpeed's pipeline engine"},
    {"/bf16/bf16_master_weights_and_grads", "", nullptr, "master parameters are fp32 here"},
    {"/bf16/bf16_optimizer_states", "", nullptr, "optimizer state is fp32 here"},
    {"/bf16/check_grad_overflow", "", nullptr, "bf16 has no loss scale here, and no check"},
    {"/bf16/loss_scale", "", nullptr, "bf16 has no loss scale"},
    {"/bf16/initial_scale_power", "", nullptr, "bf16 has no loss scale"},
    {"/bf16/loss_scale_window", "", nullptr, "bf16 has no loss scale"},
    {"/bf16/hysteresis", "", nullptr, "bf16 has no loss scale"},
    {"/bf16/min_loss_scale", "", nullptr, "bf16 has no loss scale"},
    {"/bf16/auto_cast", "", nullptr, "inputs have the precision of the model here"},
    {"/amp/**", "", nullptr, "Apex AMP is not modelled: --precision fp16 or bf16 is what replaced it"},
    {"/torch_autocast/**", "", nullptr, "torch.autocast is not modelled: --precision bf16 stores 16 bits instead"},
    {"/data_types/grad_accum_dtype", "fp32-reduce-scatter", later,
     "fp32: gradients are widened before they are summed"},
    {"/gradient_accumulation_dtype", "fp32-reduce-scatter", later, "the same"},
    {"/communication_data_type", "fp32-reduce-scatter", later, "fp32: gradients are widened before they are summed"},
    {"/fp32_allreduce", "fp32-reduce-scatter", later, "the same; an older name"},
    {"/seq_parallel_communication_data_type", "", nullptr, "splitting sequences over ranks is not modelled"},
    {"/gradient_clipping", "clip-norm", take_clipping, "0: none; auto: 1"},
    {"/prescale_gradients", "gradient-predivide-factor", later,
     "true: divide by gradient_predivide_factor before the sum"},
    {"/gradient_predivide_factor", "gradient-predivide-factor", later, "with prescale_gradients"},
    {"/sparse_gradients", "", nullptr, "gradients of embeddings are dense here"},
    // Optimizer.
    {"/optimizer/type", "optimizer", later, "Adam (by default decoupled, so adamw), AdamW, SGD"},
    {"/optimizer/params/adam_w_mode", "optimizer", later, "false with type Adam: adam"},
    {"/optimizer/params/torch_adam", "", nullptr, "which code runs the same arithmetic"},
    {"/optimizer/params/lr", "lr", take_rate, "auto: 5e-5"},
    {"/optimizer/params/betas", "beta1", take_betas, "beta1 and beta2; auto: 0.9 and 0.999"},
    {"/optimizer/params/eps", "epsilon", take_rate, "auto: 1e-8"},
    {"/optimizer/params/weight_decay", "weight-decay", take_rate, "auto: 0"},
    {"/optimizer/params/bias_correction", "", nullptr, kOptimizerKnob},
    {"/optimizer/params/amsgrad", "", nullptr, "a third state of Adam is not modelled"},
    {"/optimizer/params/max_grad_norm", "", nullptr, "DeepSpeed clips by gradient_clipping alone"},
    {"/optimizer/params/momentum", "", nullptr, "sgd has no momentum here"},
    {"/optimizer/params/*", "", nullptr, kOptimizerKnob},
    {"/optimizer/scheduler/**", "", nullptr, "DeepSpeed looks for a scheduler beside the optimizer, not within it"},
    {"/optimizer/legacy_fusion", "", nullptr, kOptimizerKnob},
    {"/zero_allow_untested_optimizer", "", nullptr, "whether DeepSpeed warns"},
    {"/zero_force_ds_cpu_optimizer", "", nullptr, "which code runs the same arithmetic"},
    {"/scheduler/type", "lr-schedule", take_schedule,
     "WarmupLR: constant; WarmupDecayLR: linear; WarmupCosineLR: cosine"},
    {"/scheduler/params/warmup_num_steps", "warmup-steps", take_warmup, "auto: 0"},
    {"/scheduler/params/warmup_max_lr", "lr", take_rate, "auto: 5e-5"},
    {"/scheduler/params/*", "", nullptr,
     "the rate changes neither memory nor time; train's schedules have no such number"},
    // Several ranks for one model.
    {"/tensor_parallel/autotp_size", "tensor-parallel", take_tensor_parallel, "0 and 1: none"},
    {"/tensor_parallel/**", "", nullptr, "how DeepSpeed splits layers; --tensor-parallel-layout says it here"},
    {"/pipeline/**", "", nullptr, "pipelines of layers are not modelled"},
    {"/sequence_parallel_size", "", nullptr, "splitting sequences over ranks is not modelled"},
    {"/data_parallel_size", "", nullptr, "follows from --world-size and --tensor-parallel"},
    {"/use_data_before_expert_parallelism", "", nullptr, "how DeepSpeed lays experts out over ranks is not modelled"},
    // What changes neither memory nor time.
    {"/steps_per_print", "", nullptr, kPrints},
    {"/wall_clock_breakdown", "", nullptr, kPrints},
    {"/memory_breakdown", "", nullptr, kPrints},
    {"/dump_state", "", nullptr, kPrints},
    {"/timers/**", "", nullptr, kPrints},
    {"/tensorboard/**", "", nullptr, kPrints},
    {"/wandb/**", "", nullptr, kPrints},
    {"/comet/**", "", nullptr, kPrints},
    {"/csv_monitor/**", "", nullptr, kPrints},
    {"/monitor_config/**", "", nullptr, kPrints},
    {"/comms_logger/**", "", nullptr, kPrints},
    {"/flops_profiler/**", "", nullptr, kPrints},
    {"/checkpoint/**", "", nullptr, kCheckpoint},
    {"/nebula/**", "", nullptr, kCheckpoint},
    {"/datastates_ckpt/**", "", nullptr, kCheckpoint},
    {"/aio/**", "", nullptr, "how DeepSpeed reads its disk; --cluster has a disk's speed"},
    {"/activation_checkpointing/**", "", nullptr, kRecompute},
    {"/autotuning/**", "", nullptr, kTuning},
    {"/elasticity/**", "", nullptr, "a step has one number of ranks (--world-size)"},
    {"/compression_training/**", "", nullptr, kCompression},
    {"/quantize_training/**", "", nullptr, kCompression},
    {"/weight_quantization/**", "", nullptr, kCompression},
    {"/eigenvalue/**", "", nullptr, kCompression},
    {"/progressive_layer_drop/**", "", nullptr, "every layer runs in every step here"},
    {"/sparse_attention/**", "", nullptr, "attention is dense here"},
    {"/curriculum_learning/**", "", nullptr, kCurriculum},
    {"/data_efficiency/**", "", nullptr, kCurriculum},
    {"/dataloader_drop_last", "", nullptr, "every batch is whole here"},
    {"/disable_allgather", "", nullptr, kGather},
    {"/hybrid_engine/**", "", nullptr, kInference},
    {"/inference/**", "", nullptr, kInference},
    {"/compile/**", "", nullptr, "what a compiler of the model fuses is not modelled"},
    {"/graph_harvesting", "", nullptr, "what a graph of kernels saves is not modelled"},
    {"/vocabulary_size", "", nullptr, "the model's own is taken"},
    {"/seed", "", nullptr, "which random numbers are drawn changes neither memory nor time"},
    {"/comment", "", nullptr, kComment},
    {"/_comment", "", nullptr, kComment},
    {"/_read_the_docs", "", nullptr, kComment},
};

}  // namespace

std::span<const Row> deepspeed_rows() {
  return kDeepSpeedRows;
}

}  // namespace shard::foreign
