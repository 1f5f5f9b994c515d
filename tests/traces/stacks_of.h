// Stacks of a trace, written down as lines of Python.
#pragma once

#include <string>
#include <vector>

#include "traces/reader.h"

namespace shard::test {

struct Line {
  std::string file;
  int line = 0;
  std::string function = "f";
};

/// Adds a stack, its innermost frame first.
inline StackId add_stack(Trace& trace, const std::vector<Line>& stack) {
  StackId caller;
  for (auto frame = stack.rbegin(); frame != stack.rend(); ++frame) {
    trace.names.push_back(frame->file);
    trace.names.push_back(frame->function);
    const auto last = static_cast<std::int32_t>(trace.names.size()) - 1;
    trace.frames.push_back({.function = NameId{last}, .file = NameId{last - 1}, .line = frame->line});
    trace.stacks.push_back({FrameId{static_cast<std::int32_t>(trace.frames.size()) - 1}, caller});
    caller = StackId{static_cast<std::int32_t>(trace.stacks.size()) - 1};
  }
  return caller;
}

}  // namespace shard::test
