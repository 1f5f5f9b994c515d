// Reads a whole file that has a size beyond which it is something else.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "traces/base/result.h"
#include "traces/base/units.h"

namespace shard {

/// The content of a file. Pipes are read to their end; one without a name once in a process: whoever reads it again gets
/// the same. Input that has no end (/dev/zero) is noticed by the bound. `what`
/// names the content in errors: "model description".
///   Errc::no_input   absent, unreadable, a directory, a pipe that nobody writes to (traces/base/input_file.h)
///   Errc::malformed  more than `most` bytes; `too_large` is then the advice
///   Errc::io         reading stopped half-way
[[nodiscard]] Result<std::string> read_file(const std::filesystem::path& path, std::string_view what, Bytes most,
                                            std::string_view too_large = {});

}  // namespace shard
