// A program as a file: lines of words and numbers, that a script may write as well.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "sim/like/program/program.h"
#include "traces/base/result.h"

namespace shard::like {

/// The first line of every file; a number behind it that is not known is refused.
inline constexpr std::string_view kProgramHeader = "shardscope program 1";

/// What every line says, fields apart by one blank; [] may be absent. Sizes are bytes, in decimal. TEXT goes to the end
/// of its line; in it \\, \n and \xNN are a backslash, a new line and any byte.
///
///   framework TEXT | model TEXT | steps TEXT | allocator TEXT      who wrote it (ProgramOrigin), before all steps
///   world_size N | rank N
///   addresses up                       where the driver places new memory; absent: downwards
///   kernels all                        CUDA loads them all at the start; absent: each at its first launch
///   uncertainty N                      of its peaks, in millionths; absent: none, it was recorded
///   name TEXT                          is N in what follows: names count from 1; 0 is none
///   phase PHASE                        begins: creation, first_step, steady_step, ...
///   op MODULE NAME BLOCK PART          two names, -1 or the block, and a part of the step: forward, backward, ...
///   take BYTES CATEGORY [name=N] [memory=MEMORY] [stream=N] [pool=N]
///                                      by the last op; takes count from 0. CATEGORY: parameter, activation, ...;
///                                      MEMORY: device, host, pinned, disk
///   back TAKE                          given back
///   let_go TAKE                        the same while another stream uses it; `back` follows when that is done
///   work FLOPS READ WRITTEN STREAM [TYPE:r:2x3 | TYPE:w:2x3 ...]   of the last op; TYPE is a name, r read, w written
///   collective KIND BYTES RANKS GROUP STREAM                       all_gather, ...; GROUP is a name
///   copy MEMORY MEMORY BYTES STREAM
///   wait host STREAM | wait STREAM STREAM                          the first waits for the second
///   mark NAME [again]                  figures are read; again: maxima are those since the last mark
///   empty_cache
///   end STEPS                          the last line: how many lines from phase on there were, but for names
[[nodiscard]] std::string to_text(const Program& program);

/// Errc::malformed naming `label` and the line: an unknown line, a number out of range, a take given back twice, a file
/// that has no `end`. Reads a text of n bytes in a time and memory of the order of n.
[[nodiscard]] Result<Program> read_program(std::string_view text, std::string_view label);

/// Of a file of at most half a gigabyte. Fails as read_file() does, too.
[[nodiscard]] Result<Program> load_program(const std::filesystem::path& path);

}  // namespace shard::like
