// The emulated device's answer to each call of the interface.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "executor/cuda/api/api.h"
#include "executor/cuda/emulated/block_runner.h"
#include "executor/cuda/emulated/device_memory.h"
#include "executor/cuda/emulated/emulated.h"
#include "executor/cuda/emulated/graph.h"
#include "executor/cuda/emulated/order_check.h"
#include "executor/cuda/emulated/scheduler.h"
#include "executor/cuda/emulated/work.h"

namespace shard::cuda::emulated {

class Device;

/// A stream, and what it is at while its calls are made.
struct DeviceStream {
  Device* device = nullptr;
  std::size_t number = 0;
  std::string name;
  Op outside{};                   ///< stands for work that belongs to no op
  Op op{};                        ///< of begin_op(); null: none
  std::string_view op_name{};     ///< of it
  bool results_poisoned = false;  ///< of that op
  std::shared_ptr<Capture> capture{};
  std::vector<std::int32_t> last{};  ///< in a capture: nodes that what comes next is behind
};

/// From begin_capture() to end_capture().
struct Capture {
  std::shared_ptr<GraphWork> graph = std::make_shared<GraphWork>();
  DeviceStream* origin = nullptr;
  bool ended = false;
};

class Device final : public Api {
 public:
  Device(const EmulatedOptions& options, std::unique_ptr<DeviceMemory> memory);

  const DeviceFacts& facts() const override { return facts_; }
  Result<MemoryInfo> memory_info() override;
  Result<std::byte*> allocate(Bytes bytes) override;
  Result<std::byte*> allocate_pinned(Bytes bytes) override;
  void free(std::byte* memory) override;
  void free_pinned(std::byte* memory) override;
  void abandon() override;

  Result<Stream> make_stream(std::string_view name) override;
  Result<Event> make_event() override;
  Result<void> record(Event event, Stream stream) override;
  Result<void> wait(Stream stream, Event event) override;
  Result<bool> is_done(Event event) override;
  Result<double> seconds_between(Event begin, Event end) override;

  Result<void> copy(Stream stream, void* to, const void* from, std::int64_t bytes) override;
  Result<void> fill(Stream stream, void* to, std::uint8_t value, std::int64_t bytes) override;
  Result<void> call_host(Stream stream, void (*function)(void* data), void* data) override;
  Result<void> begin_op(Stream stream, const OpNote& note) override;
  Result<void> end_op(Stream stream) override;

  Result<void> begin_capture(Stream origin) override;
  Result<Graph> end_capture(Stream origin) override;
  Result<void> launch_graph(Graph graph, Stream stream) override;
  void destroy_graph(Graph graph) override;

  Result<Product> prepare_product(const ProductShape& shape, Bytes workspace) override;
  Result<void> multiply(Stream stream, Product product, const ProductOperands& operands) override;

  // Of launches, which no call of the interface makes. What they find is told by the next call.
  /// Where a kernel's pointer argument really points to; null where it is refused. `argument` counts from 1.
  const void* kernel_pointer(DeviceStream& stream, const void* pointer, int argument);
  void refuse_argument(DeviceStream& stream, int argument, const std::string& why);
  void launch(DeviceStream& stream, const BlockRunner::Sizes& sizes, std::string_view function,
              std::function<void()> thread);

  // Of transfers between devices, which NCCL makes.
  /// A step of the stream that touches `ranges`; `ready` and `run` are called as Step has them.
  Result<void> transfer(DeviceStream& stream, const std::vector<Range>& ranges, bool hangs, std::function<bool()> ready,
                        std::function<void()> run);
  [[nodiscard]] std::vector<std::byte> content(const std::byte* from, std::int64_t bytes) const;
  void store(std::byte* to, const std::vector<std::byte>& content) const;

 private:
  struct DeviceEvent {
    std::shared_ptr<Moment> moment{};  ///< of the latest record
  };
  struct PreparedProduct {
    ProductShape shape;
    Bytes workspace{};
  };

  // What every call begins with: planted faults, and the error that there was.
  std::optional<Error> enter(std::string_view call);
  std::optional<Error> enter(std::string_view call, DeviceStream& stream);
  [[nodiscard]] bool hangs_now(std::string_view call);
  Error fail(Error error);
  Error misuse(const DeviceStream& stream, const std::string& why);

  // Work.
  [[nodiscard]] const Op& owner(const DeviceStream& stream) const;
  [[nodiscard]] EmulatedWork told_of(const DeviceStream& stream, EmulatedWork::Kind kind, std::int64_t bytes,
                                     const ToldCall& call) const;
  [[nodiscard]] std::vector<Access> op_accesses(const DeviceStream& stream) const;
  Result<void> enqueue(DeviceStream& stream, Step step);
  void poison_results_first(DeviceStream& stream, Step& step);
  [[nodiscard]] Error conflict_error(const Conflict& conflict) const;
  [[nodiscard]] std::string place_of(const std::byte* address) const;

  // Memory.
  enum class Kind { device, pinned, pageable };
  [[nodiscard]] Result<Kind> kind_of(const DeviceStream& stream, const void* memory, std::int64_t bytes,
                                     const char* what);
  [[nodiscard]] std::optional<std::string> undeclared(const DeviceStream& stream, const std::byte* begin,
                                                      std::int64_t bytes, bool writes) const;
  void give_back(std::byte* memory, bool pinned);
  /// What freeing waits for. Aborts where it would wait for good.
  void run_all(const char* call);
  [[nodiscard]] Result<std::byte*> told_allocation(const Result<std::byte*>& memory, Bytes bytes, bool pinned,
                                                   const ToldCall& call) const;
  std::optional<Error> with_ranges_open(const OpRecord& op, const std::function<std::optional<Error>()>& run);

  EmulatedOptions options_;
  DeviceFacts facts_;
  std::unique_ptr<DeviceMemory> memory_;
  Scheduler scheduler_;
  OrderCheck order_;
  BlockRunner blocks_;
  std::deque<DeviceStream> streams_;
  std::deque<DeviceEvent> events_;
  std::deque<PreparedProduct> products_;
  std::map<const GraphWork*, std::shared_ptr<GraphWork>> graphs_;
  int captures_ = 0;
  std::vector<const std::byte*> arguments_;  // of the launch that is being made: allocations its pointers lie in
  std::int64_t occurrences_ = 0;             // of the call that a fault is planted at
  bool stopped_ = false;                     // planted: nothing runs any more
  bool abandoned_ = false;
  std::optional<Error> fault_;
};

[[nodiscard]] inline DeviceStream& of(Stream stream) {
  return *reinterpret_cast<DeviceStream*>(stream);
}

}  // namespace shard::cuda::emulated
