// Which frame of a stack is the user's own: where somebody would look who wants to change what a program does.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "traces/library_files.h"
#include "traces/reader.h"

namespace shard {

/// A path without its folders, on whatever system it was written.
[[nodiscard]] std::string_view file_name(std::string_view path);

/// Whether a frame is of Python's or PyTorch's own code, of an installed package, or of no Python code at all. Files
/// that are named without a directory (people take them out before they publish) are told by their and their function's
/// name.
[[nodiscard]] bool is_library(const Trace& trace, const LibraryFiles& files, const StackFrame& frame);

/// The site of every stack of a trace, by its id: the innermost frame of the user's own code; where there is none, of
/// an installed package other than PyTorch; then of Python; where there is none of these either, what autograd ran (the
/// backward of an operator), the operator, or the innermost frame.
[[nodiscard]] std::vector<FrameId> sites(const Trace& trace);

/// "train.py:31 step", "MmBackward0": a frame in few words; "" for an invalid one.
[[nodiscard]] std::string site_text(const Trace& trace, FrameId frame);

/// Of a stack's frames, that are told: a damaged file may have stacks without measure.
inline constexpr std::size_t kMostFrames = 1000;

/// A stack's frames of Python in few words, the innermost first: what tells stacks of one site apart. At most
/// `most`, then "...".
[[nodiscard]] std::vector<std::string> stack_text(const Trace& trace, StackId stack, std::size_t most);

/// A table's text (a header, then rows that begin with a site) with each row's stack below it, cut where it is long.
/// Rows beyond `stacks` have none.
[[nodiscard]] std::string with_stacks(const std::string& table, const std::vector<std::vector<std::string>>& stacks);

}  // namespace shard
