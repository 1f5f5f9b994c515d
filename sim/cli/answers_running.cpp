// The keys of answers of commands that run, record or compare.
#include "sim/cli/answers.h"

namespace shard::cli {
namespace {

constexpr AnswerKey kTrain[] = {
    {"assumed", "what the answer rests on"},
    {"schema_version, command, model, parameter_elements, strategy, data, transport, world_size, plan_hash, fits",
     "what was run; the version is 2"},
    {"weights",
     R"(null without `--weights`; else `read` (what was read, in words), `tensors`, and `read_bytes`, one number a rank:
what it read of the files' tensors)"},
    {"resumed", "null without `--resume`; else `path` of the checkpoint and the `step` behind which it stands"},
    {"saved_checkpoints", "with `--save`, each: `path`, `step`, `bytes`, `seconds`"},
    {"saved_weights",
     R"(null without `--save-weights`; else `file`, the index where there are several, `files`, how many, and
`file_bytes`, of all)"},
    {"steps",
     R"(a list of `step`, `loss`, `step_seconds`, `learning_rate`; with `--clip-norm` or fp16 also `gradient_norm`
(before clipping; null after an overflow), `loss_scale`, `skipped`)"},
    {"validation_data, evaluations",
     R"(with `--eval-every`: what was evaluated (else null), and a list of `evaluated_step` (as many steps were done),
`validation_loss` (the mean), `seconds`)"},
    {"skipped_steps",
     R"(fp16: a list of `step`, `scale_before`, `scale_after` and where the first gradient overflowed: `tensor`,
`element`, `layer` (null outside of blocks), `rank` (null where only the sum over ranks did))"},
    {"device_capacity_bytes, headroom_bytes, largest_holders, smallest_change",
     "as `simulate --json`, which is also what a run that does not fit answers"},
    {"state_sha256", "of all parameters and the optimizer's state after the last step"},
    {"numerics",
     R"(whose digest that is: `instruction_set` of the matrix products, `library`, `reproducible`: whether a second run
of this strategy has it, `bits_promised`: whether every strategy of its class has, as `verify` says it)"},
    {"arenas", "`rank`, `memory`, `predicted_peak_bytes`, `measured_peak_bytes`"},
    {"collectives",
     R"(the same over creation and all steps (not the digest after them): `rank`, `kind`, `predicted_count`,
`measured_count`, `predicted_bytes`, `measured_bytes`)"},
    {"wire_bytes",
     "of GPUs that speak over NCCL a list, one number a rank: what it sent to others for those calls; else null"},
    {"moments",
     R"(device memory live on rank 0 after creation, and after forward, backward and the whole of the last step: `name`,
`predicted_by_category`, `measured_by_category`)"},
    {"optimizer_state_bytes",
     "a list, one number a rank: what the plan's optimizer steps write, and 4 bytes for each parameter's count"},
    {"resident_bytes",
     R"(`predicted`, `measured`: all ranks' memory as the operating system counts it behind the last step, above the
libraries: device and host arenas; what rests on disk is its cache, not theirs. Nothing is measured on GPUs)"},
    {"device_in_use_bytes",
     R"(null on CPUs; `predicted`, `measured` of rank 0's GPU behind the last step: arenas of the ranks on it, and the
cluster's `device_overhead_bytes`; all that is in use there, whoever uses it)"},
    {"communication",
     R"(null with one rank, else `predicted_transfer_seconds`, `measured_transfer_seconds` and
`measured_waiting_seconds` of rank 0's collectives in a steady step; on GPUs a trace has them)"},
    {"step_seconds, tokens_per_second, tflops",
     R"(`predicted`, `measured`: the median steady step, the first left out where there are more; of `step_seconds` also
`predicted_low` and `predicted_high`, between which four of five are expected)"},
    {"busy_cores", "cores that other programs kept busy meanwhile: what is measured beside them is too slow"},
    {"profile",
     R"(null without `--profile`; else `trace`, `coverage` (`rank`, `step_seconds`, `covered_seconds`: how much of the
steps ops took, `named_seconds`: ops or what the rank's thread did beside them), `devices`, `copies`, `kernels`,
`operations` as `inspect --json`, and `residuals`: the ops furthest from the prediction (`rank`, `op`, `name`,
`stream`, `predicted_seconds`, `measured_seconds`, `waiting_seconds`, each a step); `records`: null on CPUs and
where the device's are missing (`why_not_recorded` says why, else null), else of rank 0's process
`device_spans`, `device_spans_with_op`, `device_spans_without_call`, `dropped_events`, `clock_bound_seconds` and
`idle` as `profile --json` has them (by `device`), and `allocations`: what the driver gave (`rank`, `memory`,
`count`, `peak_bytes`, `largest_bytes`))"},
};

constexpr AnswerKey kVerify[] = {
    {"schema_version, command, assumed, model, strategy, data", "as `train --json`"},
    {"reference_strategy, step_count",
     "what it was compared with: stage 0 of the same class of numbers (docs/agreement.md); how many steps"},
    {"bits_promised",
     R"(whether equal bits are: not with `--no-reproducible`, nor where the numbers of data-parallel ranks or of
micro-batches are no powers of two)"},
    {"bit_identical", "every value, master, moment and loss behind every step, on every rank; else the exit code is 1"},
    {"first_difference",
     R"(null, or `step` (from 1), `tensor`, `what` (`first_moment`: its gradient in this step differs; `second_moment`,
`master`, `value`; `loss`: nothing else by then, `tensor` and `element` are null), `rank` (whose part it is; of
copies the first rank with a wrong one), `element`, `reference_value`, `value`, `differing_parameters` behind
that step, of which `tensor` is the first in the model's order)"},
    {"largest_difference",
     R"(null where bits are promised; else of the parameters behind the last step: `relative` (to the largest element),
`tensor`)"},
    {"reference_losses, losses, reference_state_sha256, state_sha256", "of each step; behind the last"},
};

constexpr AnswerKey kCompareOfTwoTraces[] = {
    {"schema_version, command, equal, memory_equal, communication_equal, same_plan",
     "1, `compare`; what `--check` asks"},
    {"memory_compared, communication_compared",
     "false where the traces have nothing of it to compare, which is not equal either"},
    {"memory, categories, collectives, ops, names, streams, ranks, strategy",
     "rows with pairs of keys `predicted_X`, `measured_X`, or `a_X`, `b_X` of two traces of a kind"},
    {"predicted_plan_hash, measured_plan_hash, predicted_complete, measured_complete, world_size",
     "what the traces are of, and whether they end as they should; `a_X` and `b_X` of two of a kind"},
    {"steps",
     "training steps of each; how many is no difference: memory, collectives and ops are compared step by step"},
    {"memory_by_op",
     "null where the traces share no op; else `largest_difference_bytes` of live memory behind any op, in plan order, "
     "and, "
     "where it is not 0, `rank`, `memory`, and `at` and `begin` (`op`, `phase`, `step`): where it is largest, and "
     "where it "
     "begins, with `difference_bytes`"},
    {"predicted_step_seconds, measured_step_seconds, step_seconds_ratio", "the median steady step"},
    {"joined_op_count, predicted_unmatched_op_count, measured_unmatched_op_count, unequal_op_bytes_count",
     "ops of both, of one alone, and with other bytes"},
};

constexpr AnswerKey kCompareOfTwoStrategies[] = {
    {"schema_version, command, kind, equal", "1, `compare`, `strategies`; whether memory and traffic are equal"},
    {"a, b",
     R"(`file`, `assumed`, `model`, `strategy`, `plan_hash`, `fits`, `verdict`, and `configurations` where the file is
another tool's)"},
    {"choices", "what differs: `field`, `a_value`, `b_value`"},
    {"quantities",
     R"(largest difference first: `of` (`memory`, `traffic` of a steady step, `time`), `quantity` (with its unit), `a`,
`b`, `difference`, `ratio`)"},
};

constexpr AnswerKey kProfile[] = {
    {"schema_version, command, exit_code, signal", "1, `profile`, how the program ended"},
    {"recorded, why_not, processes", "whether anything was; else the reason; processes that used CUDA"},
    {"dropped_events", "events that found no room: beyond `--max-bytes`, or before CUPTI could deliver them"},
    {"clock_bound_seconds", "how far off device times can be on the host's clock, at most"},
    {"device_spans, device_spans_with_op, device_spans_without_call",
     "kernels, copies and fills; of these, joined to an op of ours; those whose call is not in the recording"},
    {"idle",
     R"(a list of `rank`, `device`, `idle_seconds` between first and last work, `launch_bound_seconds` of it while the
host had not launched the next, `gaps`, `launch_bound_gaps`, and `longest_gaps`: `begin_seconds`, `seconds`,
`launch_bound_seconds`, `next` (the work that ended it))"},
    {"copies",
     R"(a list of `rank`, `device`, `copy_seconds` in which a copy or a fill ran, `hidden_seconds` of it beside a kernel
that is no collective, `exposed_seconds`; of collectives the same stands in `trace`)"},
    {"memory",
     R"(of the rank with the highest peak of device memory: `rank`, `peak_bytes`, `peak_seconds`, `at_end_bytes`,
`series` (72 of `seconds`, `bytes`: the most in use around then), `held` at the peak: `call`, `block_bytes`,
`blocks`, `bytes`; absent where nothing was allocated)"},
    {"peak", "of device memory, and who held it: as `inspect --json`"},
    {"trace", "the answer of `inspect --json`"},
};

constexpr AnswerKey kCalibrate[] = {
    {"schema_version, command, device, file, cores",
     "1, `calibrate`, `cpu`, `cuda` or `emulated-cuda`, what was written, cores that were used (null for a GPU)"},
    {"calibration_seconds, repetitions, left_out",
     "what it took, how often each training ran, and how many had no time to"},
    {"busy_cores", "cores that other programs kept busy meanwhile: what is measured beside them is too slow"},
    {"step_error", "`median`, `worst`: of the calibration's own steps, predicted with the file; relative"},
    {"steps", "a list of `model`, `arguments`, `step_seconds` (`predicted`, `measured`)"},
    {"laws",
     R"(a list of `ranks`, `threads`, `kind`, `dtype`, `samples`, `median_error`; the laws themselves are in the file:
examples/clusters/README.md)"},
    {"figures",
     "of a GPU what was measured one thing at a time: `name`, `value`, `unit`, `method`; they are in the file too"},
};

constexpr Answer kRunning[] = {
    {"train", kTrain},
    {"verify", kVerify},
    {"compare of two traces", kCompareOfTwoTraces},
    {"compare of two strategies", kCompareOfTwoStrategies},
    {"profile", kProfile},
    {"calibrate", kCalibrate},
};

}  // namespace

std::span<const Answer> running_answers() {
  return kRunning;
}

}  // namespace shard::cli
