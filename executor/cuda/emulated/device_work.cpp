// What is enqueued on the emulated device: ops, copies, fills, calls of the host, products and kernels.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "executor/cuda/api/card.h"
#include "executor/cuda/emulated/device.h"
#include "executor/cuda/emulated/launch_call.h"
#include "executor/cuda/emulated/products.h"
#include "executor/cuda/kernels/device.h"

namespace shard::cuda::emulated {
namespace {

bool meet(const Range& a, const Range& b) {
  return a.begin < b.begin + b.bytes && b.begin < a.begin + a.bytes;
}

/// Those whose bytes the op replaces and does not look at.
std::vector<Range> results(const OpRecord& op) {
  std::vector<Range> ranges;
  for (const Range& range : op.ranges) {
    const bool looked_at = std::ranges::any_of(
        op.ranges, [&](const Range& other) { return other.access != model::Access::write && meet(range, other); });
    if (range.access == model::Access::write && !looked_at) ranges.push_back(range);
  }
  return ranges;
}

Access whole(const Range& range, const Op& op) {
  return {range.begin, range.begin + range.bytes, range.access != model::Access::read, op};
}

}  // namespace

const Op& Device::owner(const DeviceStream& stream) const {
  return stream.op != nullptr ? stream.op : stream.outside;
}

EmulatedWork Device::told_of(const DeviceStream& stream, EmulatedWork::Kind kind, std::int64_t bytes,
                             const ToldCall& call) const {
  if (options_.activity == nullptr) return {};
  return {.kind = kind,
          .device = options_.number,
          .stream = static_cast<std::uint32_t>(stream.number),
          .bytes = bytes,
          .correlation = call.number()};
}

std::vector<Access> Device::op_accesses(const DeviceStream& stream) const {
  std::vector<Access> accesses;
  const Op& op = owner(stream);
  for (const Range& range : op->ranges) accesses.push_back(whole(range, op));
  return accesses;
}

void Device::poison_results_first(DeviceStream& stream, Step& step) {
  if (stream.op == nullptr || std::exchange(stream.results_poisoned, true) || !options_.poison_results) return;
  const std::vector<Range> ranges = results(*stream.op);
  if (ranges.empty()) return;
  for (const Range& range : ranges) step.accesses.push_back(whole(range, stream.op));
  step.run = [this, ranges, run = std::move(step.run)]() {
    for (const Range& range : ranges) {
      memory_->open(range.begin, range.bytes);
      memory_->poison(range.begin, range.bytes);
      memory_->close(range.begin, range.bytes);
    }
    return run();
  };
}

Result<void> Device::enqueue(DeviceStream& stream, Step step) {
  if (!step.hangs) poison_results_first(stream, step);
  if (stream.capture != nullptr) {
    if (options_.activity != nullptr && step.told.kind != EmulatedWork::Kind::none) {
      step.told.node = options_.activity->next_node();
      options_.activity->node_made(step.told.node);
    }
    stream.last = {stream.capture->graph->add(std::move(step), std::move(stream.last))};
    return {};
  }
  if (options_.check_order) {
    if (const auto conflict = order_.enqueued(stream.number, step.accesses)) return fail(conflict_error(*conflict));
  }
  scheduler_.enqueue(stream.number, std::move(step));
  return {};
}

Result<void> Device::begin_op(Stream handle, const OpNote& note) {
  DeviceStream& stream = of(handle);
  if (auto error = enter("begin_op", stream)) return *error;
  if (stream.op != nullptr) return misuse(stream, "an op begins on stream '" + stream.name + "' within an op");
  stream.op =
      std::make_shared<OpRecord>(OpRecord{"rank " + std::to_string(note.rank.value) + " op " +
                                              std::to_string(note.op.value) + " '" + std::string(note.name) + "'",
                                          {note.ranges.begin(), note.ranges.end()}});
  stream.op_name = note.name;
  stream.results_poisoned = false;
  for (const Range& range : stream.op->ranges) {
    const auto kind = kind_of(stream, range.begin, range.bytes, "a declared range");
    if (!kind) return kind.error();
    if (*kind == Kind::pageable) return misuse(stream, "a declared range is neither of the device nor pinned");
  }
  return {};
}

Result<void> Device::end_op(Stream handle) {
  DeviceStream& stream = of(handle);
  if (auto error = enter("end_op", stream)) return *error;
  if (stream.op == nullptr) return misuse(stream, "an op ends on stream '" + stream.name + "' that did not begin");
  stream.op = nullptr;
  return {};
}

Result<void> Device::copy(Stream handle, void* to, const void* from, std::int64_t bytes) {
  DeviceStream& stream = of(handle);
  if (auto error = enter("copy", stream)) return *error;
  if (bytes == 0) return {};
  const auto to_kind = kind_of(stream, to, bytes, "where a copy goes to");
  if (!to_kind) return to_kind.error();
  const auto from_kind = kind_of(stream, from, bytes, "what is copied");
  if (!from_kind) return from_kind.error();
  const auto* const source = static_cast<const std::byte*>(from);
  auto* const target = static_cast<std::byte*>(to);
  const auto count = static_cast<std::size_t>(bytes);
  Step step;
  step.op = owner(stream);
  const ToldCall call(options_.activity, "cudaMemcpyAsync");
  step.told = told_of(stream, EmulatedWork::Kind::copy, bytes, call);
  step.told.from_host = *from_kind != Kind::device;
  step.told.to_host = *to_kind != Kind::device;
  for (const bool writes : {false, true}) {
    const std::byte* const begin = writes ? target : source;
    if ((writes ? *to_kind : *from_kind) == Kind::pageable) continue;
    if (const auto why = undeclared(stream, begin, bytes, writes)) return misuse(stream, *why);
  }
  step.accesses.push_back({target, target + bytes, true, step.op});
  if (*from_kind == Kind::pageable) {
    if (stream.capture != nullptr) return misuse(stream, "a copy from pageable memory is captured");
    step.run = [this, target, bytes, kept = std::vector<std::byte>(source, source + bytes)]() -> std::optional<Error> {
      memory_->open(target, bytes);
      memory_->note_written(target, bytes);
      std::memcpy(memory_->real(target), kept.data(), kept.size());
      memory_->close(target, bytes);
      return std::nullopt;
    };
  } else {
    step.accesses.push_back({source, source + bytes, false, step.op});
    step.run = [this, target, source, bytes, count]() -> std::optional<Error> {
      memory_->open(source, bytes);
      memory_->open(target, bytes);
      memory_->note_written(target, bytes);
      std::memmove(memory_->real(target), memory_->real(source), count);
      memory_->close(source, bytes);
      memory_->close(target, bytes);
      return std::nullopt;
    };
  }
  return enqueue(stream, std::move(step));
}

Result<void> Device::fill(Stream handle, void* to, std::uint8_t value, std::int64_t bytes) {
  DeviceStream& stream = of(handle);
  if (auto error = enter("fill", stream)) return *error;
  if (bytes == 0) return {};
  const auto kind = kind_of(stream, to, bytes, "what is filled");
  if (!kind) return kind.error();
  if (*kind == Kind::pageable) return misuse(stream, "what is filled is neither of the device nor pinned");
  auto* const target = static_cast<std::byte*>(to);
  if (const auto why = undeclared(stream, target, bytes, true)) return misuse(stream, *why);
  const ToldCall call(options_.activity, "cudaMemsetAsync");
  Step step;
  step.op = owner(stream);
  step.told = told_of(stream, EmulatedWork::Kind::fill, bytes, call);
  step.accesses.push_back({target, target + bytes, true, step.op});
  step.run = [this, target, value, bytes]() -> std::optional<Error> {
    memory_->open(target, bytes);
    memory_->note_written(target, bytes);
    std::memset(memory_->real(target), value, static_cast<std::size_t>(bytes));
    memory_->close(target, bytes);
    return std::nullopt;
  };
  return enqueue(stream, std::move(step));
}

Result<void> Device::call_host(Stream handle, void (*function)(void* data), void* data) {
  DeviceStream& stream = of(handle);
  if (auto error = enter("call_host", stream)) return *error;
  const ToldCall call(options_.activity, "cudaLaunchHostFunc");
  Step step;
  step.op = owner(stream);
  step.accesses = op_accesses(stream);
  step.run = [function, data]() -> std::optional<Error> {
    function(data);
    return std::nullopt;
  };
  return enqueue(stream, std::move(step));
}

Result<Product> Device::prepare_product(const ProductShape& shape, Bytes workspace) {
  if (auto error = enter("prepare_product")) return *error;
  const bool is_float = shape.dtype == Dtype::f32 || is_half(shape.dtype);
  if (shape.m <= 0 || shape.n <= 0 || shape.k <= 0 || !is_float)
    return fail({Errc::internal, "a product of this shape or type cannot be computed", "", ""});
  return reinterpret_cast<Product>(&products_.emplace_back(PreparedProduct{shape, workspace}));
}

Result<void> Device::multiply(Stream handle, Product product, const ProductOperands& operands) {
  DeviceStream& stream = of(handle);
  if (auto error = enter("multiply", stream)) return *error;
  const PreparedProduct& prepared = *reinterpret_cast<PreparedProduct*>(product);
  const ProductShape& shape = prepared.shape;
  const ProductBytes bytes = product_bytes(shape);
  if (static_cast<std::int64_t>(operands.workspace.size()) < prepared.workspace.count())
    return misuse(stream, "a product gets less workspace than it was prepared for");
  struct Operand {
    const std::byte* begin;
    std::int64_t bytes;
    bool writes;
    const char* what;
  };
  const auto workspace = static_cast<std::int64_t>(operands.workspace.size());
  for (const Operand& each :
       {Operand{operands.a, bytes.a, false, "A of a product"}, Operand{operands.b, bytes.b, false, "B of a product"},
        Operand{operands.bias, bytes.bias, false, "the bias of a product"},
        Operand{operands.c, bytes.c, true, "C of a product"},
        Operand{operands.workspace.data(), workspace, true, "the workspace of a product"}}) {
    if (each.bytes == 0) continue;
    const auto kind = kind_of(stream, each.begin, each.bytes, each.what);
    if (!kind) return kind.error();
    if (*kind == Kind::pageable) return misuse(stream, std::string(each.what) + " is the host's");
    if (reinterpret_cast<std::uintptr_t>(each.begin) % static_cast<std::uintptr_t>(shape.alignment.count()) != 0)
      return misuse(stream, std::string(each.what) + " does not begin at a multiple of " +
                                std::to_string(shape.alignment.count()) + " bytes, as was said of it");
    if (const auto why = undeclared(stream, each.begin, each.bytes, each.writes))
      return misuse(stream, std::string(each.what) + ": " + *why);
  }
  Step step;
  step.op = owner(stream);
  step.accesses = op_accesses(stream);
  const ToldCall call(options_.activity, "cudaLaunchKernel");
  step.told = told_of(stream, EmulatedWork::Kind::kernel, 0, call);
  step.told.name = "matrix product";
  step.run = [this, op = step.op, shape, operands, written = bytes.c]() {
    return with_ranges_open(*op, [&]() -> std::optional<Error> {
      // What a library's algorithm leaves there is nobody's to read.
      if (!operands.workspace.empty())
        memory_->poison(operands.workspace.data(), static_cast<std::int64_t>(operands.workspace.size()));
      memory_->note_written(static_cast<const std::byte*>(operands.c), written);
      compute_product(shape, {memory_->real(operands.a),
                              memory_->real(operands.b),
                              memory_->real(operands.bias),
                              memory_->real(operands.c),
                              {}});
      return std::nullopt;
    });
  };
  return enqueue(stream, std::move(step));
}

Result<void> Device::transfer(DeviceStream& stream, const std::vector<Range>& ranges, bool hangs,
                              std::function<bool()> ready, std::function<void()> run) {
  if (fault_) return *fault_;
  const ToldCall call(options_.activity, "cudaLaunchKernel");
  Step step;
  step.op = owner(stream);
  step.told = told_of(stream, EmulatedWork::Kind::kernel, 0, call);
  step.told.name = "NCCL transfer";
  step.hangs = hangs;
  for (const Range& range : ranges) {
    const auto kind = kind_of(stream, range.begin, range.bytes, "what is transferred");
    if (!kind) return kind.error();
    if (*kind == Kind::pageable) return misuse(stream, "what is transferred is neither of the device nor pinned");
    const bool writes = range.access != model::Access::read;
    if (const auto why = undeclared(stream, range.begin, range.bytes, writes)) return misuse(stream, *why);
    step.accesses.push_back(whole(range, step.op));
  }
  step.ready = std::move(ready);
  step.run = [run = std::move(run)]() -> std::optional<Error> {
    run();
    return std::nullopt;
  };
  return enqueue(stream, std::move(step));
}

std::vector<std::byte> Device::content(const std::byte* from, std::int64_t bytes) const {
  memory_->open(from, bytes);
  const std::byte* const real = memory_->real(from);
  std::vector<std::byte> copied(real, real + bytes);
  memory_->close(from, bytes);
  return copied;
}

void Device::store(std::byte* to, const std::vector<std::byte>& content) const {
  const auto bytes = static_cast<std::int64_t>(content.size());
  memory_->open(to, bytes);
  memory_->note_written(to, bytes);
  std::memcpy(memory_->real(to), content.data(), content.size());
  memory_->close(to, bytes);
}

void Device::refuse_argument(DeviceStream& stream, int argument, const std::string& why) {
  misuse(stream, "argument " + std::to_string(argument) + " of a kernel " + why);
}

const void* Device::kernel_pointer(DeviceStream& stream, const void* pointer, int argument) {
  if (pointer == nullptr || fault_) return nullptr;
  const auto* const address = static_cast<const std::byte*>(pointer);
  const DeviceMemory::Block* const block = memory_->find(address);
  if (block == nullptr) {
    refuse_argument(stream, argument,
                    memory_->is_device(address) ? "points to memory of the device that is not allocated"
                                                : "points to memory of the host that is not pinned");
    return nullptr;
  }
  if (stream.op != nullptr && !stream.op->ranges.empty()) {
    const bool declared = std::ranges::any_of(stream.op->ranges, [&](const Range& range) {
      return address >= range.begin && address <= range.begin + range.bytes;
    });
    if (!declared) {
      refuse_argument(stream, argument, "is " + place_of(address) + ", which the op did not declare");
      return nullptr;
    }
  }
  if (std::ranges::find(arguments_, block->begin) == arguments_.end()) arguments_.push_back(block->begin);
  return memory_->real(address);
}

void Device::launch(DeviceStream& stream, const BlockRunner::Sizes& sizes, std::string_view function,
                    std::function<void()> thread) {
  std::vector<const std::byte*> edges = std::exchange(arguments_, {});
  if (enter("launch", stream)) return;
  if (!BlockRunner::takes(sizes)) {
    misuse(stream, "a kernel is launched with sizes that no device takes");
    return;
  }
  const CardLimits card = card_limits(facts_.compute_capability);
  if (Bytes{sizes.shared_bytes} > card.shared || sizes.threads > static_cast<std::uint32_t>(card.threads)) {
    fail({Errc::unavailable,
          "a kernel's launch: " + std::to_string(sizes.threads) + " threads with " +
              std::to_string(sizes.shared_bytes) + " bytes of shared memory, of which this card's blocks have " +
              std::to_string(card.shared.count()),
          owner(stream)->label, ""});
    return;
  }
  const ToldCall call(options_.activity, "cudaLaunchKernel");
  Step step;
  step.op = owner(stream);
  step.told = told_of(stream, EmulatedWork::Kind::kernel, 0, call);
  // A lambda has no name of its own: the op's says more.
  step.told.name = function.starts_with("operator()") && stream.op != nullptr ? stream.op_name : function;
  step.accesses = op_accesses(stream);
  step.run = [this, op = step.op, sizes, thread = std::move(thread), edges = std::move(edges)]() {
    if (op->ranges.empty()) memory_->note_all_written();
    for (const Range& range : op->ranges)
      if (range.access != model::Access::read) memory_->note_written(range.begin, range.bytes);
    return with_ranges_open(*op, [&]() -> std::optional<Error> {
      if (!blocks_.run(sizes, thread, op->label))
        return Error{Errc::internal, "a kernel wrote beyond its shared memory", op->label, ""};
      for (const std::byte* const edge : edges) {
        const DeviceMemory::Block* const block = memory_->find(edge);
        if (block != nullptr && !memory_->edges_hold(*block))
          return Error{Errc::internal,
                       "a kernel wrote next to " + std::to_string(block->bytes) + " bytes of the device", op->label,
                       ""};
      }
      return std::nullopt;
    });
  };
  const auto enqueued = enqueue(stream, std::move(step));
  static_cast<void>(enqueued);  // told by the next call
}

LaunchCall::LaunchCall(const LaunchFrom& from, const Launch& sizes) : from_(from), sizes_(&sizes) {}

const void* LaunchCall::translated(const void* pointer) {
  return of(from_.stream).device->kernel_pointer(of(from_.stream), pointer, arguments_);
}

void LaunchCall::enqueue(std::function<void()> thread) {
  DeviceStream& stream = of(from_.stream);
  stream.device->launch(stream,
                        {{sizes_->blocks_x, sizes_->blocks_y, sizes_->blocks_z}, sizes_->threads, sizes_->shared_bytes},
                        from_.function, std::move(thread));
}

}  // namespace shard::cuda::emulated
