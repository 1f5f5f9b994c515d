// Which files a command reads and writes: what its options and their values say.
#include "sim/cli/command_line.h"
#include "sim/cli/file_options.h"

namespace shard::cli {

Result<void> Command::check_named_files() const {
  std::vector<NamedFile> read = other_inputs_;
  std::vector<NamedFile> written;
  const auto add = [&](const OptionState& state) {
    if (state.file_use == FileUse::none) return;
    for (const std::string& text : state.texts) {
      const std::string value = state.value_name.empty() ? "" : " " + text;
      const std::string option = spelled(state) + value + " (" + state.origin.where + ")";
      const bool in_directory = state.file_use == FileUse::written_into;
      if (in_directory) {
        const std::filesystem::path directory = text;
        written.push_back(
            {option, directory.has_filename() ? directory : directory.parent_path(), NamedFile::Kind::directory});
      }
      const std::vector<std::filesystem::path> paths =
          state.files ? state.files(text) : std::vector<std::filesystem::path>{text};
      for (const std::filesystem::path& path : paths)
        (state.file_use == FileUse::read ? read : written)
            .push_back({option, path, in_directory ? NamedFile::Kind::within : NamedFile::Kind::file});
    }
  };
  for (const auto& state : positionals_) add(*state);
  for (const auto& each : groups_)
    for (const auto& state : each->options) add(*state);
  return check_files(read, written);
}

}  // namespace shard::cli
