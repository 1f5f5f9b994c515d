// What the injected library and whoever starts the program agree on: names of variables and files.
#pragma once

namespace shard::profiler {

/// Folder that each process puts its spool into: PID.events, PID.events.names; or PID.why, a sentence, where nothing
/// could be recorded.
inline constexpr const char* kFolderVariable = "SHARDSCOPE_PROFILE_FOLDER";
inline constexpr const char* kMostBytesVariable = "SHARDSCOPE_PROFILE_BYTES";
/// "1": each process begins paused.
inline constexpr const char* kPausedVariable = "SHARDSCOPE_PROFILE_PAUSED";

/// What is recorded (wanted_ranges.h): a range's name; "A:B", steps; what a step is called.
inline constexpr const char* kRangeVariable = "SHARDSCOPE_PROFILE_RANGE";
inline constexpr const char* kStepsVariable = "SHARDSCOPE_PROFILE_STEPS";
inline constexpr const char* kStepRangeVariable = "SHARDSCOPE_PROFILE_STEP_RANGE";

inline constexpr const char* kEventsSuffix = ".events";
inline constexpr const char* kWhySuffix = ".why";

}  // namespace shard::profiler
