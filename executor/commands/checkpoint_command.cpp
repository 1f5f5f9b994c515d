// `shardscope checkpoint`: reads what is there, and changes nothing of it; import makes a new one of it.
#include "executor/commands/checkpoint_command.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "executor/commands/checkpoint_import.h"
#include "executor/commands/checkpoint_report.h"
#include "executor/state/checkpoint/names.h"
#include "executor/state/torch/open.h"
#include "sim/cli/closest.h"
#include "sim/cli/output.h"
#include "sim/cli/progress.h"
#include "sim/commands/printing.h"
#include "traces/base/numbers.h"

namespace shard::commands {
namespace {

namespace fs = std::filesystem;
using checkpoint::Listed;

constexpr const char* kCheckpointDetails =
    R"(A checkpoint is a folder step-NUMBER with the weights, the optimizer's state and a manifest.json of all their bytes'
hashes, in the folder of a run. DIR is either: that of the run, or one checkpoint.

list    one row each, the newest last: step, tokens, when, size, and whether it is complete: the manifest is right and
        every file is there with its size. Bytes of files are not read.
verify  reads every byte of every checkpoint of the folder, or of the one that is named, and compares it with the
        manifest: "right", or what is wrong: which file, which bytes, which tensor.
show    what is in the newest complete one, or the one that is named: the state of the run, what its numbers depend on,
        weights and optimizer state in all (--tensors: each by its name), files. Also of checkpoints of other libraries.
import  a checkpoint of another library, DIR, becomes one in the folder INTO, which 'train --resume INTO
        --resume-inexact' goes on from: weights, Adam's moments and step counts of PyTorch Distributed Checkpoint (DCP,
        FSDP, torchtitan) and of DeepSpeed (ZeRO 1 to 3); weights of pytorch_model.bin and files of torch.save. No
        Python runs, and none of the code that such files name; what only code could make is refused by its name.

Nothing is removed, and but for import nothing written. docs/checkpoints.md says what is in the files, and what is
promised of them.

Exit codes: 0 done, and of verify all right; 65 one is damaged; 66 there is none; 73, 74 import cannot write; 78 import of
a form that is not read.

Examples:
  shardscope checkpoint list run
  shardscope checkpoint verify run
  shardscope checkpoint verify run/step-00000020 --json
  shardscope checkpoint show run
  shardscope checkpoint show run/step-00000020 --tensors
  shardscope checkpoint show zero3
  shardscope checkpoint import zero3 run
)";

struct CheckpointFlags {
  std::string verb;
  std::string dir;
  std::string into;  ///< of import
  std::int64_t step = 0;
  bool tensors = false;
  cli::OutputOptions output;
};

const std::vector<std::string>& checkpoint_verbs() {
  static const std::vector<std::string> kVerbs{"list", "verify", "show", "import"};
  return kVerbs;
}

Result<void> check_words(const cli::Command& command, const CheckpointFlags& flags) {
  if (std::ranges::find(checkpoint_verbs(), flags.verb) == checkpoint_verbs().end()) {
    std::error_code fault;
    const std::string what = "'" + flags.verb + "' is neither list, verify, show nor import";
    // The folder alone is a common mistake.
    if (flags.dir.empty() && fs::exists(flags.verb, fault))
      return Error{Errc::usage, what, "", "'shardscope checkpoint list " + flags.verb + "'; or verify, show, import"};
    return Error{Errc::usage, what, "", cli::suggest(flags.verb, checkpoint_verbs())};
  }
  if (flags.dir.empty())
    return Error{Errc::usage, "DIR is missing: the folder of a run that saved checkpoints, or one checkpoint in it", "",
                 "'shardscope checkpoint " + flags.verb + " DIR'"};
  if (flags.tensors && flags.verb != "show")
    return Error{Errc::usage, "--tensors is of show", command.describe("tensors"), "shardscope checkpoint show"};
  const bool imports = flags.verb == "import";
  if (command.given("step") && !imports)
    return Error{Errc::usage, "--step is of import", command.describe("step"), "shardscope checkpoint import"};
  if (imports && flags.into.empty())
    return Error{Errc::usage, "INTO is missing: the folder of checkpoints that one is added to", "",
                 "'shardscope checkpoint import " + flags.dir + " INTO'"};
  if (!imports && !flags.into.empty())
    return Error{Errc::usage, "'" + flags.into + "' is one DIR too many", "",
                 "'shardscope checkpoint " + flags.verb + " " + flags.dir + "'"};
  return {};
}

/// What the folder's list says of a checkpoint that is named; of one under a name of its owner's, what it says itself.
Listed named_checkpoint(const fs::path& path) {
  const fs::path whole = checkpoint::without_slash(fs::absolute(path).lexically_normal());
  if (const Result<std::vector<Listed>> beside = checkpoint::list(whole.parent_path()))
    for (Listed each : *beside)
      if (each.path == whole) return each.path = path, each;
  Listed own{.path = path, .step = 0, .tokens = 0, .bytes = 0, .complete = false, .why_not = {}};
  if (const Result<checkpoint::Manifest> manifest = checkpoint::read_manifest(path)) {
    own.step = manifest->step;
    own.tokens = manifest->tokens;
    for (const checkpoint::FileEntry& file : manifest->files) own.bytes += file.bytes;
  }
  const Result<checkpoint::Reader> reader = checkpoint::Reader::open(path);
  own.complete = reader.has_value();
  if (!reader) own.why_not = reader.error().what;
  return own;
}

/// Those of the folder, or the one that is named; at least one.
Result<std::vector<Listed>> checkpoints_at(const fs::path& path) {
  std::error_code fault;
  if (fs::exists(path / checkpoint::kManifestFile, fault)) return std::vector<Listed>{named_checkpoint(path)};
  if (fs::is_directory(path, fault)) {
    Result<std::vector<Listed>> listed = checkpoint::list(path);
    if (!listed || !listed->empty()) return listed;
  }
  const Result<fs::path> none = checkpoint::newest(path);
  if (none) return std::vector<Listed>{named_checkpoint(*none)};  // saved since
  return none.error();
}

Result<int> list_checkpoints(const cli::Command& command, const CheckpointFlags& flags) {
  const Result<cli::Format> format = cli::chosen_format(command, flags.output);
  if (!format) return format.error();
  const Result<std::vector<Listed>> listed = checkpoints_at(flags.dir);
  if (!listed) return listed.error();
  if (*format == cli::Format::json)
    std::cout << cli::json_text(list_json(flags.dir, *listed));
  else
    std::cout << cli::render(checkpoint_table(*listed), *format, cli::style_of(1));
  return 0;
}

VerifiedCheckpoint verified_one(const Listed& listed, const std::function<void(std::int64_t)>& read) {
  VerifiedCheckpoint one{.listed = listed};
  const Result<checkpoint::Reader> reader = checkpoint::Reader::open(listed.path);
  if (!reader) return one.wrong = reader.error(), one;
  if (Result<void> right = reader->verify([&] { read(reader->bytes_read()); }); !right)
    one.wrong = right.error();
  else if (!listed.complete)  // its bytes are those of another step
    one.wrong = Error{Errc::malformed, listed.why_not, listed.path.string(), ""};
  one.bytes_read = reader->bytes_read();
  return one;
}

Result<int> verify_checkpoints(const cli::Command& command, const CheckpointFlags& flags) {
  const Result<cli::Format> format = document_format(command, flags.output);
  if (!format) return format.error();
  const Result<std::vector<Listed>> listed = checkpoints_at(flags.dir);
  if (!listed) return listed.error();
  std::int64_t all = 1;  // never a division by none
  for (const Listed& each : *listed) all += each.bytes;
  std::int64_t before = 0;
  std::vector<VerifiedCheckpoint> verified;
  std::vector<std::string> gone;
  cli::Progress progress(std::cerr, "verify", cli::style_of(2));
  for (const Listed& each : *listed) {
    VerifiedCheckpoint one = verified_one(each, [&](std::int64_t read) {
      progress.update(std::min(1.0, static_cast<double>(before + read) / static_cast<double>(all)),
                      each.path.filename().string());
    });
    before += each.bytes;
    // A run that goes on removes its old ones.
    std::error_code fault;
    if (one.wrong && !fs::exists(each.path, fault))
      gone.push_back(each.path.string() + " was removed meanwhile");
    else
      verified.push_back(std::move(one));
  }
  progress.finish();
  print_notes(gone);
  if (*format == cli::Format::json)
    std::cout << cli::json_text(verified_json(flags.dir, verified));
  else
    cli::print(std::cout, verified_text(verified));
  return exit_code_of(verified);
}

Result<int> show_checkpoint(const cli::Command& command, const CheckpointFlags& flags) {
  const Result<cli::Format> format = document_format(command, flags.output);
  if (!format) return format.error();
  if (torch::form_of(flags.dir)) {
    const Result<torch::TrainingState> state = torch::open(flags.dir);
    if (!state) return state.error();
    if (*format == cli::Format::json)
      std::cout << cli::json_text(foreign_json(*state, flags.tensors));
    else
      cli::print(std::cout, foreign_text(*state, flags.tensors));
    return 0;
  }
  const Result<fs::path> path = checkpoint::newest(flags.dir);
  if (!path) return path.error();
  const Result<checkpoint::Reader> reader = checkpoint::Reader::open(*path);
  if (!reader) return reader.error();
  if (*path != fs::path(flags.dir))
    if (const Result<std::vector<Listed>> listed = checkpoint::list(flags.dir); listed && !listed->empty()) {
      const Listed& last = listed->back();
      if (last.step > reader->manifest().step && !last.complete)
        print_notes({last.path.filename().string() + " is newer and not complete: " + last.why_not});
    }
  if (*format == cli::Format::json)
    std::cout << cli::json_text(checkpoint_json(*reader, flags.tensors));
  else
    cli::print(std::cout, checkpoint_text(*reader, flags.tensors));
  return 0;
}

Result<int> import_other(const cli::Command& command, const CheckpointFlags& flags) {
  const Result<cli::Format> format = document_format(command, flags.output);
  if (!format) return format.error();
  const Result<Imported> imported =
      import_checkpoint({.from = flags.dir,
                         .into = flags.into,
                         .step = command.given("step") ? std::optional(flags.step) : std::nullopt});
  if (!imported) return imported.error();
  if (*format == cli::Format::json)
    std::cout << cli::json_text(imported_json(*imported));
  else
    cli::print(std::cout, imported_text(*imported));
  return 0;
}

}  // namespace

