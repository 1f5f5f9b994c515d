// Ids, operands, edges, lifetimes, offsets and the arenas' sizes.
#include "sim/check/structure.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <unordered_map>

#include "sim/target/alignment.h"

namespace shard::plan::verification {
namespace {

class Structure {
 public:
  Structure(const Plan& plan, std::int32_t rank, Faults& faults)
      : plan_(plan),
        shard_(position(plan.topology, rank).shard),
        faults_(faults),
        alignment_(product_alignment(plan.model->parameters, plan.target.storage).count()),
        live_(plan.buffers.size(), false),
        born_(plan.buffers.size(), false) {}

  void check() {
    for (const PhaseOps& phase : plan_.phases) {
      check_phase(phase);
      if (faults_.failed()) return;
    }
    check_first_step();
    if (!faults_.failed()) check_evaluation();
    for (std::size_t m = 0; m < kMemoryCount; ++m)
      if (highest_[m] != plan_.arena_bytes[m].count())
        faults_.fail("P6", std::string("the ") + to_string(static_cast<Memory>(m)) + " arena has " +
                               std::to_string(plan_.arena_bytes[m].count()) + " bytes, but its buffers end at " +
                               std::to_string(highest_[m]));
  }

 private:
  [[nodiscard]] bool known(BufferId id) const {
    return id.value >= 0 && static_cast<std::size_t>(id.value) < plan_.buffers.size();
  }
  [[nodiscard]] std::string name(BufferId id) const { return '\'' + std::string(plan_.buffer(id).name) + '\''; }

  void check_phase(const PhaseOps& phase) {
    std::unordered_map<std::int32_t, Stream> earlier;
    std::int32_t last_id = -1;
    for (const Op& op : phase.ops) {
      faults_.at(&phase, &op);
      // P1
      if (std::holds_alternative<Absent>(op.action)) faults_.fail("P1", "an op that this rank lacks is still listed");
      if (op.id.value <= last_id) faults_.fail("P1", "ids must ascend, the one before is " + std::to_string(last_id));
      last_id = op.id.value;
      const bool of_step = phase.phase == Phase::steady_step || phase.phase == Phase::evaluate;
      if (!of_step && !ids_.insert(op.id.value).second)
        faults_.fail("P1", "another phase has this id too");
      if (op.first_step_only && phase.phase != Phase::first_step)
        faults_.fail("P21", "births of optimizer state belong to the first step");
      // P3
      for (OpId d : op.dependencies) {
        const auto it = earlier.find(d.value);
        if (it == earlier.end())
          faults_.fail("P3", "waits for op " + std::to_string(d.value) + ", which is no earlier op of the phase");
        else if (it->second == op.stream)
          faults_.fail("P3", "waits for op " + std::to_string(d.value) + " of its own stream");
      }
      earlier[op.id.value] = op.stream;
      for (BufferId id : op.acquire) acquire(id);
      for (const Operand& o : op.operands) check_operand(o);
      if (!faults_.failed()) check_memories(op);
      if (!faults_.failed()) check_product(op);
      for (BufferId id : op.release) release(id);
      if (faults_.failed()) return;
    }
    faults_.at(&phase, nullptr);
    for (std::size_t b = 0; b < live_.size(); ++b)
      if (live_[b] && !plan_.buffers[b].persistent)
        faults_.fail("P4",
                     "buffer '" + std::string(plan_.buffers[b].name) + "' is not given back at the end of the phase");
  }

  void check_operand(const Operand& o) {
    if (!known(o.buffer)) return faults_.fail("P2", "an operand names no buffer");
    const Range r = range_of(o, shard_);
    if (r.begin < 0 || o.bytes <= 0 || r.end > plan_.buffer(o.buffer).bytes.count())
      faults_.fail("P2", "touches bytes " + to_string(r) + " of buffer " + name(o.buffer) + ", which has " +
                             std::to_string(plan_.buffer(o.buffer).bytes.count()));
    const std::int64_t size = bytes_per_element(plan_.buffer(o.buffer).dtype);
    if (r.begin % size != 0 || o.bytes % size != 0)
      faults_.fail("P2", "bytes " + to_string(r) + " of buffer " + name(o.buffer) + " are not whole elements");
    if (!live_[static_cast<std::size_t>(o.buffer.value)])
      faults_.fail("P4", "touches buffer " + name(o.buffer) + ", which is not live");
  }

