// stdio with a large buffer; rename at the end.
#include "traces/export/output_file.h"

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace shard {

Error OutputFile::failure(Errc code, const std::string& what) const {
  return {code, what + ": " + std::strerror(errno), path_.string(), errno == ENOSPC ? "free some space" : ""};
}

Result<OutputFile> OutputFile::create(const std::filesystem::path& path) {
  OutputFile out;
  out.path_ = path;
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(path, ignored);
  const bool directly = std::filesystem::exists(status) && !std::filesystem::is_regular_file(status);
  if (!directly) {
    out.partial_ = path;
    out.partial_ += ".partial";
  }
  out.file_.reset(std::fopen((directly ? path : out.partial_).c_str(), "wb"));
  if (!out.file_) {
    out.partial_.clear();
    Error error = out.failure(Errc::cannot_create, "the file cannot be created");
    if (errno == ENOENT) error.help = "create the folder " + path.parent_path().string();
    return error;
  }
  return out;
}

OutputFile::~OutputFile() {
  if (file_ && !partial_.empty()) {
    file_.reset();
    std::error_code ignored;
    std::filesystem::remove(partial_, ignored);
  }
}

void OutputFile::write(std::string_view bytes) {
  if (error_ == 0 && std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size()) error_ = errno;
}

Result<void> OutputFile::finish() {
  if (error_ == 0 && std::fflush(file_.get()) != 0) error_ = errno;
  if (error_ != 0) {
    errno = error_;
    return failure(Errc::io, "writing failed");
  }
  if (std::fclose(file_.release()) != 0) {
    const Error error = failure(Errc::io, "writing failed");
    std::error_code ignored;
    if (!partial_.empty()) std::filesystem::remove(partial_, ignored);
    return error;
  }
  if (!partial_.empty() && std::rename(partial_.c_str(), path_.c_str()) != 0) {
    const Error error = failure(Errc::io, "the finished file cannot be named");
    std::error_code ignored;
    std::filesystem::remove(partial_, ignored);
    return error;
  }
  return {};
}

}  // namespace shard
