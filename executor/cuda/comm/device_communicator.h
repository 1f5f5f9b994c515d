// A communicator whose arena is memory of a device, and whose calls are enqueued on a stream: what the backend knows.
#pragma once

#include <chrono>
#include <span>

#include "executor/comm/communicator.h"
#include "executor/cuda/api/api.h"

namespace shard::cuda {

/// One rank's end. A call is enqueued when start() returns, and complete when the stream has come to its end: start()
/// waits for members' hosts where the implementation must, with the deadline. poll() asks the device.
///
/// The arena is device memory: its span is for arithmetic with addresses, not for the host to touch.
class DeviceCommunicator : public Communicator {
 public:
  /// Calls are enqueued here. Before make_arena().
  virtual void use(Stream stream) = 0;
  /// The groups that this rank will call with, itself and no others left out. Once, before make_arena(), which makes
  /// what they need.
  virtual void will_call(std::span<const RankGroup> groups) = 0;
  /// This rank's number among those that share its device.
  [[nodiscard]] virtual int seat() const = 0;
  /// Between two questions whether the device has finished: lets others go on. The errors of other ranks, and of
  /// transfers.
  [[nodiscard]] virtual Result<void> while_waiting() = 0;
  /// How much longer than the deadline a rank waits that only waits for others, so that the one that hangs speaks
  /// first. Nothing where ranks see one another's streams.
  [[nodiscard]] virtual std::chrono::milliseconds patience() const { return {}; }
  /// The rank failed: what it has still on the device and waits for other ranks ends, so that freeing does not wait
  /// for them. Only abort() comes behind it.
  virtual void give_up() {}
  /// Behind the last call, before what it used is freed: waits for other ranks where the implementation must, with the
  /// deadline. Without it, or where it fails, what still runs is ended.
  [[nodiscard]] virtual Result<void> leave() { return {}; }
  /// Calls that a graph has made again.
  void launched_again(const CollectiveTotals& calls) { count_again(calls); }
};

}  // namespace shard::cuda
