// The tables of answers as a document.
#include "sim/cli/answers.h"

#include <algorithm>

namespace shard::cli {
namespace {

constexpr std::string_view kIntroduction = R"(# For scripts: JSON and exit codes

`shardscope help json` prints this page.

Every command takes `--json`: one object on stdout, messages on stderr. Sizes are integers with the unit in the key. What
is both predicted and measured is `{"predicted": ..., "measured": ...}`, or a pair of keys `predicted_X`, `measured_X`.
Every option can also stand in a file (`--config FILE`, lines of `name = value`). A configuration of DeepSpeed or
accelerate is taken as it stands (`--ds-config`, `--accelerate-config`, or `--config`); `--print-config` says what became of
each of its keys: docs/configurations.md.

`assumed` in the answers of `search`, `simulate` and `train` is what they rest on, an object of `model`,
`parameter_elements`, `precision`, `sequence`, `micro_batch`, `global_batch`, `world_size`, `cluster`,
`device_capacity_bytes` (null: no limit) and `memory_of` (`shardscope`, or the framework of `--like`), each with a
`value` (null where it has no part in the answer) and an `origin`: `command line`, `FILE:LINE`, `default` or `derived`. A
config.json's `torch_dtype` is not followed; where it names another precision and `--precision` is not given, `precision`
has it as `config_value`.

`strategy` in the answers of `simulate` and `train` is an object of all choices, the same keys in every answer: those of
the options with `_` for `-` (`world_size`, `stage`, `unit`, `micro_batch`, `precision`, ...), as numbers, words, lists or
booleans, and with their unit where they are sizes: `chunk_elements` (0 where chunks have no one size),
`reduce_scatter_bucket_mib`, `device_capacity_bytes` and `non_model_peak_bytes` (null where placement is not `auto`).
`chunk_per_tensor`, `chunk_first_parameters` (of chunks of their own sizes, the parameters that begin them), `evaluates`
(`train --eval-every`) and `loss_scaling` have no option of their own; the placement of a kind that is not given is null. Answers that hold it have
`schema_version` 2; all others have 1.

An error is said on stderr, and is an object on stdout where JSON was asked for: `schema_version`, `error` (`code`, a word;
`exit_code`; `what`; `where` and `help`, null where there is none). What went wrong behind a dry run, with a file to write
say, is `error` of its answer.

Exit codes: 0 ok · 1 a check failed (`compare --check`, `verify`) · 2 usage · 3 does not fit (the JSON is still printed, `fits`:
false) · 65 a file's content is malformed or incomplete · 66 a file is absent · 69 something needed is absent · 70 a
fault of this program · 73/74 cannot create, input/output · 75 a rank died or a deadline passed, worth a retry · 78 values
that contradict each other, or do not train: a loss, gradient or parameter that is infinite or not a number ends `train` with
step, rank and parameter (without `--keep-going`; the loss scaler of fp16 skips its steps as ever), one in `--weights` is 65.
)";

/// A text of several lines as one.
std::string one_line(std::string_view text) {
  std::string line(text);
  std::ranges::replace(line, '\n', ' ');
  return line;
}

void add_table(std::string& text, const Answer& answer) {
  text.append("\n## ").append(answer.command).append(" --json\n\n| key | meaning |\n|---|---|\n");
  for (const AnswerKey& row : answer.keys) {
    std::string keys;
    for (const std::string& name : names_of(row)) keys.append(keys.empty() ? "`" : ", `").append(name).append("`");
    text.append("| ").append(keys).append(" | ").append(one_line(row.meaning)).append(" |\n");
  }
  if (!answer.behind.empty()) text.append("\n").append(answer.behind).append("\n");
}

}  // namespace

const Answer* answer_of(std::string_view command) {
  for (const std::span<const Answer> all : {predicting_answers(), running_answers(), recording_answers()}) {
    const auto found = std::ranges::find(all, command, &Answer::command);
    if (found != all.end()) return &*found;
  }
  return nullptr;
}

std::vector<std::string> names_of(const AnswerKey& row) {
  const std::string keys = one_line(row.keys);
  std::vector<std::string> names;
  for (std::size_t at = 0; at < keys.size();) {
    const std::size_t end = std::min(keys.find(", ", at), keys.size());
    names.push_back(keys.substr(at, end - at));
    at = end + 2;
  }
  return names;
}

std::string answers_help() {
  std::string text(kIntroduction);
  for (const std::span<const Answer> all : {predicting_answers(), running_answers(), recording_answers()})
    for (const Answer& each : all) add_table(text, each);
  return text;
}

}  // namespace shard::cli
