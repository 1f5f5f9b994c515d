// What each op of a plan enqueues on its stream.
#include <cassert>

#include "executor/cpu/control.h"
#include "executor/cuda/backend/backend.h"
#include "executor/cuda/backend/call.h"
#include "executor/rank/request_of.h"

namespace shard::cuda {

using plan::on;
using plan::Op;
using plan::Operand;

std::span<const Range> Backend::ranges_of(const Op& op, const Lane& lane) {
  ranges_.clear();
  for (const Operand& o : op.operands)
    if (plan_.buffer(o.buffer).memory != Memory::disk)
      ranges_.push_back({.begin = at(o), .bytes = o.bytes, .access = o.access});
  if (const Bytes staging = runs_on_host(plan_, op, births_) ? staging_bytes(plan_, op) : Bytes{0}; staging.count() > 0)
    ranges_.push_back({.begin = lane.staging, .bytes = staging.count(), .access = model::Access::update});
  ranges_.push_back({.begin = reinterpret_cast<const std::byte*>(step_word_),
                     .bytes = sizeof(std::int64_t),
                     .access = model::Access::read});
  return ranges_;
}

Result<void> Backend::enqueue(const Op& op, const Lane& lane) {
  if (const auto* call = std::get_if<plan::Communicate>(&op.action)) return collective(op, *call);
  const OpNote note{.rank = communicator_.rank(), .op = op.id, .name = op.name, .ranges = ranges_of(op, lane)};
  if (Result<void> r = room_.api.begin_op(lane.stream, note); !r) return r;
  if (Result<void> r = runs_on_host(plan_, op, births_) ? host_calls_->enqueue(lane.stream, op, lane.staging)
                                                        : enqueue_on_device(op, lane);
      !r)
    return r;
  return room_.api.end_op(lane.stream);
}

Result<void> Backend::enqueue_on_device(const Op& op, const Lane& lane) {
  const Stream stream = lane.stream;
  const auto elsewhere = []() -> Result<void> {
    assert(false && "the host runs it, or a communicator");
    return {};
  };
  return std::visit(
      on{[&](const plan::Compute& c) { return compute_op(op, c, stream); },
         [&](const plan::Accumulate&) -> Result<void> {
           room_.kernels.add_into(stream, count(op.operands[0]), elements(op.operands[1]), elements(op.operands[0]));
           return {};
         },
         [&](const plan::ZeroState&) -> Result<void> {
           for (const Operand& o : op.operands)
             if (Result<void> r = room_.api.fill(stream, at(o), 0, o.bytes); !r) return r;
           return {};
         },
         [&](const plan::OptimizerStep& a) -> Result<void> {
           optimizer_step(op, a, stream);
           return {};
         },
         [&](const plan::Copy&) -> Result<void> {
           const Operand& from = op.operands[0];
           const Operand& to = op.operands[1];
           if (plan_.buffer(from.buffer).dtype == plan_.buffer(to.buffer).dtype)
             return room_.api.copy(stream, at(to), at(from), from.bytes);
           room_.kernels.convert_copy(stream, count(from), elements(from), elements(to));
           return {};
         },
         [&](const plan::InspectGradient& a) -> Result<void> {
           inspect(op, a, stream);
           return {};
         },
         [&](const plan::LoadBatch&) { return elsewhere(); }, [&](const plan::LoadScalars&) { return elsewhere(); },
         [&](const plan::Communicate&) { return elsewhere(); }, [&](const plan::Initialize&) { return elsewhere(); },
         [&](const plan::MeanLoss&) { return elsewhere(); }, [&](const plan::Digest&) { return elsewhere(); },
         [&](const plan::BeginControl&) { return elsewhere(); }, [&](const plan::Decide&) { return elsewhere(); },
         [&](const plan::Absent&) { return elsewhere(); }, [&](const plan::Save&) { return elsewhere(); }},
      op.action);
}

Result<void> Backend::compute_op(const Op& op, const plan::Compute& c, Stream stream) {
  Call call{.api = room_.api,
            .kernels = room_.kernels,
            .stream = stream,
            .op = c,
            .slots = signature(c),
            .tensor_rank = position_.tensor,
            .step = step_word_,
            .tensor_float = plan_.target.tensor_float,
            .product_alignment = product_alignment_};
  assert(call.slots.size() == op.operands.size());
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    call.at[i] = elements(op.operands[i]);
    call.bytes[i] = op.operands[i].bytes;
  }
  // Belongs to the micro-batch, whoever computes it and whenever.
  if (c.drop_probability() > 0)
    call.mask = {.seed = seed_,
                 .mask = c.attributes->mask,
                 .micro_batches = plan_.micro_batches,
                 .micro_batch = plan_.dealing.micro_batch(op.micro_step, position_.shard, position_.replica)};
  return compute(call);
}

