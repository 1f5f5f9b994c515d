// The keys of answers of commands that predict or describe.
#include "sim/cli/answers.h"

namespace shard::cli {
namespace {

constexpr AnswerKey kSearch[] = {
    {"schema_version, command", "1, `search`"},
    {"assumed", "what the answer rests on"},
    {"rule, world_size, parameter_count, total_elements, bytes_per_element",
     "what was asked; tensors of parameters, their elements, and the bytes that one is stored in"},
    {"chunk",
     R"(the answer: `chunk_elements`, `chunk_count`, `waste_elements` (of the layout built, all parameters that are
trained), `reported_waste_elements` (what the peer's own search would report), `gather_working_set_elements`,
`keep_gathered`, `filtered_parameters`, `candidates`; for `variable`, whose `chunk_elements` is the largest
chunk, also `module_boundaries`, `max_chunk_elements`; with `--model` also `peak_device_bytes`, `step_seconds`)"},
    {"chunks",
     R"(rule `variable`: a list of `chunk_elements`, `used_elements`, `waste_elements`, `first_parameter`,
`parameter_count`)",
     Presence::sometimes},
    {"curve",
     R"(a list of `chunk_elements`, `chunk_count`, `waste_elements`, `gather_working_set_elements`; with `--model` also
`peak_device_bytes`, `step_seconds`, where a step was forecast)"},
    {"forecast",
     R"(`layouts` that were forecast, `left_out_layouts` that were not because planning them would have taken more than
`--forecast-ops`, `planned_ops`)"},
    {"rules", "what each rule would choose: `exact`, `gemini`, `gemini-v0.1.9`, `variable`, each as `chunk`"},
    {"why", "why the winner wins, in words"},
    {"try_command", "with `--model`: the command that simulates the answer", Presence::sometimes},
    {"seconds", "the search of the asked rule alone"},
    {"configurations",
     R"(with another tool's file: of each its `file`, `tool` and what it became; `left_out` has the other keys, each
with its `reason`)",
     Presence::sometimes},
};

constexpr AnswerKey kSimulate[] = {
    {"assumed", "what the answer rests on"},
    {"schema_version, command, model, strategy, cluster, world_size, steps, plan_hash",
     "what was asked; the version is 2"},
    {"verdict, fits", "`fits`, `tight` or `does_not_fit` (exit code 3); `fits` is false for the last alone"},
    {"outside_allocator_bytes",
     R"(`low`, `high`: what a rank takes of a GPU beside its peak, CUDA's context and with several ranks NCCL's buffers
(sources: sim/cluster/outside.cpp); it *fits* if the peak and `high` are within the capacity, is *tight* if only
the peak and `low` are)"},
    {"peak_uncertainty", "0 here"},
    {"device_capacity_bytes, headroom_bytes", "null where there is no limit; the headroom is what is left with `high`"},
    {"peak_device_bytes, live_peak_device_bytes, peak_phase",
     "of the largest rank: the arena's extent, and the sum of live buffers"},
    {"peak_host_bytes, peak_pinned_bytes, host_capacity_bytes, peak_disk_bytes",
     R"(host memory of a host's ranks together, how much of it is pinned for a GPU, null where there is no limit; disk
of the largest rank)"},
    {"peak_memory",
     "the memory that `peak_phase` and `largest_holders` speak of: the one that is too small, else the device"},
    {"largest_holders", "the five largest at the peak: `name`, `category`, `bytes`, `buffers`"},
    {"smallest_change", "null, or `options` and their `peak_device_bytes`, when it does not fit"},
    {"own_executor", "null: this is its answer"},
    {"instead_of",
     R"(null; where our own executor answers because the rules of the framework whose run was meant do not: `framework`,
`reason`, and `try`, the dry run that answers for it)"},
    {"reproducible_bytes", "null, or what of the peak goes with `--no-reproducible`"},
    {"moments", "`name`, `live_bytes`, `live_peak_bytes`, `by_category` in the order of a run"},
    {"rank_classes", "equal ranks together: `rank`, `ranks`, `phases` with memory, time and collectives of each"},
    {"arenas", "`rank`, `memory`, `predicted_peak_bytes`"},
    {"collectives", "over creation and all steps: `rank`, `kind`, `predicted_count`, `predicted_bytes`"},
    {"step_seconds, first_step_seconds, creation_seconds, run_seconds", "times"},
    {"step_seconds_low, step_seconds_high", "between which four of five steps are expected"},
    {"compute_share, communication_share, exposed_communication_share", "of a steady step"},
    {"tokens_per_second, tflops_per_device", "speed"},
    {"configurations",
     R"(with another tool's file: of each its `file`, `tool` and what it became; `left_out` has the other keys, each
with its `reason`)",
     Presence::sometimes},
    {"found",
     R"(with `--find`: `what` was searched, the largest `value` that fits, what it is `limited_by`, and `tight`, the
next if that is tight, else null)",
     Presence::sometimes},
    {"levers",
     R"(with `--what-if`: options that lower the peak, each simulated, the largest saving first: `option`, `peak_bytes`,
`saved_bytes`, `memory`, `verdict`, `relative_speed`: tokens per second beside what was asked, null where unknown)",
     Presence::sometimes},
};

