// The collector, told by ourselves.
#include "profiler/cupti/own_program.h"

#include "profiler/cupti/collector.h"

namespace shard::profiler {

Result<OwnProgram*> OwnProgram::start(Spool& spool) {
  const Result<CuptiFunctions> cupti = open_cupti();
  if (!cupti) return cupti.error();
  const Result<Collector*> collector = Collector::start(*cupti, spool, {.ranges = false});
  if (!collector) return collector.error();
  return new OwnProgram(**collector);
}

void OwnProgram::push(std::uint64_t id) {
  collector_.push(id);
}
void OwnProgram::pop() {
  collector_.pop();
}
void OwnProgram::look_at_clocks() {
  collector_.look_at_clocks();
}
void OwnProgram::finish() {
  collector_.flush(true);
  collector_.pause();
}

}  // namespace shard::profiler
