// Calls of the CUDA runtime, each checked.
#include "executor/cuda/module/device.h"

#include <cuda_runtime_api.h>
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCudaRt.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <set>
#include <string>
#include <vector>

#include "executor/cuda/api/machine.h"
#include "executor/cuda/module/check.h"
#include "executor/cuda/module/products.h"

namespace shard::cuda {
namespace {

constexpr std::uintptr_t kAlignment = 512;

cudaStream_t raw(Stream stream) {
  return reinterpret_cast<cudaStream_t>(stream);  // kernels launch on it (device_nvcc.h)
}
cudaEvent_t raw(Event event) {
  return reinterpret_cast<cudaEvent_t>(event);
}
cudaGraphExec_t raw(Graph graph) {
  return reinterpret_cast<cudaGraphExec_t>(graph);
}

class RealDevice final : public Api {
 public:
  RealDevice(int device, DeviceFacts facts) : device_(device), facts_(std::move(facts)) {}

  ~RealDevice() override {
    if (abandoned_) {
      static_cast<void>(products_.release());  // whose library frees memory of the device
      return;
    }
    if (cudaSetDevice(device_) != cudaSuccess) return;
    products_.reset();
    for (cudaGraphExec_t graph : graphs_) cudaGraphExecDestroy(graph);
    for (cudaEvent_t event : events_) cudaEventDestroy(event);
    for (cudaStream_t stream : streams_) cudaStreamDestroy(stream);
    for (std::byte* memory : device_memory_) cudaFree(memory);
    for (std::byte* memory : pinned_) cudaFreeHost(memory);
  }

  const DeviceFacts& facts() const override { return facts_; }

  Result<MemoryInfo> memory_info() override {
    std::size_t free = 0;
    std::size_t total = 0;
    if (const auto done = call(cudaMemGetInfo, "cudaMemGetInfo", &free, &total); !done) return done.error();
    return MemoryInfo{Bytes{static_cast<std::int64_t>(free)}, Bytes{static_cast<std::int64_t>(total)}};
  }

  Result<std::byte*> allocate(Bytes bytes) override {
    void* memory = nullptr;
    const auto take = [&](std::size_t size) { return cudaMalloc(&memory, size); };
    if (const auto done = call(take, "cudaMalloc", size_of(bytes)); !done) return short_of(done.error(), bytes);
    return kept(memory, device_memory_);
  }
  Result<std::byte*> allocate_pinned(Bytes bytes) override {
    void* memory = nullptr;
    const auto take = [&](std::size_t size) { return cudaHostAlloc(&memory, size, cudaHostAllocMapped); };
    if (const auto done = call(take, "cudaHostAlloc", size_of(bytes)); !done) return short_of(done.error(), bytes);
    return kept(memory, pinned_);
  }
  void free(std::byte* memory) override {
    if (!abandoned_ && device_memory_.erase(memory) > 0 && cudaSetDevice(device_) == cudaSuccess) cudaFree(memory);
  }
  void free_pinned(std::byte* memory) override {
    if (!abandoned_ && pinned_.erase(memory) > 0 && cudaSetDevice(device_) == cudaSuccess) cudaFreeHost(memory);
  }

  void abandon() override { abandoned_ = true; }

  Result<Stream> make_stream(std::string_view name) override {
    cudaStream_t stream = nullptr;
    const auto make = [&] { return cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking); };
    if (const auto done = call(make, "cudaStreamCreateWithFlags"); !done) return done.error();
    nvtxNameCudaStreamA(stream, std::string(name).c_str());
    streams_.push_back(stream);
    return reinterpret_cast<Stream>(stream);
  }
  Result<Event> make_event() override {
    cudaEvent_t event = nullptr;
    const auto make = [&] { return cudaEventCreate(&event); };
    if (const auto done = call(make, "cudaEventCreate"); !done) return done.error();
    events_.push_back(event);
    return reinterpret_cast<Event>(event);
  }
  Result<void> record(Event event, Stream stream) override {
    const auto record = [&] { return cudaEventRecord(raw(event), raw(stream)); };
    return call(record, "cudaEventRecord");
  }
  Result<void> wait(Stream stream, Event event) override {
    return call(cudaStreamWaitEvent, "cudaStreamWaitEvent", raw(stream), raw(event), 0U);
  }
  Result<bool> is_done(Event event) override {
    if (const auto done = call(cudaSetDevice, "cudaSetDevice", device_); !done) return done.error();
    const cudaError_t status = cudaEventQuery(raw(event));
    if (status == cudaErrorNotReady) {
      cudaGetLastError();  // which end_op would take for a launch's
      return false;
    }
    if (status != cudaSuccess) return error_of(status, "cudaEventQuery");
    return true;
  }
  Result<double> seconds_between(Event begin, Event end) override {
    float milliseconds = 0;
    const auto measure = [&] { return cudaEventElapsedTime(&milliseconds, raw(begin), raw(end)); };
    if (const auto done = call(measure, "cudaEventElapsedTime"); !done) return done.error();
    return milliseconds * 1e-3;
  }