constexpr AnswerKey kSimulateLikeName[] = {
    {"schema_version, command, assumed, model, strategy, world_size", "what was asked; the version is 2"},
    {"like, rank", "the framework with its version, `ddp@2.11`; whose device it is"},
    {"verdict, fits, outside_allocator_bytes, device_capacity_bytes, host_capacity_bytes", "as of our own executor"},
    {"peak_uncertainty",
     "how far such peaks were off where they were compared, as a share: it *fits* if a peak that is larger by it does"},
    {"peak_device_bytes, peak_reserved_bytes",
     "what the framework's allocator reserves at most, which is what a card must have; the same number"},
    {"peak_allocated_bytes, peak_active_bytes",
     "what tensors take at most; the same with blocks that another stream still uses"},
    {"inactive_bytes, largest_gap_bytes",
     "when most was reserved: what of it no block took, and the largest piece of that"},
    {"peak_host_bytes, peak_pinned_bytes, peak_host_of_all_bytes",
     "host memory of this rank, how much of it is pinned, and both together of all ranks of a host"},
    {"peak_memory", "the memory that is too small, else the device; `largest_holders` are the device's"},
    {"optimizer_state_bytes", "what the optimizer keeps on the device"},
    {"step",
     R"(null, or a steady step's time by laws of kernels: `seconds`, and `low` and `high` between which four of five runs
are expected, `coverage` (the share of the time that has a law), `tokens_per_second` of one GPU with `_low` and `_high`,
`model_flops_share`, and of each of `parts` (what of it goes where) `name` and `seconds`)"},
    {"no_step", "null, or why there is no `step`"},
    {"phases", "of each `phase`: `peak_allocated_bytes`, `peak_active_bytes`, `peak_reserved_bytes`"},
    {"moments",
     R"(of each `name`: `max_allocated_bytes`, `max_reserved_bytes` up to there, `allocated_bytes`, `reserved_bytes`
then, by which `op`, `by_category`, and `blocks` in groups of like names)"},
    {"largest_holders", "the five largest at the peak: `name`, `category`, `bytes`, `buffers`"},
    {"allocator",
     "its statistics at the end: `allocation_count`, `segment_count`, `allocated_bytes`, `reserved_bytes`"},
    {"collectives", "of a steady step or another `phase`: `rank`, `kind`, `predicted_count`, `predicted_bytes`"},
    {"own_executor",
     "null, or what our own executor would take: `peak_device_bytes`, `step_seconds`, `tokens_per_second`"},
    {"instead_of, reproducible_bytes", "null: of our own executor's answers"},
    {"dry_run", "the command that asks the framework itself", Presence::sometimes},
};

constexpr AnswerKey kSimulateLikeColossalaiGemini[] = {
    {"schema_version, command, assumed, model, like, world_size, rank", "what was asked; the version is 1"},
    {R"(verdict, fits, outside_allocator_bytes, device_capacity_bytes, peak_device_bytes, peak_op, largest_holders,
optimizer_state_bytes)",
     "as of our own executor; at which op the peak is"},
    {"chunk_elements, num_chunks, chunk_sizes, utilized, true_total_chunk_mem, keep_gathered_chunk_mem",
     "the chunks, in the peer's own words (docs/emulation.md)"},
    {"shard_param_frac, offload_param_frac, offload_optim_frac, offloaded_optim_chunks, rest_cuda, rest_cpu",
     "the fractions of its static placement, and where chunks rest"},
    {"iters", "one object of calls and bytes per step"},
    {"instead_of", "null"},
};

constexpr AnswerKey kSweep[] = {
    {"schema_version, command", "1, `sweep`"},
    {"swept", "the lists that were given: `option`, `values`"},
    {"row_count, fits_count, tight_count, does_not_fit_count, contradiction_count, front_count",
     "how many rows, and of which status; those that are tight fit, too"},
    {"rows", "one flat object per combination, the last list changing fastest; `--format csv` has the same as columns"},
    {"configurations",
     R"(with another tool's file: of each its `file`, `tool` and what it became; `left_out` has the other keys, each
with its `reason`)",
     Presence::sometimes},
};

