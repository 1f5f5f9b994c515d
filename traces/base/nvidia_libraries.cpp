// Searches folders for NVIDIA's libraries and opens them.
#include "traces/base/nvidia_libraries.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <system_error>

namespace shard::cuda {
namespace {

namespace fs = std::filesystem;

/// Existing folders, each once.
class Folders {
 public:
  void add(const fs::path& folder) {
    std::error_code fault;
    if (folder.is_absolute() && fs::is_directory(folder, fault) && std::ranges::find(list_, folder) == list_.end())
      list_.push_back(folder);
  }
  /// nvidia/*/lib of one folder of Python's packages, by name.
  void add_packages(const fs::path& site) {
    for (const fs::path& package : inside(site / "nvidia", "")) add(package / "lib");
  }
  /// Of a Python's prefix: lib/python3.11/site-packages, and Debian's dist-packages.
  void add_prefix(const fs::path& prefix) {
    for (const fs::path& version : inside(prefix / "lib", "python3")) {
      add_packages(version / "site-packages");
      add_packages(version / "dist-packages");
    }
  }
  [[nodiscard]] std::vector<fs::path> take() { return std::move(list_); }

 private:
  /// What lies in `folder` and begins with `beginning`, by name.
  static std::vector<fs::path> inside(const fs::path& folder, std::string_view beginning) {
    std::vector<fs::path> found;
    std::error_code fault;
    fs::directory_iterator entry(folder, fault);
    for (; !fault && entry != fs::directory_iterator(); entry.increment(fault))
      if (entry->path().filename().string().starts_with(beginning)) found.push_back(entry->path());
    std::ranges::sort(found);
    return found;
  }

  std::vector<fs::path> list_;
};

std::vector<std::string> split(const char* list) {
  std::vector<std::string> parts;
  std::string_view rest = list == nullptr ? "" : list;
  while (!rest.empty()) {
    const std::size_t colon = std::min(rest.find(':'), rest.size());
    if (colon > 0) parts.emplace_back(rest.substr(0, colon));
    rest.remove_prefix(std::min(colon + 1, rest.size()));
  }
  return parts;
}

/// The prefix of the first python3 on PATH: /opt/x of /opt/x/bin/python3, links resolved.
fs::path python_prefix(const Environment& environment) {
  for (const std::string& folder : split(environment("PATH"))) {
    std::error_code fault;
    const fs::path program = fs::canonical(fs::path(folder) / "python3", fault);
    if (!fault) return program.parent_path().parent_path();
  }
  return {};
}

Error missing(const std::string& name, const std::string& what) {
  return {.code = Errc::unavailable,
          .what = name + " " + what,
          .where = "",
          .help = "install it, or name its folder in SHARDSCOPE_CUDA_LIBRARIES"};
}

}  // namespace

std::vector<fs::path> library_folders(const Environment& environment) {
  Folders folders;
  for (const std::string& folder : split(environment("SHARDSCOPE_CUDA_LIBRARIES"))) folders.add(folder);
  for (const char* toolkit : {environment("CUDA_HOME"), environment("CUDA_PATH"), "/usr/local/cuda"}) {
    if (toolkit == nullptr) continue;
    folders.add(fs::path(toolkit) / "lib64");
    folders.add(fs::path(toolkit) / "lib");
  }
  for (const std::string& site : split(environment("PYTHONPATH"))) folders.add_packages(site);
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const char* prefix = environment(name)) folders.add_prefix(prefix);
  if (const fs::path prefix = python_prefix(environment); !prefix.empty()) folders.add_prefix(prefix);
  folders.add_prefix("/usr/local");
  if (const char* home = environment("HOME")) folders.add_prefix(fs::path(home) / ".local");
  return folders.take();
}

std::vector<fs::path> library_folders() {
  return library_folders([](const char* name) { return std::getenv(name); });
}

Result<OpenLibrary> open_library(const std::string& name, const std::vector<fs::path>& folders) {
  void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  std::string said;
  for (const fs::path& folder : folders) {
    if (handle != nullptr) break;
    const fs::path path = folder / name;
    std::error_code fault;
    if (!fs::exists(path, fault)) continue;
    handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (const char* words = handle == nullptr ? dlerror() : nullptr; words != nullptr && said.empty()) said = words;
  }
  if (handle == nullptr) return missing(name, said.empty() ? "was not found" : "cannot be loaded: " + said);
  OpenLibrary library{handle, name};
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void*>(&map)) == 0 && map != nullptr) library.path = map->l_name;
  return library;
}

Result<void*> find_symbol(const OpenLibrary& library, const char* symbol) {
  void* address = dlsym(library.handle, symbol);
  if (address == nullptr) return missing(library.path, "has no function " + std::string(symbol));
  return address;
}

}  // namespace shard::cuda