int checkpoint_command(std::span<const std::string> arguments) {
  CheckpointFlags flags;
  cli::Command command("shardscope", "checkpoint",
                       "lists the checkpoints of a run, reads every byte of them, says what is in one, imports others'",
                       kCheckpointDetails);
  command.add_positional("list|verify|show|import", &flags.verb, "what to do").required();
  command.add_positional("DIR", &flags.dir,
                         "the folder of a run that saved checkpoints, or one checkpoint in it; of import and show also "
                         "what PyTorch or DeepSpeed saved");
  command.add_positional("INTO", &flags.into, "of import: the folder of checkpoints that one is added to");
  command.group("Show").add_flag("tensors", &flags.tensors, "of show: every tensor, with its dtype, shape and file");
  command.group("Import")
      .add("step", &flags.step, "N", "of import: how many steps were done")
      .default_text("as the checkpoint says")
      .least(0);
  cli::add_output_options(command, flags.output);
  if (const auto code = parsed(command, arguments)) return *code;
  if (const Result<void> ok = check_words(command, flags); !ok) return failed(ok.error());
  const Result<int> code = flags.verb == "list"     ? list_checkpoints(command, flags)
                           : flags.verb == "verify" ? verify_checkpoints(command, flags)
                           : flags.verb == "import" ? import_other(command, flags)
                                                    : show_checkpoint(command, flags);
  return code ? *code : failed(code.error());
}

}  // namespace shard::commands
