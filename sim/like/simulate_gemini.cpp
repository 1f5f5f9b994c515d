// Name to rules, rules to plan, plan through the ledger.
#include "sim/like/simulate_gemini.h"

#include <cassert>
#include <utility>

#include "sim/like/frameworks/framework.h"
#include "sim/like/simulate_like.h"

namespace shard::like {
namespace {

std::vector<std::string> notes_on(GeminiRules rules, const GeminiOptions& o, const GeminiPlan& plan) {
  std::vector<std::string> notes;
  if (rules == GeminiRules::split && o.offload_param_frac > 0 && (o.shard_param_frac != 1 || o.offload_optim_frac != 1))
    notes.push_back(
        "--offload-param-frac has no effect beyond the start: the policy ignores it unless --shard-param-frac and "
        "--offload-optim-frac are 1");
  if (plan.order_matters)
    notes.push_back(
        "chunks of different sizes are offloaded in part: which ones the peer takes from a set, in an order that may "
        "differ between runs; here they are taken in order");
  return notes;
}

GeminiResult evaluate(GeminiRules rules, std::string model, GeminiStep step, const ParameterList& parameters,
                      const GeminiOptions& options, std::int32_t iterations, const cluster::Room& room) {
  const ChunkLayout layout = gemini_layout(rules, parameters, options);
  const GeminiPlan gemini = rules == GeminiRules::whole ? whole_chunks(std::move(step), layout, options)
                                                        : split_chunks(std::move(step), layout, options);
  Ledger ledger(gemini.plan, gemini.marks);
  const auto run = [&](Phase phase) {
    const Result<void> done = plan::run(*gemini.plan.find(phase), ledger);
    assert(done && "a ledger refuses nothing");
    static_cast<void>(done);
  };
  run(Phase::creation);
  GeminiResult result{.rules = rules,
                      .model = std::move(model),
                      .options = options,
                      .layout = gemini.layout,
                      .offloaded_chunks = gemini.offloaded_chunks,
                      .keep_gathered_bytes = gemini.keep_gathered_bytes,
                      .rest_device = ledger.model_data(Memory::device),
                      .rest_host = ledger.model_data(Memory::host),
                      .device_capacity = room.capacity,
                      .outside = room.outside,
                      .notes = notes_on(rules, options, gemini)};
  for (std::int32_t i = 0; i < iterations; ++i) {
    const std::size_t before = ledger.moments().size();
    run(i == 0 ? Phase::first_step : Phase::steady_step);
    result.iterations.push_back({ledger.moments()[before], ledger.moments()[before + 1]});
  }
  result.device_peak = ledger.device_peak();
  result.peak_op = ledger.peak_op();
  result.holders = ledger.holders_at_peak();
  for (const plan::Buffer& b : gemini.plan.buffers)
    if (b.category == Category::optimizer_state) result.optimizer_state += b.bytes;
  result.fits = result.verdict() != cluster::Verdict::does_not_fit;
  return result;
}

}  // namespace

Result<GeminiResult> simulate_gemini(std::string_view name, const ParameterList& parameters,
                                     const GeminiOptions& options, std::int32_t iterations,
                                     std::optional<Bytes> device_capacity, cluster::ByteRange outside) {
  const std::optional<GeminiRules> rules = gemini_rules(name);
  if (!rules) return unknown_framework(name);
  if (Result<void> ok = check_gemini(*rules, parameters, options); !ok) return ok.error();
  return evaluate(*rules, "", step_of_modules(parameters), parameters, options, iterations,
                  {.capacity = device_capacity, .outside = outside});
}

Result<GeminiResult> simulate_gemini(std::string_view name, std::shared_ptr<const model::Model> model,
                                     const plan::Strategy& strategy, const GeminiOptions& options,
                                     std::int32_t iterations, std::optional<Bytes> device_capacity,
                                     cluster::ByteRange outside) {
  const std::optional<GeminiRules> rules = gemini_rules(name);
  if (!rules) return unknown_framework(name);
  if (Result<void> ok = check_gemini(*rules, model->parameters, options); !ok) return ok.error();
  if (strategy.accumulation() != 1)
    return Error{.code = Errc::contradiction,
                 .what = "--global-batch " + std::to_string(strategy.global_batch) + " needs " +
                         std::to_string(strategy.accumulation()) +
                         " micro-steps, and accumulation in chunks of their own is not modelled",
                 .where = "--like " + std::string(name_of(*rules)),
                 .help = "--global-batch " + std::to_string(strategy.micro_batch * strategy.world_size)};
  const ParameterList parameters = model->parameters;
  std::string model_name = model->name;
  GeminiResult result = evaluate(*rules, std::move(model_name), step_of_operators(std::move(model), strategy),
                                 parameters, options, iterations, {.capacity = device_capacity, .outside = outside});
  result.with_activations = true;
  return result;
}

}  // namespace shard::like
