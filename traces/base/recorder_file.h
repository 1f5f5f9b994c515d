// How a file of flight recorders (executor/flight) is known from others, without reading it.
#pragma once

#include <array>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

namespace shard {

inline constexpr std::array<char, 8> kRecorderMagic{'S', 'S', 'F', 'L', 'I', 'G', 'H', 'T'};
/// Of the files of one rank each, in a folder: "rank0.recorder".
inline constexpr std::string_view kRecorderEnding = ".recorder";

/// A regular file that begins so, or a folder with a file that ends so.
[[nodiscard]] inline bool is_recorder(const std::filesystem::path& path) {
  std::error_code fault;
  if (std::filesystem::is_directory(path, fault)) {
    std::filesystem::directory_iterator each(path, fault);
    for (; !fault && each != std::filesystem::directory_iterator(); each.increment(fault))
      if (each->path().extension() == kRecorderEnding) return true;
    return false;
  }
  if (!std::filesystem::is_regular_file(path, fault)) return false;
  std::array<char, 8> begin{};
  std::ifstream file(path, std::ios::binary);
  return file.read(begin.data(), begin.size()) && begin == kRecorderMagic;
}

}  // namespace shard
