// One training step of gpt2 124M, 4 x 64 tokens, fp32, AdamW: median, rate of the products, and where the time goes.
//   step_bench                               with 1 and 2 threads
//   step_bench --benchmark_filter=threads:2  as docs/performance.md compares it with PyTorch
#include <benchmark/benchmark.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "executor/comm/in_process.h"
#include "executor/cpu/kernels/gemm.h"
#include "executor/train/session.h"
#include "sim/compile/compile.h"
#include "sim/model/read_model.h"

namespace {

using namespace shard;

constexpr std::int64_t kSteps = 10;  // measured, after the first

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// "linear backward_weight" and so on; the product with the vocabulary by itself.
std::string group_of(const plan::Op& op) {
  if (std::holds_alternative<plan::OptimizerStep>(op.action)) return "adamw";
  const auto* c = std::get_if<plan::Compute>(&op.action);
  if (c == nullptr) return "other";
  if (c->kind != model::OperatorKind::linear)
    return to_string(c->kind) + std::string(c->direction == plan::Direction::forward ? "" : "_backward");
  const std::string layer = c->attributes->out_columns > 10'000 ? "lm_head" : "linear";
  switch (c->direction) {
    case plan::Direction::backward_input: return layer + "_input";
    case plan::Direction::backward_weight: return layer + "_weight";
    case plan::Direction::forward:
    case plan::Direction::backward: return layer;
  }
  return layer;
}

/// Seconds per group of ops, and the products' arithmetic.
class Groups final : public executor::Observer {
 public:
  void finished(const executor::OpRecord& record) override {
    const double seconds = 1e-9 * static_cast<double>(record.end_ns - record.begin_ns);
    seconds_[group_of(*record.op)] += seconds;
    const auto* c = std::get_if<plan::Compute>(&record.op->action);
    if (c == nullptr || c->kind != model::OperatorKind::linear) return;
    product_seconds_ += seconds;
    product_flops_ += 2.0 * static_cast<double>(c->attributes->rows) * static_cast<double>(c->attributes->columns) *
                      static_cast<double>(c->attributes->out_columns);
  }
  void memory(const executor::MemoryRecord&) override {}

  void end_step() {
    for (auto& [group, seconds] : seconds_) {
      steps_[group].push_back(1e3 * seconds);
      seconds = 0;
    }
    rates_.push_back(1e-9 * product_flops_ / product_seconds_);
    product_flops_ = product_seconds_ = 0;
  }
  void forget_steps() {
    steps_.clear();
    rates_.clear();
  }
  void report(benchmark::State& state) const {
    for (const auto& [group, values] : steps_) state.counters[group + "_ms"] = median(values);
    state.counters["product_GFLOP/s"] = median(rates_);
  }

 private:
  std::map<std::string, double> seconds_;
  std::map<std::string, std::vector<double>> steps_;
  std::vector<double> rates_;
  double product_seconds_ = 0;
  double product_flops_ = 0;
};

void step(benchmark::State& state) {
  Result<model::Model> read = model::read_model("gpt2");
  if (!read) return state.SkipWithError(to_string(read.error()).c_str());
  const auto model = std::make_shared<const model::Model>(std::move(*read));
  plan::Strategy strategy;
  strategy.micro_batch = strategy.global_batch = 4;
  strategy.sequence = 64;
  strategy.threads = static_cast<std::int32_t>(state.range(0));
  const Result<plan::PlanSet> plans = plan::compile(model, strategy);
  const auto data = open_data("random", *model, {.batch = 4, .sequence = 64, .seed = 0});
  if (!plans || !data) return state.SkipWithError("no plan or no data");

  cpu::ThreadPool pool(strategy.threads);
  cpu::warm_up(pool);
  Groups groups;
  std::vector<double> seconds;
  bool more = state.KeepRunning();
  const auto alone = make_single();
  const auto result = train::run_session(plans->of_rank(0), *alone, **data, pool,
                                         {.steps = kSteps + 1,
                                          .digest = false,
                                          .scalars = {},
                                          .observer = &groups,
                                          .after_step =
                                              [&](const train::StepResult& done) {
                                                groups.end_step();
                                                if (done.step == 0) return groups.forget_steps();
                                                seconds.push_back(done.seconds);
                                                if (more) state.SetIterationTime(done.seconds);
                                                more = more && state.KeepRunning();
                                              },
                                          .before_phase = {}});
  if (!result) return state.SkipWithError(to_string(result.error()).c_str());
  groups.report(state);
  state.counters["median_ms"] = 1e3 * median(seconds);
  state.counters["tokens/s"] = 256 / median(seconds);
}

BENCHMARK(step)
    ->Name("gpt2_4x64/threads")
    ->Arg(1)
    ->Arg(2)
    ->Iterations(kSteps)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