Result<void> Backend::collective(const Op& op, const plan::Communicate& call) {
  const auto offset = [&](std::int32_t operand) {
    return at(op.operands[static_cast<std::size_t>(operand)]) - memories_.device().data();
  };
  const Result<Ticket> ticket =
      communicator_.start(executor::request_of(plan_, op, call, communicator_.rank(), segments_, offset));
  if (!ticket) {
    Error error = ticket.error();
    if (call.unit.valid()) error.where += ", of " + plan_.units[static_cast<std::size_t>(call.unit.value)].name;
    return error;
  }
  return {};
}

void Backend::optimizer_step(const Op& op, const plan::OptimizerStep& a, Stream stream) {
  const plan::Flat& flat = plan_.flats[static_cast<std::size_t>(a.flat)];
  const Elems begin{a.first_elem.count() + position_.shard * a.rank_stride_elems.count()};
  const auto floats = [&](std::size_t i) { return reinterpret_cast<float*>(at(op.operands[i])); };
  StepState state{.scalars = reinterpret_cast<const OptimizerScalars*>(at(op.operands[2])),
                  .count = nullptr,
                  .control = nullptr,
                  .factor = a.factor,
                  .decays = true};
  if (plan_.control.valid()) state.control = reinterpret_cast<const plan::ControlBlock*>(at(op.operands.back()));
  auto* const counts = reinterpret_cast<std::int32_t*>(at(op.operands[3]));
  for (const plan::ParamRange& p : plan::param_ranges(flat, begin, begin + a.elems)) {
    state.count = counts + p.param.value;
    // Norm weights and biases are not decayed: they have one dimension.
    state.decays = plan_.model->parameters[static_cast<std::size_t>(p.param.value)].shape.size() >= 2;
    const std::int64_t first = (p.offset - begin).count();
    const std::int64_t n = p.elems.count();
    const ConstElements gradient = elements(op.operands[1]).from(first);
    switch (a.kind) {
      case plan::OptimizerKind::sgd: room_.kernels.sgd(stream, state, n, gradient, floats(0) + first); break;
      case plan::OptimizerKind::adam:
        room_.kernels.adam(stream, state, n, gradient, floats(0) + first, floats(4) + first, floats(5) + first);
        break;
      case plan::OptimizerKind::adamw:
        room_.kernels.adamw(stream, state, n, gradient, floats(0) + first, floats(4) + first, floats(5) + first);
        break;
    }
  }
}

void Backend::inspect(const Op& op, const plan::InspectGradient& a, Stream stream) {
  const ConstElements gradient = elements(op.operands[0]);
  auto* const facts = reinterpret_cast<GradientFacts*>(at(op.operands[1]));
  if (a.of == plan::InspectGradient::Of::local) {
    for (const cpu::InspectedPiece& piece : cpu::local_pieces(plan_, a.flat, op.id))
      room_.kernels.nonfinite_add(stream, piece.elems, gradient.from(piece.first), piece.first_key, facts);
    return;
  }
  const Elems begin = a.first_elem + position_.shard * a.rank_stride_elems;
  for (const cpu::InspectedPiece& piece : cpu::stepped_pieces(plan_, position_.tensor, a.flat, begin, a.elems))
    room_.kernels.square_sum_add(stream, piece.elems, gradient.from(piece.first), piece.first_key, facts);
}

}  // namespace shard::cuda
