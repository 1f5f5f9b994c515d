// By the names of the files.
#include "executor/state/torch/open.h"

#include <fstream>
#include <system_error>

#include "executor/state/safetensors.h"
#include "executor/state/torch/forms.h"

namespace shard::torch {
namespace {

namespace fs = std::filesystem;

enum class Form : std::uint8_t { none, distributed, deepspeed, deepspeed_latest, index, file_in_folder, file };

constexpr const char* kIndexName = "pytorch_model.bin.index.json";
constexpr const char* kFileName = "pytorch_model.bin";

bool has_states(const fs::path& folder) {
  std::error_code fault;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, fault))
    if (entry.path().filename().string().ends_with("_model_states.pt")) return true;
  return false;
}

/// What save_checkpoint() wrote last: the name of a folder beside it.
fs::path latest_of(const fs::path& folder) {
  std::ifstream in(folder / "latest");
  std::string name;
  std::getline(in, name);
  while (!name.empty() && (name.back() == ' ' || name.back() == '\r')) name.pop_back();
  return name.empty() || name.find('/') != std::string::npos || name == ".." ? fs::path() : folder / name;
}

Form which_form(const fs::path& path) {
  std::error_code fault;
  if (fs::is_directory(path, fault)) {
    if (fs::exists(path / ".metadata", fault)) return Form::distributed;
    if (has_states(path)) return Form::deepspeed;
    if (fs::is_regular_file(path / "latest", fault)) return Form::deepspeed_latest;
    if (fs::exists(path / kIndexName, fault)) return Form::index;
    if (fs::exists(path / kFileName, fault)) return Form::file_in_folder;
    return Form::none;
  }
  if (path.filename() == kIndexName) return Form::index;
  const std::string end = path.extension().string();
  return end == ".bin" || end == ".pt" || end == ".pth" || end == ".ckpt" ? Form::file : Form::none;
}

}  // namespace

std::optional<std::string> form_of(const fs::path& path) {
  switch (which_form(path)) {
    case Form::none: return std::nullopt;
    case Form::distributed: return "a PyTorch Distributed Checkpoint";
    case Form::deepspeed:
    case Form::deepspeed_latest: return "a DeepSpeed checkpoint";
    case Form::index:
    case Form::file_in_folder:
    case Form::file: return "weights that torch.save wrote";
  }
  return std::nullopt;
}

Result<TrainingState> open(const fs::path& path) {
  std::error_code fault;
  if (!fs::exists(path, fault))
    return Error{.code = Errc::no_input,
                 .what = "there is no such file or folder",
                 .where = path.string(),
                 .help = "a folder of torch.distributed.checkpoint or DeepSpeed, or a file of torch.save"};
  switch (which_form(path)) {
    case Form::distributed: return open_distributed(path);
    case Form::deepspeed: return open_deepspeed(path);
    case Form::deepspeed_latest: {
      const fs::path latest = latest_of(path);
      if (latest.empty() || !fs::is_directory(latest, fault))
        return Error{.code = Errc::malformed,
                     .what = latest.empty() ? "names no folder beside it"
                                            : "names " + safetensors::in_quotes(latest.filename().string()) +
                                                  ", which is not there",
                     .where = (path / "latest").string(),
                     .help = "the folder of one step (global_stepN) itself"};
      return open_deepspeed(latest);
    }
    case Form::index: return open_saved_index(fs::is_directory(path, fault) ? path / kIndexName : path);
    case Form::file_in_folder: return open_saved_file(path / kFileName);
    case Form::file: return open_saved_file(path);
    case Form::none: break;
  }
  if (!fs::is_directory(path, fault)) return open_saved_file(path);
  return Error{.code = Errc::no_input,
               .what =
                   "has neither .metadata (PyTorch Distributed Checkpoint) nor *_model_states.pt or latest "
                   "(DeepSpeed) nor pytorch_model.bin",
               .where = path.string(),
               .help = "the folder that the library wrote"};
}

}  // namespace shard::torch
