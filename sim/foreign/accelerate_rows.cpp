// The keys of a configuration of Hugging Face accelerate: what each becomes, or why it changes nothing here.
#include "sim/foreign/accelerate.h"

namespace shard::foreign {
namespace {

constexpr std::string_view kLaunch = "how processes are started, which shardscope train does by itself";
constexpr std::string_view kTpu = "of TPUs";
constexpr std::string_view kStateFiles = "about loading and saving, which is no part of a step";
constexpr std::string_view kCompiler = "what a compiler of the model fuses is not modelled";
constexpr std::string_view kSageMaker = "of a cloud's launcher";
constexpr std::string_view kMachines = "--cluster says how ranks lie on machines; of hybrid sharding, the group's size";
constexpr std::string_view kDevice = "--cluster and --device say what ranks compute on";
constexpr std::string_view kPipeline = "pipelines of layers are not modelled";
constexpr std::string_view kSequence = "splitting sequences over ranks is not modelled";
constexpr std::string_view kFp8 = "8-bit products are not modelled";
constexpr std::string_view kMegatronRun = "changes neither memory nor time of a step";

constexpr Row kAccelerateRows[] = {
    {"/distributed_type", "stage", take_distributed_type,
     "MULTI_GPU: 0; DEEPSPEED, FSDP, MEGATRON_LM: as their sections say"},
    {"/num_processes", "world-size", take_count, "the same"},
    {"/num_machines", "", nullptr, kMachines},
    {"/mixed_precision", "precision", take_mixed_precision, "no: fp32; fp16; bf16"},
    {"/gradient_accumulation_steps", "global-batch", later, "micro-batch x steps x ranks"},
    {"/use_cpu", "", nullptr, kDevice},
    {"/compute_environment", "", nullptr, kLaunch},
    {"/debug", "", nullptr, "checks of collectives, which cost time only where they are on"},
    {"/downcast_bf16", "", nullptr, kTpu},
    {"/enable_cpu_affinity", "", nullptr, kLaunch},
    {"/machine_rank", "", nullptr, kLaunch},
    {"/main_process_ip", "", nullptr, kLaunch},
    {"/main_process_port", "", nullptr, kLaunch},
    {"/main_training_function", "", nullptr, kLaunch},
    {"/rdzv_backend", "", nullptr, kLaunch},
    {"/same_network", "", nullptr, kLaunch},
    {"/gpu_ids", "", nullptr, kLaunch},
    {"/command_file", "", nullptr, kLaunch},
    {"/commands", "", nullptr, kLaunch},
    {"/mpirun_config/**", "", nullptr, kLaunch},
    {"/mpirun_hostfile", "", nullptr, kLaunch},
    {"/mpirun_ccl", "", nullptr, kLaunch},
    {"/num_cpu_threads_per_process", "", nullptr, kLaunch},
    {"/deepspeed_hostfile", "", nullptr, kLaunch},
    {"/tpu_env", "", nullptr, kTpu},
    {"/tpu_name", "", nullptr, kTpu},
    {"/tpu_zone", "", nullptr, kTpu},
    {"/tpu_vm", "", nullptr, kTpu},
    {"/tpu_use_cluster", "", nullptr, kTpu},
    {"/tpu_use_sudo", "", nullptr, kTpu},
    {"/dynamo_backend", "", nullptr, kCompiler},
    {"/dynamo_config/**", "", nullptr, kCompiler},
    {"/ipex_config/**", "", nullptr, kCompiler},
    {"/fp8_config/**", "", nullptr, kFp8},
    {"/ec2_instance_type", "", nullptr, kSageMaker},
    {"/iam_role_name", "", nullptr, kSageMaker},
    {"/image_uri", "", nullptr, kSageMaker},
    {"/profile", "", nullptr, kSageMaker},
    {"/region", "", nullptr, kSageMaker},
    {"/base_job_name", "", nullptr, kSageMaker},
    {"/py_version", "", nullptr, kSageMaker},
    {"/pytorch_version", "", nullptr, kSageMaker},
    {"/transformers_version", "", nullptr, kSageMaker},
    {"/sagemaker_inputs_file", "", nullptr, kSageMaker},
    {"/sagemaker_metrics_file", "", nullptr, kSageMaker},
    {"/additional_args/**", "", nullptr, kSageMaker},
    // Several ways to divide the ranks.
    {"/parallelism_config/parallelism_config_tp_size", "tensor-parallel", take_degree, "the same"},
    {"/parallelism_config/parallelism_config_dp_shard_size", "shard-group", take_degree, "ranks that share shards"},
    {"/parallelism_config/parallelism_config_dp_replicate_size", "", nullptr,
     "follows from the ranks and --shard-group"},
    {"/parallelism_config/parallelism_config_cp_size", "", just_one, kSequence},
    {"/parallelism_config/parallelism_config_sp_size", "", just_one, kSequence},
    {"/parallelism_config/**", "", nullptr, kSequence},
    // DeepSpeed by accelerate.
    {"/deepspeed_config/deepspeed_config_file", "", later, "that file's keys; where it is absent, left out"},
    {"/deepspeed_config/zero_stage", "stage", take_section_stage, "the same; 2 where it is not said"},
    {"/deepspeed_config/offload_optimizer_device", "optimizer-placement", later,
     "cpu: host, gradients too; nvme: disk"},
    {"/deepspeed_config/offload_optimizer_nvme_path", "disk-path", later, "with device nvme"},
    {"/deepspeed_config/offload_param_device", "param-placement", later, "cpu: host, in stage 3"},
    {"/deepspeed_config/offload_param_nvme_path", "", nullptr, "only optimizer state rests on disk here"},
    {"/deepspeed_config/gradient_accumulation_steps", "global-batch", later, "micro-batch x steps x ranks; auto: 1"},
    {"/deepspeed_config/gradient_clipping", "clip-norm", take_section_clipping, "0: none; auto: 1"},
    {"/deepspeed_config/zero3_init_flag", "", nullptr, "about building the model, which is no part of a step"},
    {"/deepspeed_config/zero3_save_16bit_model", "", nullptr, kStateFiles},
    {"/deepspeed_config/deepspeed_multinode_launcher", "", nullptr, kLaunch},
    {"/deepspeed_config/deepspeed_hostfile", "", nullptr, kLaunch},
    {"/deepspeed_config/deepspeed_exclusion_filter", "", nullptr, kLaunch},
    {"/deepspeed_config/deepspeed_inclusion_filter", "", nullptr, kLaunch},
    {"/deepspeed_config/deepspeed_moe_layer_cls_names", "", nullptr, "what is gathered together is --unit's"},
    {"/deepspeed_config/**", "", nullptr,
     "accelerate does not read it: it belongs into a file of deepspeed_config_file"},
    // FSDP.
    {"/fsdp_config/fsdp_sharding_strategy", "stage", take_sharding_strategy,
     "FULL_SHARD: 3; SHARD_GRAD_OP: 3 with --keep-gathered; NO_SHARD: 0; HYBRID_SHARD: 3 with --shard-group"},
    {"/fsdp_config/fsdp_reshard_after_forward", "keep-gathered", take_reshard,
     "true: stage 3; false: stage 3 with --keep-gathered"},
    {"/fsdp_config/fsdp_offload_params", "param-placement", take_fsdp_offload,
     "true: parameters, gradients and optimizer state in host memory"},
    {"/fsdp_config/fsdp_activation_checkpointing", "recompute", take_fsdp_recompute, "true: block"},
    {"/fsdp_config/fsdp_auto_wrap_policy", "unit", take_wrap_policy, "TRANSFORMER_BASED_WRAP: module"},
    {"/fsdp_config/fsdp_transformer_layer_cls_to_wrap", "unit", take_wrapped_class, "module: a transformer block"},
    {"/fsdp_config/fsdp_min_num_params", "", nullptr, "units are blocks or tensors here (--unit), not of a least size"},
    {"/fsdp_config/fsdp_backward_prefetch", "prefetch", take_backward_prefetch,
     "BACKWARD_PRE: 1; BACKWARD_POST, NO_PREFETCH, left out: 0; fsdp2 takes no notice"},
    {"/fsdp_config/fsdp_backward_prefetch_policy", "prefetch", take_backward_prefetch, "the same, by its older name"},
    {"/fsdp_config/fsdp_forward_prefetch", "", nullptr, "--prefetch counts forward as well as backward here"},
    {"/fsdp_config/fsdp_version", "", take_version, "2: fsdp2; else fsdp1"},
    {"/fsdp_config/fsdp_state_dict_type", "", nullptr, kStateFiles},
    {"/fsdp_config/fsdp_sync_module_states", "", nullptr, kStateFiles},
    {"/fsdp_config/fsdp_cpu_ram_efficient_loading", "", nullptr, kStateFiles},
    {"/fsdp_config/fsdp_use_orig_params", "use-orig-params", take_orig_params, "of fsdp1: what the optimizer sees"},
    {"/fsdp_config/fsdp_limit_all_gathers", "", nullptr, "gathers in flight are bounded by --prefetch here"},
    {"/fsdp_config/fsdp_ignored_modules", "", nullptr, "every parameter is sharded here"},
    // Megatron-LM by accelerate.
    {"/megatron_lm_config/megatron_lm_tp_degree", "tensor-parallel", take_degree, "the same"},
    {"/megatron_lm_config/megatron_lm_pp_degree", "", just_one, kPipeline},
    {"/megatron_lm_config/megatron_lm_num_micro_batches", "global-batch", later, "micro-batch x steps x ranks"},
    {"/megatron_lm_config/megatron_lm_gradient_clipping", "clip-norm", take_section_clipping, "0: none"},
    {"/megatron_lm_config/megatron_lm_recompute_activations", "recompute", take_megatron_recompute, "true: selective"},
    {"/megatron_lm_config/megatron_lm_use_distributed_optimizer", "stage", take_megatron_optimizer, "true: 1"},
    {"/megatron_lm_config/megatron_lm_sequence_parallelism", "", nullptr, kSequence},
    {"/megatron_lm_config/megatron_lm_seq_length", "sequence", take_degree, "the same"},
    {"/megatron_lm_config/**", "", nullptr, kMegatronRun},
};

/// The file of Hugging Face Trainer's --fsdp_config; each key with or without the prefix "fsdp_".
constexpr Row kFsdpRows[] = {
    {"/fsdp_transformer_layer_cls_to_wrap", "unit", take_wrapped_class, "module: a transformer block"},
    {"/transformer_layer_cls_to_wrap", "unit", take_wrapped_class, "module: a transformer block"},
    {"/fsdp_min_num_params", "", nullptr, "units are blocks or tensors here (--unit), not of a least size"},
    {"/min_num_params", "", nullptr, "units are blocks or tensors here (--unit), not of a least size"},
    {"/fsdp_backward_prefetch", "prefetch", take_backward_prefetch, "BACKWARD_PRE: 1; else 0"},
    {"/backward_prefetch", "prefetch", take_backward_prefetch, "BACKWARD_PRE: 1; else 0"},
    {"/fsdp_forward_prefetch", "", nullptr, "--prefetch counts forward as well as backward here"},
    {"/forward_prefetch", "", nullptr, "--prefetch counts forward as well as backward here"},
    {"/fsdp_activation_checkpointing", "recompute", take_fsdp_recompute, "true: block"},
    {"/activation_checkpointing", "recompute", take_fsdp_recompute, "true: block"},
    {"/fsdp_sharding_strategy", "stage", take_sharding_strategy, "FULL_SHARD: 3, and so on"},
    {"/fsdp_reshard_after_forward", "keep-gathered", take_reshard, "true: stage 3; false: with --keep-gathered"},
    {"/reshard_after_forward", "keep-gathered", take_reshard, "true: stage 3; false: with --keep-gathered"},
    {"/fsdp_offload_params", "param-placement", take_fsdp_offload, "true: all model data in host memory"},
    {"/cpu_offload", "param-placement", take_fsdp_offload, "true: all model data in host memory"},
    {"/fsdp_auto_wrap_policy", "unit", take_wrap_policy, "TRANSFORMER_BASED_WRAP: module"},
    {"/auto_wrap_policy", "unit", take_wrap_policy, "TRANSFORMER_BASED_WRAP: module"},
    {"/fsdp_version", "", take_version, "2: fsdp2; else fsdp1"},
    {"/version", "", take_version, "2: fsdp2; else fsdp1"},
    {"/fsdp_state_dict_type", "", nullptr, kStateFiles},
    {"/state_dict_type", "", nullptr, kStateFiles},
    {"/fsdp_sync_module_states", "", nullptr, kStateFiles},
    {"/sync_module_states", "", nullptr, kStateFiles},
    {"/fsdp_cpu_ram_efficient_loading", "", nullptr, kStateFiles},
    {"/cpu_ram_efficient_loading", "", nullptr, kStateFiles},
    {"/fsdp_use_orig_params", "use-orig-params", take_orig_params, "of fsdp1: what the optimizer sees"},
    {"/use_orig_params", "use-orig-params", take_orig_params, "of fsdp1: what the optimizer sees"},
    {"/fsdp_limit_all_gathers", "", nullptr, "gathers in flight are bounded by --prefetch here"},
    {"/limit_all_gathers", "", nullptr, "gathers in flight are bounded by --prefetch here"},
    {"/xla", "", nullptr, kTpu},
    {"/xla_fsdp_v2", "", nullptr, kTpu},
    {"/xla_fsdp_grad_ckpt", "", nullptr, kTpu},
    {"/xla_fsdp_settings/**", "", nullptr, kTpu},
};

}  // namespace

std::span<const Row> accelerate_rows() {
  return kAccelerateRows;
}
std::span<const Row> fsdp_rows() {
  return kFsdpRows;
}

}  // namespace shard::foreign
