// `shardscope plan`: the plan of a strategy as text, whole or after any pass, or verified.
#include "sim/check/verify.h"
#include "sim/commands/commands.h"
#include "sim/commands/printing.h"
#include "sim/commands/strategy_options.h"
#include "sim/compile/compile.h"
#include "sim/ir/text.h"

namespace shard::commands {
namespace {

constexpr const char* kPlanDetails =
    R"(Prints what each class of equal ranks would do: buffers with their offsets, and every op with its operands
(= written, + updated), the ops of other streams it waits for, and the memory it takes and gives back.

Examples:
  shardscope plan --model gpt2-nano --world-size 2 --stage 3
  shardscope plan --model gpt2-nano --after differentiate
  shardscope plan --model gpt2 --world-size 8 --stage 3 --unit chunk --verify
)";

/// Every rule of sim/ir/SPEC.md, for the first and the last rank of every class. A broken one is a failed check.
Result<void> checked(const plan::PlanSet& plans) {
  const Result<void> ok = plan::verify(plans);
  if (ok) return {};
  Error error = ok.error();
  error.code = Errc::check_failed;
  return error;
}

std::size_t ops_of(const plan::PlanSet& plans) {
  std::size_t ops = 0;
  for (const plan::Plan& plan : plans.classes)
    for (const plan::PhaseOps& phase : plan.phases) ops += phase.ops.size();
  return ops;
}

}  // namespace

int plan_command(std::span<const std::string> arguments) {
  StrategyOptions strategy;
  std::string after;
  bool json = false;
  bool verifies = false;
  cli::Command command("shardscope", "plan", "prints what each rank would do, op by op", kPlanDetails);
  add_strategy_options(command, strategy);
  cli::Group output = command.group("Output");
  std::string passes;
  for (std::string_view name : plan::pass_names()) passes += (passes.empty() ? "" : ", ") + std::string(name);
  output.add("after", &after, "PASS", "stop after this pass: " + passes).common();
  output.add_flag("verify", &verifies, "check every rule of a correct plan and say so, in place of printing it")
      .common();
  output.add_flag("json", &json, "one object: plan_hash, verified, classes[] with ranks and text").common();
  if (const auto code = parsed(command, arguments)) return *code;
  if (verifies && !after.empty())
    return failed(Error{Errc::contradiction,
                        "--verify checks whole plans, and --after " + after + " stops before the end", "options",
                        "--verify without --after"});
  const Result<Planned> planned = resolve(command, strategy);
  if (!planned) return failed(planned.error());
  print_notes(planned->notes);
  nlohmann::ordered_json j = cli::json_document("plan");
  if (!after.empty()) {
    const Result<plan::Plan> plan = plan::compile_until(planned->model, planned->strategy, after);
    if (!plan) return failed(plan.error());
    j["after"] = after;
    j["classes"].push_back({{"ranks", {0}}, {"text", plan::to_text(*plan)}});
  } else {
    const Result<plan::PlanSet> plans = plan::compile(planned->model, planned->strategy);
    if (!plans) return failed(plans.error());
    if (verifies)
      if (const Result<void> ok = checked(*plans); !ok) return failed(ok.error());
    j["plan_hash"] = plans->hash;
    if (verifies) j["verified"] = true;
    if (verifies && !json) {
      std::cout << "verified: every rule of a correct plan holds, in " << ops_of(*plans) << " ops of "
                << plans->classes.size() << " kinds of ranks\n";
      return 0;
    }
    for (std::size_t c = 0; c < plans->classes.size(); ++c) {
      nlohmann::ordered_json ranks = nlohmann::ordered_json::array();
      for (std::size_t rank = 0; rank < plans->class_of_rank.size(); ++rank)
        if (plans->class_of_rank[rank] == static_cast<std::int32_t>(c)) ranks.push_back(rank);
      j["classes"].push_back({{"ranks", ranks}, {"text", plan::to_text(plans->classes[c])}});
    }
  }
  if (json) {
    std::cout << cli::json_text(j);
    return 0;
  }
  if (j.contains("plan_hash")) std::cout << "hash " << j["plan_hash"].get<std::string>() << '\n';
  for (const auto& each : j["classes"]) {
    std::cout << "ranks";
    for (const auto& rank : each["ranks"]) std::cout << ' ' << rank.get<std::int64_t>();
    cli::print(std::cout, '\n' + each["text"].get<std::string>());
  }
  return 0;
}

}  // namespace shard::commands
