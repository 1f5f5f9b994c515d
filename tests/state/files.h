// Checkpoints that a test writes: any header, right or wrong, with the bytes that follow it.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>

#include "executor/state/safetensors.h"

namespace shard::test {

/// Where there is one, a file system in memory: for tests that write and flush thousands of files.
inline std::filesystem::path memory_directory() {
  const std::filesystem::path memory = "/dev/shm";
  return ::access(memory.c_str(), W_OK) == 0 ? memory : std::filesystem::temp_directory_path();
}

/// A folder of its own, gone afterwards.
class WeightsFolder {
 public:
  explicit WeightsFolder(const std::string& name,
                         const std::filesystem::path& in = std::filesystem::temp_directory_path())
      : path_(in / ("shardscope_" + name + std::to_string(::getpid()))) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directory(path_);
  }
  WeightsFolder(const WeightsFolder&) = delete;
  WeightsFolder& operator=(const WeightsFolder&) = delete;
  ~WeightsFolder() { std::filesystem::remove_all(path_); }

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  std::string write(const std::string& name, std::string_view text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
    return (path_ / name).string();
  }
  /// A safetensors file of that header and so many zeros.
  std::string tensors(const std::string& name, const std::string& header, std::size_t data_bytes) const {
    const auto prefix = safetensors::write_prefix(static_cast<std::int64_t>(header.size()));
    const std::string_view head(reinterpret_cast<const char*>(prefix.data()), prefix.size());
    return write(name, std::string(head) + header + std::string(data_bytes, '\0'));
  }

 private:
  std::filesystem::path path_;
};

}  // namespace shard::test
