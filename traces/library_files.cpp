// Tables of names, from the packages' own lists of files; functions' lines hold for PyTorch 1.13 to 2.15.
#include "traces/library_files.h"

#include <algorithm>
#include <cstdint>
#include <span>

namespace shard {
namespace {

using std::string_view;

constexpr string_view kModeling = "modeling_";

/// Whether a list of words, one space between two, has this one.
[[nodiscard]] bool lists(string_view words, string_view word) {
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    if (words.substr(0, end) == word) return true;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return false;
}

/// All of whose functions are the library's: names that programs do not give their files.
constexpr string_view kWholeFiles[] = {
    "_tensor.py _backends.py einops.py contextlib.py _contextlib.py _jit_internal.py eval_frame.py _compile.py",
    "_device.py _foreach_utils.py _ops.py _pytree.py _stats.py _VF.py _functions.py _decorator.py clip_grad.py",
    "grad_scaler.py autocast_mode.py grad_mode.py comm.py parallel_apply.py scatter_gather.py data_parallel.py",
    "_fsdp_param_group.py _fsdp_param.py _fsdp_collectives.py _fsdp_state.py _fsdp_init.py _fsdp_common.py",
    "_fully_shard.py _flat_param.py _runtime_utils.py _unshard_param_utils.py _init_utils.py _optim_utils.py",
    "_traversal_utils.py _wrap_utils.py fully_sharded_data_parallel.py checkpoint_wrapper.py sharded_grad_scaler.py",
    "_dispatch.py _redistribute.py _sharding_prop.py _collective_utils.py placement_types.py device_mesh.py",
    "_functional_collectives.py distributed_c10d.py c10d_logger.py zero_redundancy_optimizer.py _checkpoint_hook.py",
    "aot_autograd.py runtime_wrappers.py autograd_function.py convert_frame.py cudagraph_trees.py output_code.py",
    "fake_tensor.py functional_tensor.py proxy_tensor.py symbolic_convert.py triton_heuristics.py flex_attention.py",
    "lr_scheduler.py swa_utils.py parametrize.py parametrizations.py stateless.py _python_dispatch.py "
    "_meta_registrations.py",
    "threading.py runpy.py functools.py queue.py socketserver.py",
};
constexpr string_view kPackageFiles[] = {
    // transformers
    "modeling_utils.py modeling_layers.py modeling_outputs.py modeling_attn_mask_utils.py sdpa_attention.py",
    "modeling_flash_attention_utils.py modeling_rope_utils.py flash_attention.py masking_utils.py cache_utils.py",
    "pytorch_utils.py trainer_seq2seq.py trainer_pt_utils.py trainer_utils.py image_processing_utils.py",
    "core_model_loading.py loss_utils.py",
    // Accelerate, PEFT, TRL, bitsandbytes
    "accelerator.py big_modeling.py peft_model.py tuners_utils.py sft_trainer.py dpo_trainer.py grpo_trainer.py",
    "reward_trainer.py",
    // DeepSpeed
    "stage3.py stage_1_and_2.py stage_1_2.py partition_parameters.py partitioned_param_coordinator.py",
    "partitioned_param_swapper.py parameter_offload.py contiguous_memory_allocator.py bf16_optimizer.py",
    "fused_optimizer.py unfused_optimizer.py cpu_adam.py pipelined_optimizer_swapper.py loss_scaler.py",
    // Lightning
    "training_epoch_loop.py fit_loop.py evaluation_loop.py optimization_loop.py automatic.py",
};

/// Functions of files whose names programs use too, which no program has there.
struct Functions {
  string_view file, functions;
};
constexpr Functions kFunctions[] = {
    {"module.py", "_call_impl _wrapped_call_impl _apply convert _slow_forward _load_from_state_dict"},
    {"functional.py",
     "einsum _max_pool2d _max_pool1d batch_norm group_norm instance_norm cross_entropy nll_loss mse_loss "
     "binary_cross_entropy binary_cross_entropy_with_logits dropout embedding gelu layer_norm linear relu rms_norm "
     "silu "
     "softmax log_softmax norm interpolate pad normalize multi_head_attention_forward scaled_dot_product_attention "
     "leaky_relu elu softplus adaptive_avg_pool2d one_hot split stft"},
    {"optimizer.py", "_use_grad maybe_fallback profile_hook_step wrapper zero_grad"},
    {"adam.py", "adam _init_group _multi_tensor_adam _single_tensor_adam _fused_adam"},
    {"adamw.py", "adamw _init_group _multi_tensor_adamw _single_tensor_adamw _fused_adamw"},
    {"sgd.py", "_multi_tensor_sgd _single_tensor_sgd _fused_sgd _init_group"},
    {"adagrad.py", "_init_group _multi_tensor_adagrad _single_tensor_adagrad"},
    {"rmsprop.py", "_init_group _multi_tensor_rmsprop _single_tensor_rmsprop"},
    {"adafactor.py", "_init_group _single_tensor_adafactor"},
    {"__init__.py", "backward _make_grads"},
    {"graph.py", "_engine_run_backward"},
    {"batchnorm.py", "forward"},
    {"pooling.py", "forward"},
    {"normalization.py", "forward"},
    {"checkpoint.py", "checkpoint unpack_hook recompute_fn _checkpoint_without_reentrant_generator"},
    {"init.py",
     "_no_grad_normal_ _no_grad_uniform_ _no_grad_trunc_normal_ kaiming_uniform_ kaiming_normal_ "
     "xavier_uniform_ xavier_normal_ trunc_normal_"},
    {"parameter.py", "__torch_function__ materialize"},
    {"memory.py", "empty_cache"},
    {"graphs.py", "make_graphed_callables capture_begin"},
    {"distributed.py", "_pre_forward _post_forward _run_ddp_forward _ddp_init_helper"},
    {"collate.py", "default_collate collate_tensor_fn"},
    {"pin_memory.py", "pin_memory _pin_memory_loop"},
    {"dataloader.py", "_next_data __next__ _process_data"},
};
constexpr Functions kPackageFunctions[] = {
    {"trainer.py", "_inner_training_loop _prepare_inputs _prepare_input _maybe_log_save_evaluate"},
    {"operations.py", "convert_to_fp32 _convert_to_fp32 recursively_apply send_to_device"},
    {"hooks.py", "new_forward pre_forward post_forward set_module_tensor_to_device"},
    {"engine.py", "_backward_epilogue _take_model_step allreduce_gradients _configure_zero_optimizer"},
};

/// Functions that programs have as well in files of this name, by the lines at which the library has them.
struct Lines {
  string_view file, function;
  std::int32_t first = 0, last = 0;
  string_view others;  ///< what else the library's file defines and a program's would not
};
constexpr string_view kModuleFunctions = "__init__ reset_parameters _reset_parameters extra_repr __setstate__";
constexpr Lines kLines[] = {
    {"activation.py", "forward", 95, 1920, "merge_masks"},
    {"conv.py", "forward", 290, 1400, "_conv_forward _output_padding"},
    {"conv.py", "_conv_forward", 290, 740, "forward"},
    {"distance.py", "forward", 45, 105, ""},
    {"dropout.py", "forward", 55, 330, ""},
    {"flatten.py", "forward", 40, 170, ""},
    {"fold.py", "forward", 125, 330, ""},
    {"instancenorm.py", "forward", 70, 140, "_apply_instance_norm _handle_no_batch_input"},
    {"linear.py", "forward", 108, 260, ""},
    {"linear.py", "__init__", 90, 310, "forward"},
    {"loss.py", "forward", 90, 2340, ""},
    {"padding.py", "forward", 20, 560, ""},
    {"rnn.py", "forward", 440, 1900, "flatten_parameters permute_hidden check_forward_args _init_flat_weights"},
    {"sparse.py", "forward", 155, 490, "_fill_padding_idx_with_zero"},
    {"sparse.py", "__init__", 125, 430, "forward"},
    {"transformer.py", "forward", 140, 1200, "_sa_block _ff_block _mha_block _generate_square_subsequent_mask"},
    {"upsampling.py", "forward", 150, 190, ""},
    {"function.py", "apply", 230, 700, "backward forward decorate_fwd decorate_bwd wrapper"},
    {"checkpoint.py", "forward", 90, 300, "backward checkpoint"},
    {"checkpoint.py", "backward", 110, 340, "forward checkpoint"},
    {"distributed.py", "forward", 220, 1760, "_pre_forward _post_forward _run_ddp_forward"},
    {"__init__.py", "grad", 220, 570, "backward _make_grads"},
    {"adam.py", "step", 95, 280, "adam _init_group _multi_tensor_adam _single_tensor_adam _fused_adam"},
    {"adamw.py", "step", 95, 280, "adamw _init_group _multi_tensor_adamw _single_tensor_adamw _fused_adamw"},
    {"sgd.py", "step", 60, 160, "sgd _init_group _multi_tensor_sgd _single_tensor_sgd _fused_sgd"},
};
constexpr Lines kPackageLines[] = {
    {"trainer.py", "train", 1100, 2700, "_inner_training_loop training_step compute_loss"},
    {"trainer.py", "training_step", 1700, 4100, "_inner_training_loop train compute_loss"},
    {"trainer.py", "compute_loss", 1700, 4100, "_inner_training_loop train training_step"},
    {"utils.py", "generate", 1100, 3100, "_sample _beam_search"},
    {"utils.py", "_sample", 1900, 3500, "generate _beam_search"},
    {"engine.py", "forward", 1500, 3200, "backward step"},
    {"engine.py", "backward", 1500, 3600, "forward step"},
    {"engine.py", "step", 1500, 3900, "forward backward"},
};

[[nodiscard]] bool in_whole(std::span<const string_view> lines, string_view file) {
  return std::ranges::any_of(lines, [&](string_view names) { return lists(names, file); });
}

[[nodiscard]] bool in_functions(std::span<const Functions> table, string_view file, string_view function) {
  return std::ranges::any_of(
      table, [&](const Functions& known) { return known.file == file && lists(known.functions, function); });
}

[[nodiscard]] bool in_lines(std::span<const Lines> table, string_view file, string_view function,
                            const StackFrame& at) {
  return std::ranges::any_of(table, [&](const Lines& known) {
    return known.file == file && known.function == function && at.has_line() && at.line >= known.first &&
           at.line <= known.last;
  });
}

/// Whether a frame shows that the program has a file of this name which is as long as the library's: a function that
/// the library's file has not.
[[nodiscard]] bool shows_users(string_view file, string_view function, const StackFrame& at) {
  bool ambiguous = false;
  for (const std::span<const Lines> table : {std::span<const Lines>(kLines), std::span<const Lines>(kPackageLines)})
    for (const Lines& known : table) {
      if (known.file != file) continue;
      if (known.function == function || lists(known.others, function)) return false;
      ambiguous = true;
    }
  return ambiguous && at.has_line() && !lists(kModuleFunctions, function) &&
         !in_functions(kFunctions, file, function) && !in_functions(kPackageFunctions, file, function);
}

/// "modeling_llama.py": as transformers names what builds its models.
[[nodiscard]] bool is_modeling(string_view file) {
  return file.starts_with(kModeling) && file.size() > kModeling.size() + 3;
}

}  // namespace

LibraryFiles::LibraryFiles(const Trace& trace) {
  for (const StackFrame& frame : trace.frames) {
    const string_view file = trace.name_of(frame.file);
    if (file.ends_with(".py") && file.find_first_of("/\\") == string_view::npos &&
        shows_users(file, trace.name_of(frame.function), frame))
      of_the_user_.insert(file);
  }
}

FileOwner LibraryFiles::owner_of(const Trace& trace, const StackFrame& frame) const {
  const string_view file = trace.name_of(frame.file), function = trace.name_of(frame.function);
  if (in_whole(kWholeFiles, file) || in_functions(kFunctions, file, function)) return FileOwner::library;
  if (in_whole(kPackageFiles, file) || is_modeling(file) || in_functions(kPackageFunctions, file, function))
    return FileOwner::package;
  if (of_the_user_.contains(file)) return FileOwner::user;
  if (in_lines(kLines, file, function, frame)) return FileOwner::library;
  return in_lines(kPackageLines, file, function, frame) ? FileOwner::package : FileOwner::user;
}

}  // namespace shard
