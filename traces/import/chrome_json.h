// Imports Chrome's JSON trace event format, and PyTorch's profiler (Kineto), which writes it.
#pragma once

#include "traces/base/result.h"
#include "traces/import/byte_source.h"
#include "traces/import/import.h"

namespace shard::import {

/// Reads phases X B E b n e S T F i I R C M s t f; others are counted in the notes. Format:
/// "Trace Event Format", docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
///
/// `[memory]` instants of PyTorch become memory events, `ac2g` arrows launches, ProfilerStep#N annotations the steps of
/// all spans that begin inside them. Counters named "device memory" (host, disk) whose series are our categories, as
/// our own export writes them, become memory events again. Fails with Errc::malformed naming the byte where not one
/// event could be read.
[[nodiscard]] Result<LoadedTrace> import_chrome_json(ByteSource& source);

}  // namespace shard::import