constexpr AnswerKey kPlan[] = {
    {"schema_version, command", "1, `plan`"},
    {"plan_hash", "of the plans of all ranks"},
    {"classes", "equal ranks together: `ranks`, and the plan as `text` (sim/ir/SPEC.md)"},
    {"verified", "with `--verify`: true", Presence::sometimes},
    {"after", "with `--after`: the pass; of rank 0 then, and without `plan_hash`", Presence::sometimes},
};

constexpr AnswerKey kInspectModel[] = {
    {"schema_version, command, file", "1, `inspect`, as it was named"},
    {"model, class", "its name, and the class of transformers that it becomes"},
    {"parameter_count, tensor_count, parameters_sha256", "elements, tensors, and the SHA-256 of their list"},
    {"not_simulated, not_trained", "null, or why the family is not"},
    {"values", "what the description says: `key`, `value`, `origin`"},
};

constexpr AnswerKey kInspectLaws[] = {
    {"schema_version, command, file", "1, `inspect`, as it was named"},
    {"laws_of, devices", "the cluster whose laws these are; the GPUs that the recording names"},
    {"kernels",
     R"(`measured_seconds` and `by_law_seconds` of kernels that have a law, `error` of the sum and `coverage` as shares,
`exchanges_seconds` and `host_copies_seconds` that are left out, and lists of at most `--top`: `laws`, `differing` (kernels of one name, those
first that differ most), `not_known` (without a law))"},
};

constexpr AnswerKey kInspectOom[] = {
    {"schema_version, command, file", "1, `inspect`, as it was named"},
    {"cause, conclusion",
     R"(`full`, `fragmentation` (what is reserved and idle would do), `other_processes` (what they hold would do), `limit` (of the
process), `refused` (of what the driver calls free); the same in words)"},
    {"message_of, message_count, device", "whose words they are; such messages in the text; the GPU, or null"},
    {"asked_bytes, capacity_bytes, free_bytes, allocated_bytes, unallocated_bytes",
     "asked for; of the device; by PyTorch for tensors; reserved by its allocator beyond that"},
    {"allowed_bytes, private_pools_bytes, outside_allocator_bytes, other_processes_bytes, not_told_apart_bytes",
     R"(null where the message does not tell: the process's limit; CUDA graphs' part; this process outside of the allocator; others,
named or not; of older messages both together)"},
    {"processes", "those that are named: `process`, `bytes`"},
    {"remedies", "`what` helps and `why`, the likeliest first"},
    {"peak", "with a snapshot: who held the memory, as of a trace", Presence::sometimes},
};

constexpr AnswerKey kConvert[] = {
    {"schema_version, command", "1, `convert`"},
    {"files", "what was read: `file`, `format` (`sst`, `chrome`, `kineto`, `perfetto`, `pytorch-snapshot`, `nsys`)"},
    {"span_count, memory_event_count, complete", "of all files together; whether none of them breaks off"},
    {"passed_over, aligned", "what of them has no place in a trace; how several were put on one clock; in words"},
    {"output, form, bytes", "what was written, in which form, and its size (null where it has none)"},
};

constexpr Answer kPredicting[] = {
    {"search", kSearch},
    {"simulate", kSimulate,
     R"(Where another framework answers (`--like`, a configuration, a Hugging Face model on GPUs) it is one of the next two.)"},
    {"simulate --like NAME", kSimulateLikeName},
    {"simulate --like colossalai-gemini", kSimulateLikeColossalaiGemini},
    {"sweep", kSweep,
     R"(A row has the swept options by their names (with `_` for `-`), `status` (`fits`, `tight`, `does_not_fit`, `contradiction`), `fits`
(tight or not), `reason` (why not), `on_front` (of those that fit and whose times are of one kind, no other one beats it in both `peak_device_bytes` and
`tokens_per_second`), `options` (what to add to `simulate`), the figures of `simulate --json` by their keys, `strategy` as one
line of text and all its fields by their keys, and, of the rank that takes most: `sent_bytes` in a step, whole buffers, and of them
`all_gather_bytes`, `reduce_scatter_bytes`, ...; at the peak `parameter_bytes`, `gradient_bytes`, ... of each category,
`largest_category` and `largest_holder` with their bytes. `times_of` says whose times they are, and those by laws of kernels have
`step_seconds_low` and `step_seconds_high`. What is not predicted is null. Exit code 3 where nothing fits, 78 where every combination
contradicts itself.)"},
    {"plan", kPlan},
    {"inspect MODEL", kInspectModel},
    {"inspect --laws CLUSTER", kInspectLaws},
    {"inspect --oom FILE", kInspectOom},
    {"convert", kConvert, "Of a picture (`.png`) it is the answer of `view --screenshot --json`."},
};

}  // namespace

std::span<const Answer> predicting_answers() {
  return kPredicting;
}

}  // namespace shard::cli
