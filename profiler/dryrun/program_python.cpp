// One line of Python says where PyTorch is and what it was built for; importing it would take seconds.
#include "profiler/dryrun/program_python.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <set>
#include <sstream>
#include <string_view>

#include "profiler/process/child.h"

namespace shard::dryrun {
namespace {

namespace fs = std::filesystem;

/// What Python prints before it, at its start (a sitecustomize), is no answer.
constexpr std::string_view kMarker = "\nshardscope asks for PyTorch:\n";

constexpr const char* kQuestion = R"(
import importlib.util, os, sys, sysconfig
print("\nshardscope asks for PyTorch:")
spec = importlib.util.find_spec("torch")
if spec is None or not spec.origin:
    print("no torch")
else:
    said = {}
    folder = os.path.dirname(spec.origin)
    with open(os.path.join(folder, "version.py")) as file:
        exec(file.read(), said)
    print(os.path.dirname(folder))
    print(said["__version__"])
    print(said.get("cuda") or "none")
    own = {os.path.realpath(sysconfig.get_paths()[name]) for name in ("stdlib", "platstdlib")}
    own.add(os.path.realpath(os.path.dirname(folder)))
    for place in sys.path:
        if place and os.path.isdir(place) and os.path.realpath(place) not in own:
            print(os.path.realpath(place))
)";

int cuda_version_of(const std::string& text) {
  int major = 0, minor = 0;
  if (std::sscanf(text.c_str(), "%d.%d", &major, &minor) != 2) return 0;
  return 1000 * major + 10 * minor;
}

Error unavailable(const std::string& what, const std::string& where, const std::string& help) {
  return {.code = Errc::unavailable, .what = what, .where = where, .help = help};
}

}  // namespace

std::string interpreter_of(const std::string& program, const std::string& named) {
  const std::string name = fs::path(program).filename().string();
  if (name.starts_with("python") || name.starts_with("pypy")) return program;
  const std::string path = profiler::found_in_path(program);
  std::ifstream file(path.empty() ? program : path, std::ios::binary);
  std::string first;
  std::getline(file, first);
  if (first.starts_with("#!") && first.find("python") != std::string::npos && first.size() < 1000) {
    std::istringstream words(first.substr(2));
    std::string word, interpreter;
    words >> interpreter;
    if (interpreter.ends_with("/env")) words >> interpreter;
    return interpreter;
  }
  return named;
}

Result<PyTorch> pytorch_of(const std::vector<std::string>& program, const std::string& named) {
  if (const fs::path found = profiler::found_in_path(program.front()); found.empty() || !fs::exists(found))
    return unavailable("the program cannot be started: there is none of that name", program.front(),
                       "as in: dryrun -- python3 train.py");
  const std::string python = interpreter_of(program.front(), named);
  const Result<profiler::Ended> asked = profiler::run_and_read({python, "-c", kQuestion});
  if (!asked) return asked.error();
  const std::size_t marked = asked->out.rfind(kMarker);
  std::istringstream lines(marked == std::string::npos ? "" : asked->out.substr(marked + kMarker.size()));
  std::string folder, version, cuda;
  if (asked->exit_code != 0 || !std::getline(lines, folder))
    return unavailable("this Python does not answer", python,
                       "a Python that has PyTorch, as in: dryrun -- python3 train.py");
  if (folder == "no torch") {
    return unavailable("this Python has no PyTorch, which is what a dry run runs", python,
                       "the Python of the environment that has it (" + python + " -m pip install torch)");
  }
  std::getline(lines, version);
  std::getline(lines, cuda);
  PyTorch found{
      .version = version, .cuda_version = cuda_version_of(cuda), .packages = folder, .paths = {}, .python = python};
  for (std::string place; std::getline(lines, place);) found.paths.emplace_back(place);
  if (found.cuda_version == 0)
    return unavailable("PyTorch " + version + " is built without CUDA, so it has no allocator for GPUs", python,
                       "the PyTorch for CUDA, which needs no GPU to be installed (pip install torch on Linux)");
  return found;
}

namespace {

/// Deeper folders are data, not packages.
constexpr int kDeepest = 8;

void add_libraries(const fs::path& place, std::set<fs::path>& libraries) {
  std::error_code error;
  for (fs::recursive_directory_iterator entry(place, fs::directory_options::skip_permission_denied, error), none;
       !error && entry != none; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    // What CUDA's own libraries ask of each other nobody will ask.
    const bool of_cuda = entry.depth() == 0 && (name == "nvidia" || name == "triton" || name.starts_with("nvidia_"));
    if (of_cuda || entry.depth() >= kDeepest || name == ".git" || name == "__pycache__") {
      entry.disable_recursion_pending();
      if (of_cuda) continue;
    }
    const bool is_library = name.ends_with(".so") || name.find(".so.") != std::string::npos;
    if (is_library && entry->is_regular_file(error)) libraries.insert(entry->path());
    error.clear();
  }
}

}  // namespace

std::vector<fs::path> libraries_of(const PyTorch& pytorch) {
  std::set<fs::path> libraries;
  add_libraries(pytorch.packages, libraries);
  for (const fs::path& place : pytorch.paths) add_libraries(place, libraries);
  return {libraries.begin(), libraries.end()};
}

std::vector<fs::path> sources_of_triton(const PyTorch& pytorch) {
  std::vector<fs::path> sources;
  std::error_code error;
  for (fs::directory_iterator entry(pytorch.packages / "triton" / "backends" / "nvidia", error), none;
       !error && entry != none; entry.increment(error)) {
    if (entry->path().extension() == ".c" || entry->path().extension() == ".py") sources.push_back(entry->path());
  }
  return sources;
}

}  // namespace shard::dryrun