  /// P24
  void check_memories(const Op& op) {
    const bool copies = std::holds_alternative<Copy>(op.action);
    const bool device_only =
        std::holds_alternative<Compute>(op.action) || std::holds_alternative<Communicate>(op.action);
    for (const Operand& o : op.operands) {
      const Memory memory = plan_.buffer(o.buffer).memory;
      if (device_only && memory != Memory::device)
        faults_.fail("P24", "works on buffer " + name(o.buffer) + ", which is in " + to_string(memory) + " memory");
      if (memory == Memory::disk && !copies && !std::holds_alternative<ZeroState>(op.action) &&
          !std::holds_alternative<Save>(op.action))
        faults_.fail("P24", "works on buffer " + name(o.buffer) + ", which is on disk");
      const Memory first = plan_.buffer(op.operands.front().buffer).memory;
      if (!copies && memory != first && !(is_host(memory) && is_host(first)))
        faults_.fail("P24", "works on buffers of different memories, " + name(op.operands.front().buffer) + " and " +
                                name(o.buffer));
      const bool meets = copies && memory == Memory::disk;
      for (const Operand& other : op.operands)
        if (meets && plan_.buffer(other.buffer).memory == Memory::device)
          faults_.fail("P24", "moves between disk and device, which meet in host memory");
      check_pinning(o);
    }
  }

  /// P35
  void check_pinning(const Operand& o) {
    const Memory memory = plan_.buffer(o.buffer).memory;
    if (is_host(memory) && (memory == Memory::pinned) != plan_.target.pins())
      faults_.fail("P35", "works on buffer " + name(o.buffer) + " in " + to_string(memory) +
                              " memory, which its target does not have");
  }

  /// P34
  void check_product(const Op& op) {
    const auto* const compute = std::get_if<Compute>(&op.action);
    if (plan_.target.device != Device::cuda || compute == nullptr ||
        model::row(compute->kind).workspace != model::WorkspaceKind::product)
      return;
    for (const Operand& o : op.operands)
      if (const std::int64_t begin = range_in_arena(plan_, o, shard_).begin; begin % alignment_ != 0)
        faults_.fail("P34", "multiplies what begins at byte " + std::to_string(begin) + " of the arena, in buffer " +
                                name(o.buffer) + ", no multiple of " + std::to_string(alignment_));
  }

  void acquire(BufferId id) {
    if (!known(id)) return faults_.fail("P4", "takes a buffer that is not there");
    const auto b = static_cast<std::size_t>(id.value);
    const Buffer& buffer = plan_.buffers[b];
    if (live_[b]) return faults_.fail("P4", "takes buffer " + name(id) + ", which is live");
    if (buffer.persistent && born_[b]) return faults_.fail("P4", "persistent buffer " + name(id) + " is born again");
    live_[b] = true;
    born_[b] = true;
    // P5
    if (buffer.offset < 0 || buffer.offset % kAlignment != 0)
      return faults_.fail("P5", "buffer " + name(id) + " has offset " + std::to_string(buffer.offset));
    const std::int64_t rounded = (buffer.bytes.count() + kAlignment - 1) / kAlignment * kAlignment;
    if (rounded == 0) return;
    const auto m = static_cast<std::size_t>(buffer.memory);
    std::map<std::int64_t, BufferId>& arena = arenas_[m];
    const std::int64_t end = buffer.offset + rounded;
    const auto next = arena.lower_bound(buffer.offset);
    if (next != arena.end() && next->first < end)
      faults_.fail("P5", "buffer " + name(id) + " takes bytes of live buffer " + name(next->second));
    if (next != arena.begin()) {
      const Buffer& before = plan_.buffer(std::prev(next)->second);
      if (before.offset + before.bytes.count() > buffer.offset)
        faults_.fail("P5", "buffer " + name(id) + " takes bytes of live buffer '" + std::string(before.name) + '\'');
    }
    arena[buffer.offset] = id;
    highest_[m] = std::max(highest_[m], end);
  }

  void release(BufferId id) {
    if (!known(id)) return faults_.fail("P4", "gives back a buffer that is not there");
    const auto b = static_cast<std::size_t>(id.value);
    if (!live_[b]) return faults_.fail("P4", "gives back buffer " + name(id) + ", which is not live");
    if (plan_.buffers[b].persistent) return faults_.fail("P4", "gives back persistent buffer " + name(id));
    live_[b] = false;
    if (plan_.buffers[b].bytes.count() == 0) return;
    arenas_[static_cast<std::size_t>(plan_.buffers[b].memory)].erase(plan_.buffers[b].offset);
  }

