// A text or binary file written front to back in pieces, that appears complete or not at all.
#pragma once

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "traces/base/result.h"

namespace shard {

/// Writes to PATH.partial and renames it when finished; devices and pipes (/dev/stdout) are written directly. The first
/// failure is kept: finish() returns it.
class OutputFile {
 public:
  /// Fails with Errc::cannot_create.
  [[nodiscard]] static Result<OutputFile> create(const std::filesystem::path& path);
  OutputFile(OutputFile&&) noexcept = default;
  OutputFile& operator=(OutputFile&&) noexcept = default;
  /// Removes what was written unless finish() succeeded.
  ~OutputFile();

  void write(std::string_view bytes);
  /// Fails with Errc::io.
  [[nodiscard]] Result<void> finish();

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  OutputFile() = default;
  [[nodiscard]] Error failure(Errc code, const std::string& what) const;

  std::unique_ptr<std::FILE, Close> file_;
  std::filesystem::path path_, partial_;  // partial_ is empty when written directly
  int error_ = 0;                         // errno of the first failed write
};

}  // namespace shard
