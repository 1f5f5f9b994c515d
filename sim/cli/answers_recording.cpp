// Keys of the answers about programs that were recorded or run dry, and about published runs.
#include "sim/cli/answers.h"

namespace shard::cli {
namespace {

constexpr AnswerKey kDryrun[] = {
    {"schema_version, command, cluster, world_size",
     "1, `dryrun`; the cards that were stood in for, and of how many ranks the program believed to be"},
    {"pytorch_version, software, replaced",
     R"(PyTorch's version; versions of what decides memory, by module (null: not there, or not used); what was run in place of
what was asked for: `what`, `by`, `why`)"},
    {"capacity_bytes, outside_allocator_bytes",
     "of the card; what a process takes beside PyTorch's allocator, `low` and `high`"},
    {"timed_out, unknown_functions",
     "ended by `--timeout`; functions of CUDA that the stand-in does not know and answered success"},
    {"rank, exit_code, signal",
     "of the rank that took most (or ran out of memory), which the keys down to `rest` are of"},
    {"out_of_memory", "whether the allocator was refused what it asked for"},
    {"unmet", "of such: `requests`, and of the last of them `bytes`, `file`, `line`, `function`", Presence::sometimes},
    {"steps_seen, backward_calls", "steps of optimizers; 0 of both: not the peak of training"},
    {"kernels_taken_as_tuned", "of torch.compile, as its cache has them from the second run on; 0 with `--first-run`"},
    {"peak_allocated_bytes, peak_reserved_bytes, verdict, headroom_bytes",
     R"(what `torch.cuda.max_memory_allocated()` and `max_memory_reserved()` would say; `fits`, `tight`, `does_not_fit`; capacity less
reserved and the most that lies outside)"},
    {"unrecorded_peak_bytes, unrecorded_allocations",
     "a higher peak, and allocations, before the last 500,000 events, which are kept; else 0"},
    {"pinned_host_peak_bytes, host_peak_resident_bytes, host_peak_bytes",
     "host memory: pinned; resident here; resident had what a recipe makes on the host been written to"},
    {"unknown_workspaces, unknown_workspaces_of, values_read_as_zeros",
     "workspaces that count as none, since only their library knows their sizes; which libraries (`cuDNN`, `cuSOLVER`, "
     "`cuSPARSE`, `cuFFT`); how often the host read what no kernel computed"},
    {"phases",
     "of parts of the run that took memory: `phase` (`creation`, `first_step`, `steady_step`, `evaluate`, `save`, "
     "`load`), "
     "`peak_allocated_bytes`, `peak_seconds`, `most_by` (the line that held most)"},
    {"of_absent_ranks",
     R"(what the host looked at that ranks which do not run would have sent: `what`, `file`, `line`, `answer` (`as_equal`: as if they sent
what this one has, `zeros`, `refused`))"},
    {"routing", "where tokens chose experts: `assumed`, `file`, `line`, `experts`, `each` (of them, a token)",
     Presence::sometimes},
    {"peak_seconds, peak_requested_bytes, categories, categories_inferred, holders, rest",
     "when the peak was, what was asked for then, and who held it: as `peak` of `inspect TRACE --json`; `holders` "
     "alone, and empty, "
     "where no GPU was used",
     Presence::sometimes},
    {"ranks", "the same keys of each rank, from `rank` to `of_absent_ranks`"},
    {"step, no_step", "with `--time`: docs/step-time.md; null, and why there is none", Presence::sometimes},
    {"routings", "with `--routings N`: peaks of so many draws, `least`, `median`, `largest`", Presence::sometimes},
    {"recipe, quick_rule",
     "with `--recipe`: what ran; what `simulate --like` says of the same (null where it has no such rule)",
     Presence::sometimes},
    {"error", "what went wrong behind the run, as above", Presence::sometimes},
};

constexpr AnswerKey kInspectTrace[] = {
    {"schema_version, command, file, format, kind",
     "1, `inspect`; which tool's it is (`sst`, `kineto`, `pytorch-snapshot`, `nsys`, ...); `measured` or `predicted`"},
    {"files", "where several of one run were put together", Presence::sometimes},
    {"world_size, ranks, plan_hash, parent_plan_hash, metadata, strategy, units, capacities",
     "what the trace says of its run; empty where it says nothing"},
    {"span_count, lane_count, memory_event_count, counter_count, flow_count", "what is in it"},
    {"flow_event_count, instant_count, notes",
     "of other tools' traces: arrows, instants, and what was left out or mended", Presence::sometimes},
    {"begin_ns, end_ns, complete, truncated, dropped_count, skipped_frame_count",
     "its span on its own clock; whether it ends as it should, and else what could not be used (`offset_bytes`, "
     "`why`)"},
    {"step_seconds, steps",
     "the median steady step; of each `step`, `phase`, `begin_ns`, `end_ns`, `seconds`, `devices` (what each did in "
     "it)"},
    {"communication, collectives",
     "`transfer_seconds`, `waiting_seconds` of all; by kind, group and size, with bytes, seconds and bandwidth"},
    {"arenas, peaks",
     R"(by rank, memory and phase: `peak_bytes` (extent, of snapshots reserved), `live_peak_bytes`, `capacity_bytes`; with `peak_op`,
`peak_time_ns` and bytes by category then (`at_peak`), and each category's own highest (`category_peaks`))"},
    {"devices, copies",
     R"(of each device `window_seconds`, `busy_seconds`, `idle_seconds`, `kernel_seconds`, `copy_seconds`, `communication_seconds`,
`hidden_seconds` of it beside kernels, `exposed_seconds`; copies by direction)"},
    {"kernels, kernels_rest, operations, operations_rest",
     "the largest (`--top`) by name with `count`, `total_seconds`, `share`; of the host `self_seconds`, too; the sum "
     "of the others"},
    {"verdict, idle, collective_waits",
     "a sentence; idle time of each device by cause; per collective which rank came last, and who waited how long"},
    {"snapshot",
     R"(of a memory snapshot: `allocated_bytes`, `reserved_bytes`, `block_count`, `segment_count` at the end, `start_allocated_bytes`,
`start_reserved_bytes`, `event_count`, `actions` by kind, `device_count`)",
     Presence::sometimes},
    {"peak",
     R"(who held memory, where stacks are known or `--at` asks: `rank`, `memory`, `time_seconds` since the begin, `allocated_bytes`,
`requested_bytes`, `blocks`, `categories` (bytes by name; `categories_inferred`: by stacks, lives and sizes), `there_at_begin`,
`holders` (`bytes`, `requested_bytes`, `blocks`, `share`, `file`, `line`, `function`, `stack`: `file`, `line`, `function` of each
frame, the innermost first), `rest` of those beyond `--top`, and of snapshots `fragmentation`)",
     Presence::sometimes},
};

