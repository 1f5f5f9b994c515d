// What the GPU backend asks of CUDA and its libraries: a few calls, answered by the libraries or by an emulated device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "sim/model/direction.h"
#include "sim/model/signature.h"
#include "traces/base/dtype.h"
#include "traces/base/ids.h"
#include "traces/base/result.h"
#include "traces/base/units.h"

namespace shard::cuda {

/// Handles of the implementation; null is none. Callers only hand them back.
using Stream = struct StreamTag*;
using Event = struct EventTag*;
using Graph = struct GraphTag*;
using Product = struct ProductTag*;

struct DeviceFacts {
  std::string name{};
  std::int32_t compute_capability = 0;  ///< 10 x major + minor
  std::int32_t multiprocessors = 0;
  std::int32_t threads_per_multiprocessor = 0;
  Bytes memory{};
  std::int32_t driver = 0;  ///< as cuDriverGetVersion gives it, 1000 x major + 10 x minor
  bool emulated = false;
};

struct MemoryInfo {
  Bytes free{};
  Bytes total{};
};

/// Bytes that an op touches, on the device or in pinned host memory.
struct Range {
  const std::byte* begin = nullptr;
  std::int64_t bytes = 0;
  model::Access access = model::Access::read;
};

/// Whose work is enqueued. `name` and `ranges` outlive the work (a plan's op does).
struct OpNote {
  Rank rank{};
  OpId op{};
  std::string_view name{};
  std::span<const Range> ranges{};  ///< all that its kernels and library calls touch; copied
};

/// C[m,n] = A[m,k] B[k,n] (+ C) (+ bias on every row), row-major, of one element type, summed in fp32 and rounded once.
struct ProductShape {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  bool transpose_a = false;  ///< A lies as [k,m]
  bool transpose_b = false;  ///< B lies as [n,k]
  bool accumulate = false;   ///< C is added to
  bool bias = false;         ///< [n] is added
  Dtype dtype = Dtype::f32;
  bool tensor_float = false;  ///< fp32 operands may be rounded to tf32
  Bytes alignment{16};        ///< every operand begins at a multiple of it: a power of two, 16 at most
  friend bool operator==(const ProductShape&, const ProductShape&) = default;
};

struct ProductOperands {
  const std::byte* a = nullptr;
  const std::byte* b = nullptr;
  const std::byte* bias = nullptr;
  std::byte* c = nullptr;
  std::span<std::byte> workspace{};  ///< as large as the plan says; an algorithm that needs more is not taken
};

/// One device. Used by one thread at a time. Calls that take a stream enqueue and return; what they enqueue runs in
/// order on its stream and in any order beside that of other streams. Memory of the device is not the host's to touch,
/// pinned memory is both's: whoever touches it must be ordered by an event that is_done() has seen, or by a stream.
///
/// Errors: does_not_fit where memory is short; unavailable where a call fails, naming the call and what it said. After
/// one error every further call may fail; nothing is enqueued any more.
class Api {
 public:
  Api() = default;
  Api(const Api&) = delete;
  Api& operator=(const Api&) = delete;
  virtual ~Api() = default;

  [[nodiscard]] virtual const DeviceFacts& facts() const = 0;
  [[nodiscard]] virtual Result<MemoryInfo> memory_info() = 0;

  // Memory, aligned to 512 bytes. What was allocated and not freed is freed with the Api. Content is unspecified.
  // Freeing waits for all that is enqueued on the device.
  [[nodiscard]] virtual Result<std::byte*> allocate(Bytes bytes) = 0;
  [[nodiscard]] virtual Result<std::byte*> allocate_pinned(Bytes bytes) = 0;
  virtual void free(std::byte* memory) = 0;
  virtual void free_pinned(std::byte* memory) = 0;

  /// The device hangs: nothing that would wait for it is called any more. From here on nothing is freed, not with the
  /// Api either, and every call fails; destroy_graph() lets go of what is not running. The process's end frees it all.
  virtual void abandon() = 0;

  // Streams and events live as long as the Api. `name` is for messages and profilers.
  [[nodiscard]] virtual Result<Stream> make_stream(std::string_view name) = 0;
  [[nodiscard]] virtual Result<Event> make_event() = 0;
  /// The event stands for all that the stream has so far.
  [[nodiscard]] virtual Result<void> record(Event event, Stream stream) = 0;
  /// What comes next on the stream runs behind what the event stood for when this was called; an event that was never
  /// recorded stands for nothing.
  [[nodiscard]] virtual Result<void> wait(Stream stream, Event event) = 0;
  /// Whether what the event stands for has finished. Never blocks. Not while capturing.
  [[nodiscard]] virtual Result<bool> is_done(Event event) = 0;
  /// Between two recorded events that are done.
  [[nodiscard]] virtual Result<double> seconds_between(Event begin, Event end) = 0;

  // Device, pinned and pageable memory, told apart by address. From pageable memory the bytes are read before the call
  // returns; all else happens when the stream comes to it.
  [[nodiscard]] virtual Result<void> copy(Stream stream, void* to, const void* from, std::int64_t bytes) = 0;
  [[nodiscard]] virtual Result<void> fill(Stream stream, void* to, std::uint8_t value, std::int64_t bytes) = 0;
  /// Calls function(data) on some thread when the stream comes to it. It makes no calls of this interface.
  [[nodiscard]] virtual Result<void> call_host(Stream stream, void (*function)(void* data), void* data) = 0;

  /// Until end_op, what is enqueued on the stream belongs to this op. end_op also says whether all of the op's kernels
  /// could be launched.
  [[nodiscard]] virtual Result<void> begin_op(Stream stream, const OpNote& note) = 0;
  [[nodiscard]] virtual Result<void> end_op(Stream stream) = 0;

  // Graphs. From begin_capture on, what is enqueued on `origin`, and on streams that wait for an event recorded in the
  // capture, is not run but kept; end_capture makes a graph of it, all of whose branches have come back to `origin`.
  [[nodiscard]] virtual Result<void> begin_capture(Stream origin) = 0;
  [[nodiscard]] virtual Result<Graph> end_capture(Stream origin) = 0;
  [[nodiscard]] virtual Result<void> launch_graph(Graph graph, Stream stream) = 0;
  virtual void destroy_graph(Graph graph) = 0;

  // Matrix products. What is prepared is kept; equal shapes give the same algorithm, and so the same bits.
  [[nodiscard]] virtual Result<Product> prepare_product(const ProductShape& shape, Bytes workspace) = 0;
  [[nodiscard]] virtual Result<void> multiply(Stream stream, Product product, const ProductOperands& operands) = 0;
};

}  // namespace shard::cuda
