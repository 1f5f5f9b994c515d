// CUPTI's collector in this process, where it was built with one.
#include "executor/profile/gpu_witness.h"

#ifdef SHARDSCOPE_CUPTI
#include <sys/syscall.h>
#include <unistd.h>

#include <mutex>

#include "profiler/cupti/own_program.h"
#include "profiler/timeline/timeline.h"
#endif

namespace shard::device_profile {

#ifdef SHARDSCOPE_CUPTI
namespace {

using profiler::PushedOp;

class CuptiWitness final : public GpuWitness {
 public:
  CuptiWitness(profiler::OwnProgram& cupti, profiler::Spool& spool)
      : cupti_(cupti), lane_(spool), host_call_(spool.name("host call")) {}

  void begin_op(Rank rank, OpId op) override {
    cupti_.push(PushedOp{.op = op.valid() ? op.value : -1, .rank = rank.value}.id());
  }
  void end_op() override { cupti_.pop(); }
  void host_worked(Rank rank, OpId op, std::int64_t begin_ns, std::int64_t end_ns) override {
    const std::lock_guard lock(mutex_);
    lane_.add({.kind = profiler::EventKind::range,
               .detail = static_cast<std::uint8_t>(profiler::RangeOf::op),
               .flags = profiler::kFromHost,
               .name = host_call_,
               .begin_ns = begin_ns,
               .end_ns = end_ns,
               .id = PushedOp{.op = op.value, .rank = rank.value}.id(),
               .thread = static_cast<std::uint32_t>(::syscall(SYS_gettid))});
  }
  void look_at_clocks() override { cupti_.look_at_clocks(); }
  void finish() override { cupti_.finish(); }

 private:
  profiler::OwnProgram& cupti_;
  std::mutex mutex_;
  profiler::Lane lane_;
  profiler::NameNumber host_call_;
};

}  // namespace

Result<std::unique_ptr<GpuWitness>> make_gpu_witness(profiler::Spool& spool) {
  const Result<profiler::OwnProgram*> cupti = profiler::OwnProgram::start(spool);
  if (!cupti) return cupti.error();
  return std::unique_ptr<GpuWitness>(std::make_unique<CuptiWitness>(**cupti, spool));
}
#else
Result<std::unique_ptr<GpuWitness>> make_gpu_witness(profiler::Spool&) {
  return Error{.code = Errc::unavailable,
               .what = "this program was built without CUPTI",
               .where = "CUPTI",
               .help = "where CUDA's toolkit is, build it again"};
}
#endif

}  // namespace shard::device_profile
