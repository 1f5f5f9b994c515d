// Words that are the names of regular files, as they stand and as Python takes them.
#include "profiler/commands/program_files.h"

#include <algorithm>

#include "profiler/process/child.h"

namespace shard::profiler {
namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
  std::error_code fault;
  return fs::is_regular_file(path, fault);
}

}  // namespace

std::vector<fs::path> program_files(const std::vector<std::string>& program) {
  std::vector<fs::path> files;
  const auto add = [&files](const fs::path& path) {
    if (is_file(path)) files.push_back(path);
  };
  for (std::size_t i = 0; i < program.size(); ++i) {
    const std::string& word = program[i];
    if (word.empty()) continue;
    if (i == 0) add(found_in_path(word));
    add(word);
    add(fs::path(word) / "__main__.py");
    if (const std::size_t equals = word.find('='); equals != std::string::npos) add(word.substr(equals + 1));
    if (i == 0 || program[i - 1] != "-m") continue;
    std::string module = word;
    std::ranges::replace(module, '.', '/');
    add(module + ".py");
    add(fs::path(module) / "__main__.py");
  }
  return files;
}

void reads_program(cli::Command& command, const std::vector<std::string>& program) {
  for (const fs::path& file : program_files(program)) command.reads_also("the program (" + file.string() + ")", file);
}

}  // namespace shard::profiler
