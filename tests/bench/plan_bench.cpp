// How long do compiling, verifying, hashing and simulating a plan take? Search over strategies does the first and the
// last hundreds of times.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "sim/check/verify.h"
#include "sim/cluster/read_cluster.h"
#include "sim/compile/compile.h"
#include "sim/engine/simulate.h"
#include "sim/ir/hash.h"
#include "sim/ir/text.h"
#include "sim/model/config.h"
#include "sim/model/examples.h"

namespace shard::plan {
namespace {

std::shared_ptr<const model::Model> example(std::string_view name) {
  const auto found = model::find_example_model(name);
  if (!found) std::abort();
  Result<model::ConfiguredModel> configured = model::parse_config(found->config_json, name, name);
  if (!configured) std::abort();
  return std::make_shared<const model::Model>(std::move(configured->model));
}

Strategy chunked(std::int32_t world, std::int64_t accumulation, std::int64_t sequence) {
  return {.world_size = world,
          .stage = 3,
          .unit = UnitKind::chunk,
          .chunk_elems = round_up(Elems{32 * 1024 * 1024}, world),
          .micro_batch = 1,
          .global_batch = world * accumulation,
          .sequence = sequence};
}

struct Case {
  const char* name;
  const char* model;
  Strategy strategy;
};

const Case kCases[] = {
    {"gpt2-medium/W8/stage3/chunk/A4", "gpt2-medium", chunked(8, 4, 1024)},
    {"llama-7b/W1024/stage3/chunk/A1", "llama-7b", chunked(1024, 1, 2048)},
    {"gpt2-xl/W8/stage3/chunk/A16", "gpt2-xl", chunked(8, 16, 1024)},
};

void count(benchmark::State& state, const PlanSet& plans) {
  std::size_t ops = 0;
  for (const PhaseOps& phase : plans.classes.front().phases) ops += phase.ops.size();
  state.counters["classes"] = static_cast<double>(plans.classes.size());
  state.counters["ops_per_class"] = static_cast<double>(ops);
}

void compile_plan(benchmark::State& state, const Case& c) {
  const auto model = example(c.model);
  for (auto _ : state) benchmark::DoNotOptimize(compile(model, c.strategy));
  count(state, *compile(model, c.strategy));
}

void verify_plan(benchmark::State& state, const Case& c) {
  const Result<PlanSet> plans = compile(example(c.model), c.strategy);
  if (!verify(*plans)) std::abort();
  for (auto _ : state) benchmark::DoNotOptimize(verify(*plans));
  count(state, *plans);
}

void hash_plan(benchmark::State& state, const Case& c) {
  const Result<PlanSet> plans = compile(example(c.model), c.strategy);
  for (auto _ : state) benchmark::DoNotOptimize(hash_of(plans->classes, plans->class_of_rank));
  count(state, *plans);
}

/// A first step and a steady one on a machine as large as the run.
void simulate_plan(benchmark::State& state, const Case& c) {
  const Result<PlanSet> plans = compile(example(c.model), c.strategy);
  Result<cluster::Cluster> machine = cluster::read_cluster("h100-80gb-x8");
  if (!plans || !machine) std::abort();
  machine->hosts = (c.strategy.world_size + 7) / 8;
  const engine::SimulateOptions options{.steps = 2};
  if (!engine::simulate(*plans, *machine, options)) std::abort();
  for (auto _ : state) benchmark::DoNotOptimize(engine::simulate(*plans, *machine, options));
  count(state, *plans);
}

}  // namespace
}  // namespace shard::plan

int main(int argc, char** argv) {
  using namespace shard::plan;
  for (const Case& c : kCases) {
    const auto add = [&](const char* what, auto function) {
      benchmark::RegisterBenchmark((std::string(what) + '/' + c.name).c_str(), [function, &c](benchmark::State& state) {
        function(state, c);
      })->Unit(benchmark::kMillisecond);
    };
    add("compile", compile_plan);
    add("verify", verify_plan);
    add("text_and_hash", hash_plan);
    add("simulate", simulate_plan);
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
