// Lists, patterns and folders of data files.
#include "executor/data/data_files.h"

#include <glob.h>

#include <algorithm>
#include <string>
#include <system_error>

namespace shard::data {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kText = "text:";

/// By name, as the C locale sorts.
std::vector<fs::path> matching(const std::string& pattern) {
  std::vector<fs::path> paths;
  glob_t found{};
  if (::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found) == 0)
    for (std::size_t i = 0; i < found.gl_pathc; ++i) paths.emplace_back(found.gl_pathv[i]);
  ::globfree(&found);
  std::ranges::sort(paths);
  return paths;
}

std::vector<fs::path> in_folder(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code fault;
  for (const auto& entry : fs::directory_iterator(folder, fault))
    if (entry.path().extension() == ".bin") paths.push_back(entry.path());
  std::ranges::sort(paths);
  return paths;
}

Result<void> add(std::vector<DataFile>& files, const std::string& one) {
  const bool text = one.starts_with(kText);
  const fs::path path = text ? one.substr(kText.size()) : one;
  std::error_code fault;
  const bool pattern = path.string().find_first_of("*?") != std::string::npos && !fs::exists(path, fault);
  if (const bool folder = !text && fs::is_directory(path, fault); pattern || folder) {
    const std::vector<fs::path> found = pattern ? matching(path.string()) : in_folder(path);
    if (found.empty())
      return Error{.code = Errc::no_input,
                   .what = pattern ? "no file has a name like '" + path.string() + "'" : "has no file *.bin",
                   .where = pattern ? "--data" : path.string(),
                   .help = "another name, in quotes where it has * or ?"};
    for (const fs::path& each : found) files.push_back({.path = each, .text = text});
    return {};
  }
  const fs::path prefixed = path.string() + ".bin";
  if (!text && path.extension() != ".bin" && fs::exists(prefixed, fault) &&
      fs::exists(path.string() + ".idx", fault)) {
    files.push_back({.path = prefixed});
    return {};
  }
  if (!text && path.extension() != ".bin")
    return Error{.code = Errc::usage,
                 .what = "'" + one + "' names no kind of data",
                 .where = "--data",
                 .help = "--data random, --data text:" + one + ", or a token file whose name ends in .bin"};
  files.push_back({.path = path, .text = text});
  return {};
}

}  // namespace

Result<std::vector<DataFile>> data_files(std::string_view argument) {
  std::vector<DataFile> files;
  std::error_code fault;
  // A name may have a comma.
  if (fs::exists(argument.starts_with(kText) ? argument.substr(kText.size()) : argument, fault)) {
    if (Result<void> r = add(files, std::string(argument)); !r) return r.error();
    return files;
  }
  for (std::size_t at = 0; at <= argument.size();) {
    const std::size_t end = std::min(argument.find(',', at), argument.size());
    if (Result<void> r = add(files, std::string(argument.substr(at, end - at))); !r) return r.error();
    at = end + 1;
  }
  return files;
}

}  // namespace shard::data
