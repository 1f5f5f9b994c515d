// Chunks' moves as ops.
#include "sim/like/gemini_chunks.h"

#include <cassert>
#include <utility>

#include "sim/compile/passes/operands.h"

namespace shard::like {
namespace {

constexpr std::int64_t kMasterBytes = 4;
constexpr std::int64_t kAdamBytes = 8;  // two fp32 moments

using plan::Part;

}  // namespace

ChunkOps::ChunkOps(GeminiStep step, const ChunkLayout& layout, std::int32_t world_size, const std::vector<Kept>& kept)
    : step_(std::move(step)), plan_(std::move(step_.plan)) {
  plan_.strategy.world_size = world_size;
  model_ = std::move(plan_.find(Phase::steady_step)->ops);
  plan_.phases.clear();
  plan_.phases.reserve(3);
  std::size_t parameters = 0;
  for (const shard::Chunk& c : layout.chunks) parameters += c.parameters.size();
  slices_.resize(parameters);
  for (std::size_t i = 0; i < layout.chunks.size(); ++i) {
    const shard::Chunk& c = layout.chunks[i];
    Chunk chunk{.name = "chunk " + std::to_string(i),
                .full = Bytes{c.elems.count() * kHalfBytes},
                .rest_bytes = Bytes{kept[i].elems.count() * kHalfBytes},
                .master_bytes = Bytes{kept[i].elems.count() * kMasterBytes},
                .real = kept[i].real,
                .owned = kept[i].owned};
    const UnitId unit{static_cast<std::int32_t>(i)};
    const auto add = [&](const char* what, Category category, Memory memory, Bytes bytes) {
      return plan_.add_buffer({.name = plan_.text(chunk.name, what),
                               .category = category,
                               .memory = memory,
                               .dtype = category == Category::master_parameter ? Dtype::f32 : Dtype::f16,
                               .bytes = bytes,
                               .unit = unit});
    };
    const char* rest = kept[i].elems != c.elems ? ", shard" : "";
    const Category category = chunk.owned ? Category::parameter : Category::gathered;
    chunk.gathered_buffer = add(", gathered", Category::gathered, Memory::device, chunk.full);
    chunk.device = add(rest, category, Memory::device, chunk.rest_bytes);
    chunk.host = add(rest, category, Memory::host, chunk.rest_bytes);
    chunk.master_device = add(", masters", Category::master_parameter, Memory::device, chunk.master_bytes);
    chunk.master_host = add(", masters", Category::master_parameter, Memory::host, chunk.master_bytes);
    plan_.units.push_back({.name = chunk.name, .flats = {}});
    for (const PlacedParameter& p : c.parameters) slices_[p.parameter] = {i, p.offset.count() * kHalfBytes};
    chunks_.push_back(std::move(chunk));
  }
}

BufferId ChunkOps::payload(const Chunk& c) const {
  if (c.gathered) return c.gathered_buffer;
  return c.rest == Home::host ? c.host : c.device;
}

BufferId ChunkOps::temporary(std::string name, Memory memory, Dtype dtype, Bytes bytes) {
  return plan_.add_buffer(
      {.name = plan_.text(name), .category = Category::workspace, .memory = memory, .dtype = dtype, .bytes = bytes});
}

void ChunkOps::begin_phase(Phase phase) {
  plan_.phases.push_back({.phase = phase, .ops = {}});
  ops_ = &plan_.phases.back().ops;
  done_ = 0;
}

void ChunkOps::mark(std::string name) {
  marks_.push_back({std::move(name), plan_.phases.back().phase, ops_->size()});
}

void ChunkOps::emit(std::string name, Part part, plan::Action action, std::vector<plan::Operand> operands,
                    std::vector<BufferId> acquire, std::vector<BufferId> release, Stream stream) {
  ops_->push_back({.name = plan_.text(name),
                   .part = part,
                   .stream = stream,
                   .action = action,
                   .operands = plan_.list(operands),
                   .acquire = plan_.list(acquire),
                   .release = plan_.list(release)});
}

void ChunkOps::communicate(Collective kind, std::size_t c, Part part, BufferId shard, BufferId full,
                           std::vector<BufferId> acquire, std::vector<BufferId> release, std::int32_t root) {
  plan::Communicate call{.kind = kind, .unit = UnitId{static_cast<std::int32_t>(c)}, .root = root};
  call.segments = plan_.list<plan::Segment>(
      {{.shard_operand = 0, .full_operand = 1, .elems = Elems{plan_.buffer(full).bytes.count() / kHalfBytes}}});
  const bool to_full = kind == Collective::all_gather || kind == Collective::broadcast;
  emit(std::string(to_string(kind)) + " " + chunks_[c].name, part, std::move(call),
       {to_full ? plan::reads(plan_, shard) : plan::writes(plan_, shard),
        to_full ? plan::writes(plan_, full) : plan::updates(plan_, full)},
       std::move(acquire), std::move(release), Stream::communication);
}

void ChunkOps::build_through_device(std::size_t i, Home rest) {
  Chunk& c = chunks_[i];
  const auto close = [&](const std::string& what, Dtype dtype, BufferId on_device, BufferId on_host) {
    const Bytes full_bytes{c.full.count() / kHalfBytes * bytes_per_element(dtype)};
    const BufferId temp = temporary(what + " being filled", Memory::host, dtype, full_bytes);
    if (c.rest_bytes == c.full && rest == Home::device) {
      emit("fill " + what, Part::creation, plan::Copy{}, {plan::writes(plan_, temp)}, {temp}, {}, Stream::host);
      emit(what + " to the device", Part::creation, plan::Copy{},
           {plan::reads(plan_, temp), plan::writes(plan_, on_device)}, {on_device}, {temp}, Stream::copy_in);
      return;
    }
    const BufferId full = temporary(what + " before it is cut", Memory::device, dtype, full_bytes);
    emit("fill " + what, Part::creation, plan::Copy{}, {plan::writes(plan_, temp)}, {temp}, {}, Stream::host);
    emit(what + " to the device", Part::creation, plan::Copy{}, {plan::reads(plan_, temp), plan::writes(plan_, full)},
         {full}, {temp}, Stream::copy_in);
    emit("cut " + what, Part::creation, plan::Copy{}, {plan::reads(plan_, full), plan::writes(plan_, on_device)},
         {on_device}, {full}, Stream::compute);
    if (rest == Home::host)
      emit(what + " to the host", Part::creation, plan::Copy{},
           {plan::reads(plan_, on_device), plan::writes(plan_, on_host)}, {on_host}, {on_device}, Stream::copy_out);
  };
  close(c.name, Dtype::f16, c.device, c.host);
  close(c.name + " masters", Dtype::f32, c.master_device, c.master_host);
  c.rest = c.master_rest = rest;
}

void ChunkOps::build(std::size_t i, Home rest) {
  Chunk& c = chunks_[i];
  if (!c.owned) return;
  c.rest = c.master_rest = rest;
  const BufferId masters = rest == Home::host ? c.master_host : c.master_device;
  emit("fill " + c.name, Part::creation, plan::Copy{}, {plan::writes(plan_, payload(c)), plan::writes(plan_, masters)},
       {payload(c), masters}, {}, Stream::compute);
}

void ChunkOps::move_master(std::size_t i, Home to) {
  Chunk& c = chunks_[i];
  if (c.master_rest == to) return;
  const bool out = to == Home::host;
  const BufferId from = out ? c.master_device : c.master_host, into = out ? c.master_host : c.master_device;
  emit(c.name + (out ? " masters to the host" : " masters to the device"), Part::creation, plan::Copy{},
       {plan::reads(plan_, from), plan::writes(plan_, into)}, {into}, {from}, out ? Stream::copy_out : Stream::copy_in);
  c.master_rest = to;
}

void ChunkOps::run_until(std::size_t end) {
  for (; done_ < end; ++done_) {
    plan::Op op = model_[done_];
    for (plan::Operand& o : plan_.own_operands(op)) {
      if (static_cast<std::size_t>(o.buffer.value) >= slices_.size()) continue;
      const Slice& slice = slices_[static_cast<std::size_t>(o.buffer.value)];
      assert(payload(chunks_[slice.chunk]) != chunks_[slice.chunk].host && "an op's parameters are on the device");
      o.buffer = payload(chunks_[slice.chunk]);
      o.offset = slice.offset;
    }
    ops_->push_back(op);
  }
}

void ChunkOps::all_gather(std::size_t i) {
  Chunk& c = chunks_[i];
  assert(!c.gathered && c.rest == Home::device);
  communicate(Collective::all_gather, i, Part::gather, c.device, c.gathered_buffer, {c.gathered_buffer}, {c.device});
  c.gathered = true;
}

void ChunkOps::scatter(std::size_t i) {
  Chunk& c = chunks_[i];
  assert(c.gathered);
  emit("release " + c.name, Part::gather, plan::Copy{},
       {plan::reads(plan_, c.gathered_buffer), plan::writes(plan_, c.device)}, {c.device}, {c.gathered_buffer},
       Stream::compute);
  c.gathered = false;
  c.rest = Home::device;
}

void ChunkOps::reduce_scatter(std::size_t i) {
  Chunk& c = chunks_[i];
  assert(c.gathered);
  communicate(Collective::reduce_scatter, i, Part::reduce, c.device, c.gathered_buffer, {c.device},
              {c.gathered_buffer});
  c.gathered = false;
  c.rest = Home::device;
}

void ChunkOps::all_reduce(std::size_t i) {
  const BufferId full = payload(chunks_[i]);
  communicate(Collective::all_reduce, i, Part::reduce, full, full, {}, {});
}

void ChunkOps::move(std::size_t i, Home to) {
  Chunk& c = chunks_[i];
  const bool out = to == Home::host;
  const BufferId from = payload(c), into = out ? c.host : c.device;
  assert(from != into);
  emit(c.name + (out ? " to the host" : " to the device"), Part::gather, plan::Copy{},
       {plan::reads(plan_, from), plan::writes(plan_, into)}, {into}, {from}, out ? Stream::copy_out : Stream::copy_in);
  c.rest = to;
}

void ChunkOps::refresh_through_device(std::size_t i) {
  Chunk& c = chunks_[i];
  assert(c.rest == Home::host && c.master_rest == Home::host);
  const BufferId temp = temporary(c.name + " masters on the device", Memory::device, Dtype::f32, c.master_bytes);
  emit(c.name + " masters to the device", Part::gather, plan::Copy{},
       {plan::reads(plan_, c.master_host), plan::writes(plan_, temp)}, {temp}, {}, Stream::copy_in);
  emit("cast " + c.name, Part::gather, plan::Copy{}, {plan::reads(plan_, temp), plan::writes(plan_, c.device)},
       {c.device}, {temp, c.host}, Stream::compute);
  c.rest = Home::device;
}

void ChunkOps::broadcast(std::size_t i, std::int32_t owner) {
  Chunk& c = chunks_[i];
  const bool stands = c.rest == Home::device;
  communicate(Collective::broadcast, i, Part::gather, c.device, c.device,
              stands ? std::vector<BufferId>{} : std::vector<BufferId>{c.device}, {}, owner);
  c.rest = Home::device;
}

void ChunkOps::reduce(std::size_t i, std::int32_t owner) {
  const BufferId full = payload(chunks_[i]);
  communicate(Collective::reduce, i, Part::reduce, full, full, {}, {}, owner);
}

void ChunkOps::drop(std::size_t i) {
  Chunk& c = chunks_[i];
  assert(!c.owned && c.rest != Home::nowhere);
  emit("free " + c.name, Part::gather, plan::Copy{}, {plan::reads(plan_, payload(c))}, {}, {payload(c)},
       Stream::compute);
  c.rest = Home::nowhere;
}

void ChunkOps::step_optimizer(std::size_t i) {
  Chunk& c = chunks_[i];
  if (c.master_rest == Home::nowhere || c.real.count() == 0) return;
  const bool on_host = c.master_rest == Home::host;
  const BufferId masters = on_host ? c.master_host : c.master_device;
  std::vector<BufferId> born;
  if (!c.has_state) {
    born.push_back(plan_.add_buffer({.name = plan_.text(c.name, ", moments"),
                                     .category = Category::optimizer_state,
                                     .memory = on_host ? Memory::host : Memory::device,
                                     .bytes = Bytes{c.real.count() * kAdamBytes},
                                     .persistent = true}));
    c.has_state = true;
  }
  emit("step " + c.name, Part::optimizer, plan::OptimizerStep{.elems = c.real},
       {plan::updates(plan_, masters), plan::reads(plan_, payload(c))}, std::move(born), {},
       on_host ? Stream::host : Stream::optimizer);
}

void ChunkOps::refresh(std::size_t i) {
  Chunk& c = chunks_[i];
  if (c.master_rest == Home::nowhere) return;
  const bool on_host = c.master_rest == Home::host;
  emit("refresh " + c.name, Part::optimizer, plan::Copy{},
       {plan::reads(plan_, on_host ? c.master_host : c.master_device), plan::writes(plan_, payload(c))}, {}, {},
       on_host ? Stream::host : Stream::optimizer);
}

plan::Plan ChunkOps::finish(std::vector<Mark>& marks) {
  std::int32_t id = 0;
  for (plan::PhaseOps& phase : plan_.phases)
    for (plan::Op& op : phase.ops) op.id = OpId{id++};
  marks = std::move(marks_);
  return std::move(plan_);
}

}  // namespace shard::like
