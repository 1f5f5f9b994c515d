// What communicators of several GPUs ask of NCCL: a few calls, answered by the library or by a stand-in.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "executor/cuda/api/api.h"

namespace shard::cuda {

/// Handle of the implementation; null is none.
using NcclComm = struct NcclCommTag*;

/// What the ranks of a communicator find each other by; made by one of them and told to the others.
struct NcclId {
  std::array<char, 128> bytes{};
};

/// Communicators do not block: begin() and finish() return at once, and any other call may return before it is done
/// with its work on the host; is_ready() says so, and until it does no other call may be made on that communicator.
/// Transfers are enqueued on a stream of the communicator's device, with every rank making the same ones in the same
/// order.
///
/// Errors: Errc::unavailable, naming the call, and what NCCL said. After one only abort() may be called.
class Nccl {
 public:
  Nccl() = default;
  Nccl(const Nccl&) = delete;
  Nccl& operator=(const Nccl&) = delete;
  virtual ~Nccl() = default;

  /// 10000 x major + 100 x minor + patch.
  [[nodiscard]] virtual std::int32_t version() const = 0;
  [[nodiscard]] virtual Result<NcclId> unique_id() = 0;
  /// Joins the communicator of `id` as `rank` of `ranks`, with the calling thread's device.
  [[nodiscard]] virtual Result<NcclComm> begin(std::int32_t ranks, const NcclId& id, std::int32_t rank) = 0;
  /// Whether all calls are done with the host; an error of any of them, or of a transfer, at any time later.
  [[nodiscard]] virtual Result<bool> is_ready(NcclComm comm) = 0;
  /// Ends all transfers that still run, here, and frees the communicator.
  virtual void abort(NcclComm comm) = 0;
  /// Waits for all transfers of all ranks; destroy() once is_ready().
  [[nodiscard]] virtual Result<void> finish(NcclComm comm) = 0;
  [[nodiscard]] virtual Result<void> destroy(NcclComm comm) = 0;

  /// Calls in between are made as one: none waits for another, and sends and receives may be in any order.
  [[nodiscard]] virtual Result<void> group_start() = 0;
  [[nodiscard]] virtual Result<void> group_end() = 0;

  // `count` elements: of one rank's part in all_gather and reduce_scatter, of the whole in all others. Reductions are
  // sums, in NCCL's own order.
  [[nodiscard]] virtual Result<void> all_gather(NcclComm comm, Stream stream, const std::byte* in, std::byte* out,
                                                std::int64_t count, Dtype dtype) = 0;
  [[nodiscard]] virtual Result<void> reduce_scatter(NcclComm comm, Stream stream, const std::byte* in, std::byte* out,
                                                    std::int64_t count, Dtype dtype) = 0;
  [[nodiscard]] virtual Result<void> all_reduce(NcclComm comm, Stream stream, const std::byte* in, std::byte* out,
                                                std::int64_t count, Dtype dtype) = 0;
  [[nodiscard]] virtual Result<void> broadcast(NcclComm comm, Stream stream, const std::byte* in, std::byte* out,
                                               std::int64_t count, Dtype dtype, std::int32_t root) = 0;
  [[nodiscard]] virtual Result<void> reduce(NcclComm comm, Stream stream, const std::byte* in, std::byte* out,
                                            std::int64_t count, Dtype dtype, std::int32_t root) = 0;
  [[nodiscard]] virtual Result<void> send(NcclComm comm, Stream stream, const std::byte* in, std::int64_t count,
                                          Dtype dtype, std::int32_t peer) = 0;
  [[nodiscard]] virtual Result<void> receive(NcclComm comm, Stream stream, std::byte* out, std::int64_t count,
                                             Dtype dtype, std::int32_t peer) = 0;
};

}  // namespace shard::cuda
