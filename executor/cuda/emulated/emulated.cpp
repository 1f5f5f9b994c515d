// Work runs when it is enqueued.
#include "executor/cuda/emulated/emulated.h"

#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <new>
#include <optional>
#include <string>

#include "executor/cuda/emulated/block_runner.h"
#include "executor/cuda/emulated/launch_call.h"
#include "executor/cuda/kernels/device.h"

namespace shard::cuda {
namespace emulated {
namespace {

class Device;

struct DeviceStream {
  Device* device = nullptr;
  std::string name;
  std::string op;
};

class Device final : public Api {
 public:
  explicit Device(const EmulatedOptions& options) : runner_(options.seed), capacity_(options.capacity) {
    facts_ = {"emulated", 0, 1, options.capacity, 0, true};
  }
  ~Device() override {
    for (const auto& [memory, bytes] : sizes_) ::operator delete (memory, std::align_val_t{512});
  }

  const DeviceFacts& facts() const override { return facts_; }
  Result<MemoryInfo> memory_info() override { return MemoryInfo{capacity_ - used_, capacity_}; }

  Result<std::byte*> allocate(Bytes bytes) override {
    if (used_ + bytes > capacity_) return Error{Errc::does_not_fit, "the emulated device has no memory left", "", ""};
    used_ += bytes;
    auto* const memory =
        static_cast<std::byte*>(::operator new (static_cast<std::size_t>(bytes.count()) + 512, std::align_val_t{512}));
    std::memset(memory, 0xFF, static_cast<std::size_t>(bytes.count()));
    sizes_[memory] = bytes;
    return memory;
  }
  Result<std::byte*> allocate_pinned(Bytes bytes) override { return allocate(bytes); }
  void free(std::byte* memory) override {
    used_ -= sizes_.at(memory);
    sizes_.erase(memory);
    ::operator delete (memory, std::align_val_t{512});
  }
  void free_pinned(std::byte* memory) override { free(memory); }

  Result<Stream> make_stream(std::string_view name) override {
    streams_.push_back({this, std::string(name), std::string(name)});
    return reinterpret_cast<Stream>(&streams_.back());
  }
  Result<Event> make_event() override {
    events_.emplace_back();
    return reinterpret_cast<Event>(&events_.back());
  }
  Result<void> record(Event, Stream) override { return fault(); }
  Result<void> wait(Stream, Event) override { return fault(); }
  Result<bool> is_done(Event) override {
    if (fault_) return *fault_;
    return true;
  }
  Result<double> seconds_between(Event, Event) override { return 0.0; }
  Result<void> copy(Stream, void* to, const void* from, std::int64_t bytes) override {
    std::memmove(to, from, static_cast<std::size_t>(bytes));
    return fault();
  }
  Result<void> fill(Stream, void* to, std::uint8_t value, std::int64_t bytes) override {
    std::memset(to, value, static_cast<std::size_t>(bytes));
    return fault();
  }
  Result<void> call_host(Stream, void (*function)(void* data), void* data) override {
    function(data);
    return fault();
  }
  Result<void> begin_op(Stream stream, const OpNote& note) override {
    reinterpret_cast<DeviceStream*>(stream)->op = std::string(note.name);
    return fault();
  }
  Result<void> end_op(Stream) override { return fault(); }
  Result<void> begin_capture(Stream) override { return missing(); }
  Result<Graph> end_capture(Stream) override { return missing(); }
  Result<void> launch_graph(Graph, Stream) override { return missing(); }
  void destroy_graph(Graph) override {}
  Result<Product> prepare_product(const ProductShape&, Bytes) override { return missing(); }
  Result<void> multiply(Stream, Product, const ProductOperands&) override { return missing(); }

  void launch_kernel(const DeviceStream& stream, const Launch& sizes, const std::function<void()>& thread) {
    const BlockRunner::Sizes grid{{sizes.blocks_x, sizes.blocks_y, sizes.blocks_z}, sizes.threads, sizes.shared_bytes};
    if (!BlockRunner::takes(grid)) {
      fault_ = Error{Errc::internal, "a launch of sizes that no device takes", stream.op, ""};
    } else if (!runner_.run(grid, thread, stream.op)) {
      fault_ = Error{Errc::internal, "a kernel wrote beyond its shared memory", stream.op, ""};
    }
  }

 private:
  [[nodiscard]] Result<void> fault() const { return fault_ ? Result<void>(*fault_) : Result<void>(); }
  static Error missing() { return Error{Errc::internal, "not emulated yet", "", ""}; }

  DeviceFacts facts_;
  BlockRunner runner_;
  Bytes capacity_;
  Bytes used_{};
  std::map<std::byte*, Bytes> sizes_;
  std::deque<DeviceStream> streams_;
  std::deque<char> events_;
  std::optional<Error> fault_;
};

}  // namespace

LaunchCall::LaunchCall(Stream stream, const Launch& sizes) : stream_(stream), sizes_(&sizes) {}

void LaunchCall::enqueue(std::function<void()> thread) {
  auto& stream = *reinterpret_cast<DeviceStream*>(stream_);
  stream.device->launch_kernel(stream, *sizes_, thread);
}

const void* LaunchCall::translated(const void* pointer) {
  return pointer;
}

}  // namespace emulated

Result<std::unique_ptr<Api>> make_emulated(const EmulatedOptions& options) {
  return std::unique_ptr<Api>(std::make_unique<emulated::Device>(options));
}

}  // namespace shard::cuda