  Result<void> copy(Stream stream, void* to, const void* from, std::int64_t bytes) override {
    if (bytes == 0) return {};
    if (const Result<void> kept = check_kept(stream, from); !kept) return kept.error();
    return call(cudaMemcpyAsync, "cudaMemcpyAsync", to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault,
                raw(stream));
  }
  Result<void> fill(Stream stream, void* to, std::uint8_t value, std::int64_t bytes) override {
    if (bytes == 0) return {};
    return call(cudaMemsetAsync, "cudaMemsetAsync", to, int{value}, static_cast<std::size_t>(bytes), raw(stream));
  }
  Result<void> call_host(Stream stream, void (*function)(void* data), void* data) override {
    return call(cudaLaunchHostFunc, "cudaLaunchHostFunc", raw(stream), function, data);
  }

  Result<void> begin_op(Stream, const OpNote& note) override {
    // The profiler's text ends in a zero; without a profiler this is a call through a pointer.
    std::array<char, 128> name{};
    std::ranges::copy(note.name.substr(0, name.size() - 1), name.begin());
    nvtxRangePushA(name.data());
    return call(cudaSetDevice, "cudaSetDevice", device_);
  }
  Result<void> end_op(Stream) override {
    nvtxRangePop();
    return checked(cudaPeekAtLastError(), "a kernel's launch");
  }

  Result<void> begin_capture(Stream origin) override {
    // Relaxed: libraries load code and ask for attributes at a kernel's first launch, which may be this one.
    return call(cudaStreamBeginCapture, "cudaStreamBeginCapture", raw(origin), cudaStreamCaptureModeRelaxed);
  }
  Result<Graph> end_capture(Stream origin) override {
    cudaGraph_t graph = nullptr;
    const auto end = [&] { return cudaStreamEndCapture(raw(origin), &graph); };
    if (const auto done = call(end, "cudaStreamEndCapture"); !done) return done.error();
    cudaGraphExec_t instance = nullptr;
    const auto instantiate = [&] { return cudaGraphInstantiate(&instance, graph, 0); };
    const Result<void> made = call(instantiate, "cudaGraphInstantiate");
    cudaGraphDestroy(graph);
    if (!made) return made.error();
    graphs_.insert(instance);
    if (const auto done = call(cudaGraphUpload, "cudaGraphUpload", instance, raw(origin)); !done) return done.error();
    return reinterpret_cast<Graph>(instance);
  }
  Result<void> launch_graph(Graph graph, Stream stream) override {
    return call(cudaGraphLaunch, "cudaGraphLaunch", raw(graph), raw(stream));
  }
  void destroy_graph(Graph graph) override {
    if (graphs_.erase(raw(graph)) > 0 && cudaSetDevice(device_) == cudaSuccess) cudaGraphExecDestroy(raw(graph));
  }

  Result<Product> prepare_product(const ProductShape& shape, Bytes workspace) override {
    if (const auto done = call(cudaSetDevice, "cudaSetDevice", device_); !done) return done.error();
    if (products_ == nullptr) {
      Result<std::unique_ptr<Products>> made = make_products();
      if (!made) return made.error();
      products_ = std::move(*made);
    }
    return products_->prepare(shape, workspace);
  }
  Result<void> multiply(Stream stream, Product product, const ProductOperands& operands) override {
    assert(products_ != nullptr);
    if (const auto done = call(cudaSetDevice, "cudaSetDevice", device_); !done) return done.error();
    return products_->multiply(raw(stream), product, operands);
  }

