// Acquires are takes, releases are give-backs; what effects() says of an op is its work.
#include "sim/like/plan_program.h"

#include <cassert>
#include <map>

#include "sim/ir/effects.h"

namespace shard::like {
namespace {

class Conversion {
 public:
  Conversion(const plan::Plan& plan, Program& program) : plan_(plan), program_(program) {}

  void add(const plan::Op& op) {
    program_.begin({.module = {}, .name = keep(op.name), .block = op.block, .part = op.part});
    const plan::Effects effects = plan::effects(plan_, op);
    for (const BufferId id : effects.acquire) {
      const plan::Buffer& buffer = plan_.buffer(id);
      taken_[id.value] = program_.take(
          {.bytes = buffer.bytes, .name = keep(buffer.name), .category = buffer.category, .memory = buffer.memory});
    }
    if (effects.flops > Flops{0})
      program_.work({.flops = effects.flops, .bytes_read = effects.bytes_read, .bytes_written = effects.bytes_written});
    if (effects.sends)
      program_.collective(
          {.kind = effects.sends->kind, .bytes = effects.sends->bytes, .ranks = plan_.strategy.world_size});
    for (const BufferId id : effects.release) {
      const auto taken = taken_.find(id.value);
      if (taken == taken_.end()) continue;
      program_.give_back(taken->second);
      taken_.erase(taken);
    }
  }

 private:
  [[nodiscard]] plan::Name keep(std::string_view text) { return program_.pool->text({text}); }

  const plan::Plan& plan_;
  Program& program_;
  std::map<std::int32_t, BufferId> taken_;  ///< by buffer of the plan
};

}  // namespace

Program program_of(const plan::Plan& plan, const std::vector<Mark>& marks) {
  Program program;
  Conversion conversion(plan, program);
  auto mark = marks.begin();
  for (const plan::PhaseOps& phase : plan.phases) {
    program.begin_phase(phase.phase);
    for (std::size_t done = 0;; ++done) {
      for (; mark != marks.end() && mark->phase == phase.phase && mark->ops == done; ++mark)
        program.mark({.name = program.pool->text({mark->name}), .starts_again = mark->starts_again});
      if (done == phase.ops.size()) break;
      conversion.add(phase.ops[done]);
    }
  }
  assert(mark == marks.end() && "marks are in plan order");
  return program;
}

}  // namespace shard::like
