// Errors and units of the public interface, which are those of the whole project.
//
// What can go wrong through no fault of this library comes back as a Result: an option that is unknown, values that
// contradict each other, a file that is absent, memory that does not suffice. An Error says what, where and the
// smallest change that helps; its code is the exit code that the command would have ended with. Nothing here prints,
// exits or throws. Reading the wrong side of a Result is a mistake of the program and asserts.
#pragma once

#include "traces/base/result.h"
#include "traces/base/units.h"

namespace shardscope {

using shard::Bytes;      ///< count() is a std::int64_t; 1 MiB = 2^20
using shard::Errc;       ///< usage, no_input, malformed, contradiction, does_not_fit, ...
using shard::Error;      ///< code, what, where, help
using shard::exit_code;  ///< of an Errc
using shard::Flops;      ///< a multiply-add counts two
using shard::Result;     ///< a value or an Error; `if (!r) return r.error();`
using shard::Seconds;
using shard::to_string;  ///< of an Error: "WHERE: WHAT\n  try: HELP"

}  // namespace shardscope
