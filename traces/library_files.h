// Which bare file names are of Python's, PyTorch's and frameworks' own files: for recordings without directories.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_set>

#include "traces/reader.h"

namespace shard {

/// Whose code a frame is that names a file without its directory.
enum class FileOwner : std::uint8_t {
  user,     ///< or nobody that is known
  library,  ///< Python's or PyTorch's
  package,  ///< a framework's that uses PyTorch: transformers, DeepSpeed, Accelerate, ...
};

/// Told by the file's and the function's name, and where programs have files and functions of that name too
/// (linear.py's `forward`) by the line as well. A file of such a name is the program's where a frame of this trace is
/// of a function that the library's file lacks: PyTorch's transformer.py has no `softmax`.
class LibraryFiles {
 public:
  explicit LibraryFiles(const Trace& trace);
  [[nodiscard]] FileOwner owner_of(const Trace& trace, const StackFrame& frame) const;

 private:
  std::unordered_set<std::string_view> of_the_user_;  // names of files
};

}  // namespace shard
