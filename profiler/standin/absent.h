// What a rank that does not run would have sent: who decides what the host sees instead.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "profiler/standin/promises.h"

namespace shard::standin {

/// Values that only absent ranks know. `what`: the call, for people. `as_equal`: what it would be if they had sent what
/// this rank has; none where no rule says. When the host looks at it, the hook in the program is asked
/// (dryrun/python/alone.py): it takes the rule, zeros, or ends the program with an error that names its line.
[[nodiscard]] std::shared_ptr<Source> absent(const std::string& what, std::optional<Bytes> as_equal);

/// An error in the program, raised by Python's main thread before its next instruction; without Python nothing happens.
void raise_in_program(const std::string& text);

}  // namespace shard::standin