  /// P21: the first step is the steady step and the births of optimizer state.
  void check_first_step() {
    const PhaseOps* first = plan_.find(Phase::first_step);
    const PhaseOps* steady = plan_.find(Phase::steady_step);
    faults_.at(nullptr, nullptr);
    if (first == nullptr || steady == nullptr || plan_.find(Phase::creation) == nullptr ||
        plan_.find(Phase::save) == nullptr)
      return faults_.fail("P21", "a plan has the phases creation, first_step, steady_step and save");
    std::size_t next = 0;
    for (const Op& op : first->ops) {
      faults_.at(first, &op);
      if (op.first_step_only) {
        if (!std::holds_alternative<ZeroState>(op.action))
          faults_.fail("P21", "only births of optimizer state are special to the first step");
        continue;
      }
      if (next == steady->ops.size() || !alike(op, steady->ops[next++]))
        return faults_.fail("P21", "the steady step has another op here");
    }
    faults_.at(steady, nullptr);
    if (next != steady->ops.size()) faults_.fail("P21", "the steady step has ops that the first step lacks");
  }

  /// P37: evaluation is a part of the steady step, before anything is differentiated, and changes no state.
  void check_evaluation() {
    const PhaseOps* phase = plan_.find(Phase::evaluate);
    faults_.at(phase, nullptr);
    if ((phase != nullptr) != plan_.strategy.evaluates)
      return faults_.fail("P37", "phase evaluate is there where the strategy evaluates, and nowhere else");
    if (phase == nullptr) return;
    const std::vector<Op>& steady = plan_.find(Phase::steady_step)->ops;
    auto same = steady.begin();
    for (const Op& op : phase->ops) {
      faults_.at(phase, &op);
      same = std::find_if(same, steady.end(), [&](const Op& o) { return o.id == op.id; });
      if (same == steady.end() || !do_the_same(op, *same))
        return faults_.fail("P37", "the steady step has no such op behind the one before");
      if (const auto* c = std::get_if<Compute>(&op.action);
          c == nullptr ? !may_evaluate(op) : c->direction != Direction::forward || c->drops)
        return faults_.fail("P37", "evaluation only computes forward, and drops nothing");
      for (const Operand& o : op.operands)
        if (o.writes() && is_state(plan_.buffer(o.buffer)))
          return faults_.fail("P37", "evaluation writes " + name(o.buffer) + ", which is state of the run");
    }
  }
  static bool may_evaluate(const Op& op) {
    return std::holds_alternative<LoadBatch>(op.action) || std::holds_alternative<Communicate>(op.action) ||
           std::holds_alternative<Copy>(op.action) || std::holds_alternative<MeanLoss>(op.action);
  }
  static bool is_state(const Buffer& buffer) {
    return buffer.persistent && (buffer.category == Category::parameter ||
                                 buffer.category == Category::master_parameter ||
                                 buffer.category == Category::optimizer_state);
  }

  static bool alike(const Op& a, const Op& b) { return a.release == b.release && do_the_same(a, b); }
  static bool do_the_same(const Op& a, const Op& b) {
    if (a.id != b.id || a.stream != b.stream || a.micro_step != b.micro_step || a.action.index() != b.action.index() ||
        a.operands.size() != b.operands.size())
      return false;
    for (std::size_t i = 0; i < a.operands.size(); ++i) {
      const Operand& x = a.operands[i];
      const Operand& y = b.operands[i];
      if (x.buffer != y.buffer || x.offset != y.offset || x.bytes != y.bytes || x.rank_stride != y.rank_stride ||
          x.access != y.access)
        return false;
    }
    return true;
  }

  const Plan& plan_;
  std::int32_t shard_;
  Faults& faults_;
  std::int64_t alignment_;  // of operands of products
  std::vector<bool> live_, born_;
  std::set<std::int32_t> ids_;                                         // of phases other than the steady step
  std::array<std::map<std::int64_t, BufferId>, kMemoryCount> arenas_;  // live buffers by offset
  std::array<std::int64_t, kMemoryCount> highest_{};
};

}  // namespace

void check_structure(const Plan& plan, std::int32_t rank, Faults& faults) {
  Structure(plan, rank, faults).check();
}

}  // namespace shard::plan::verification