constexpr AnswerKey kCompareOfTwoSnapshots[] = {
    {"schema_version, command, a, b, equal", "1, `compare`, the files; whether both peaks are"},
    {"a_peak_allocated_bytes, b_peak_allocated_bytes, a_peak_reserved_bytes, b_peak_reserved_bytes",
     "of the device with most events"},
    {"categories_at_peak", "`category`, `a_bytes`, `b_bytes`"},
    {"holders",
     R"(null where one has no stacks; else all, the largest difference first: `a_site`, `b_site` (null: it has none such), `a_bytes`,
`b_bytes`, `a_blocks`, `b_blocks`, and with `--by stack` `stack`)"},
    {"a_event_count, b_event_count, common_event_count, runs",
     "allocations and frees; of these in runs that both have in one order and size: `a_begin`, `b_begin`, "
     "`event_count`"},
    {"a_differing_bytes, b_differing_bytes, a_first_difference, b_first_difference",
     "allocated outside of the runs, between the first and the last; what each did behind the first"},
};

constexpr AnswerKey kValidate[] = {
    {"schema_version, command, rows",
     R"(1, `validate`; of each row what was measured and predicted (`measured_X`, `predicted_X`, of speeds `_low` and `_high`), the errors
(`memory_error`, `throughput_error`: relative, without sign), whose `rules`, what was `assumed`, and the `reason` where there is no figure)"},
    {"frameworks, memory_kinds, speed_kinds, overall",
     "errors by each: `rows`, `peak_memory` and `throughput` (`count`, `median`, `mean`, `p90`), `throughput_within`: "
     "of how many the "
     "truth lay within low and high"},
    {"not_predicted", "`reason`, `rows`, `rows_with_memory`"},
};

constexpr Answer kRecording[] = {
    {"dryrun", kDryrun},
    {"inspect TRACE", kInspectTrace},
    {"compare of two snapshots", kCompareOfTwoSnapshots},
    {"validate", kValidate},
};

}  // namespace

std::span<const Answer> recording_answers() {
  return kRecording;
}

}  // namespace shard::cli
