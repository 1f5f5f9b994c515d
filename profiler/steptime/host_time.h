// How long the host takes before it gives the device the next piece, as a law: what a dry run's own host takes is
// mostly the recording.
#pragma once

#include <cstdint>

namespace shard::steptime {

/// Seconds, of a server's CPU and CPython. An operator of PyTorch counts with those that it calls, each of which is
/// dispatched, and of which most launch nothing; Python's share of a module's call is in it.
inline constexpr double kOperator = 2e-6;
inline constexpr double kShareOfBackward = 0.8;  ///< of that, on a thread of autograd, which C++ alone spends
inline constexpr double kCall = 3e-6;            ///< of CUDA: a launch, a copy
inline constexpr double kNoOperator = 5e-6;      ///< more, for a kernel that Python launches itself: Triton's
inline constexpr double kEvent = 1e-6;           ///< an event that is recorded or waited for
inline constexpr double kOfShards = 200e-6;      ///< an all-gather or reduce-scatter: hooks and copies of FSDP
inline constexpr double kExchange = 50e-6;       ///< another collective
inline constexpr double kGraph = 10e-6;          ///< a graph's launch, whatever it holds
inline constexpr double kBetweenKernels = 1e-6;  ///< on the device
inline constexpr double kBetweenNodes = 0.5e-6;  ///< in a graph

}  // namespace shard::steptime