 private:
  /// On this device, whichever another thread's calls left current.
  template <class F, class... A>
  Result<void> call(F&& function, const char* name, A... arguments) const {
    if (abandoned_)
      return Error{.code = Errc::unavailable, .what = "the device hangs, and was given up", .where = "", .help = ""};
    if (const cudaError_t status = cudaSetDevice(device_); status != cudaSuccess)
      return error_of(status, "cudaSetDevice");
    return checked(function(arguments...), name);
  }

  static std::size_t size_of(Bytes bytes) { return static_cast<std::size_t>(std::max<std::int64_t>(bytes.count(), 1)); }

  static Error short_of(Error error, Bytes bytes) {
    error.where = std::to_string(bytes.count()) + " bytes";
    return error;
  }

  static Result<std::byte*> kept(void* memory, std::set<std::byte*>& in) {
    auto* bytes = static_cast<std::byte*>(memory);
    in.insert(bytes);
    if (reinterpret_cast<std::uintptr_t>(memory) % kAlignment == 0) return bytes;
    return Error{
        .code = Errc::internal, .what = "CUDA gave memory that is not aligned to 512 bytes", .where = "", .help = ""};
  }

  /// A graph reads pageable memory when it is launched, not when the copy is asked for as copy() promises.
  Result<void> check_kept(Stream stream, const void* from) const {
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    const auto ask = [&] { return cudaStreamIsCapturing(raw(stream), &capture); };
    if (const auto done = call(ask, "cudaStreamIsCapturing"); !done) return done.error();
    if (capture == cudaStreamCaptureStatusNone) return {};
    cudaPointerAttributes about{};
    const auto look = [&] { return cudaPointerGetAttributes(&about, from); };
    if (const auto done = call(look, "cudaPointerGetAttributes"); !done) return done.error();
    if (about.type != cudaMemoryTypeUnregistered) return {};
    return Error{
        .code = Errc::internal, .what = "a copy from pageable memory is captured in a graph", .where = "", .help = ""};
  }

  int device_;
  DeviceFacts facts_;
  bool abandoned_ = false;
  std::set<std::byte*> device_memory_;
  std::set<std::byte*> pinned_;
  std::vector<cudaStream_t> streams_;
  std::vector<cudaEvent_t> events_;
  std::set<cudaGraphExec_t> graphs_;
  std::unique_ptr<Products> products_;
};

}  // namespace

Result<DeviceFacts> facts_of(int device, int driver) {
  cudaDeviceProp about{};
  if (const cudaError_t status = cudaGetDeviceProperties(&about, device); status != cudaSuccess)
    return error_of(status, "cudaGetDeviceProperties");
  return DeviceFacts{.name = about.name,
                     .compute_capability = 10 * about.major + about.minor,
                     .multiprocessors = about.multiProcessorCount,
                     .threads_per_multiprocessor = about.maxThreadsPerMultiProcessor,
                     .memory = Bytes{static_cast<std::int64_t>(about.totalGlobalMem)},
                     .driver = driver};
}

Result<std::unique_ptr<Api>> open_real_device(int device) {
  const Result<Drivers> found = find_devices();
  if (!found) return found.error();
  if (device < 0 || device >= found->devices)
    return Error{.code = Errc::unavailable,
                 .what = "there is no GPU " + std::to_string(device) + ", only " + std::to_string(found->devices) +
                         ", counted from 0",
                 .where = "",
                 .help = "shardscope inspect --device cuda lists them"};
  Result<DeviceFacts> facts = facts_of(device, found->driver);
  if (!facts) return facts.error();
  constexpr std::int32_t kLeast = 80;
  if (facts->compute_capability < kLeast)
    return Error{.code = Errc::unavailable,
                 .what = facts->name + " is of compute capability " + capability_text(facts->compute_capability) +
                         "; 8.0 (A100) or newer is needed",
                 .where = "",
                 .help = ""};
  if (const cudaError_t status = cudaSetDevice(device); status != cudaSuccess) return error_of(status, "cudaSetDevice");
  return std::unique_ptr<Api>(std::make_unique<RealDevice>(device, std::move(*facts)));
}

}  // namespace shard::cuda
