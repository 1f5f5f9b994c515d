// `shardscope verify`: both runs in this process, side by side.
#include "executor/commands/verify_command.h"

#include <iostream>
#include <span>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "executor/comm/in_process.h"
#include "executor/commands/device_train.h"
#include "executor/commands/train_run.h"
#include "executor/commands/verify_report.h"
#include "executor/launch/address_space.h"
#include "executor/launch/role.h"
#include "sim/cli/contradiction.h"
#include "sim/cli/output.h"
#include "sim/cli/uncaught.h"
#include "sim/commands/printing.h"
#include "sim/compile/compile.h"
#include "sim/strategy/number_class.h"
#include "traces/base/deadline.h"

namespace shard::commands {
namespace {

constexpr const char* kVerifyDetails =
    R"(Trains by the strategy, and by stage 0 on one rank, on the same model and data, and compares every value, moment and
loss after every step, on every rank. "bit-identical", or the first step, tensor and rank that differ.

Ranks are threads of this process, whatever --transport says; all of them, and the model once more, are in its memory.
What a strategy shares with stage 0 is in docs/agreement.md: ranks that share a model (--tensor-parallel) are compared
with stage 0 on as many. Where equal bits are not promised (--no-reproducible; numbers of data-parallel ranks or
micro-batches that are no powers of two) how far the parameters end apart is said, too.

Exit codes: 0 bit-identical; 1 it differs; 3 it does not fit.

Examples:
  shardscope verify --model gpt2-nano --data random --ranks 4 --stage 3 --unit chunk --sequence 32
  shardscope verify --model gpt2-nano --data text:/usr/share/common-licenses/GPL-3 --ranks 2 --stage 2 --recompute block \
      --sequence 32 --steps 2 --json
)";

void declare_verify(cli::Command& command, TrainOptions& o) {
  o.steps = 3;
  add_run_options(command, o, "steps that are compared");
  cli::add_output_options(command, o.output);
  add_foreign_files(command, o.foreign);
}

/// The same model and data by stage 0. It runs whatever --device-capacity says.
Result<Prepared> reference_for(const Prepared& prepared) {
  Planned planned = prepared.planned;
  planned.strategy = plan::unsharded(planned.strategy);
  Result<plan::PlanSet> plans = plan::compile(planned.model, planned.strategy);
  if (!plans) return plans.error();
  return Prepared{.planned = std::move(planned),
                  .plans = std::move(*plans),
                  .prediction = {},
                  .data = prepared.data,
                  .instruction_set = prepared.instruction_set,
                  .weights = prepared.weights};
}

/// For all ranks of a run at once.
Result<void> check_room(const Prepared& prepared) {
  const plan::Strategy& s = prepared.planned.strategy;
  Bytes room{0};
  for (std::int32_t rank = 0; rank < s.world_size; ++rank) {
    room += address_space_of_computing(s.threads);
    for (const Bytes arena : prepared.plans.of_rank(rank).arena_bytes) room += arena;
  }
  return check_address_space(address_space_used(), room, "this process, with all ranks in it");
}

Result<std::vector<train::SessionResult>> run_ranks_of(const Prepared& prepared, const TrainOptions& o,
                                                       const train::SessionOf& session_of) {
  if (Result<void> ok = check_room(prepared); !ok) return ok.error();
  const plan::Strategy& s = prepared.planned.strategy;
  if (s.device == plan::Device::cpu)
    return train::run_in_process(
        prepared.plans, make_in_process(s.world_size, {.deadline = deadline_of(o.timeout_seconds)}), o.data,
        {.batch = s.micro_batch, .sequence = s.sequence, .seed = o.seed, .order = o.data_order}, session_of);
  std::vector<train::SessionResult> results(static_cast<std::size_t>(s.world_size));
  const Result<void> done = run_on_devices(prepared, o, nullptr, [&](train::DeviceRank& rank) -> Result<void> {
    const std::int32_t number = rank.communicator.rank().value;
    const auto data =
        open_data(o.data, *prepared.planned.model,
                  {.batch = s.micro_batch, .sequence = s.sequence, .seed = o.seed, .order = o.data_order});
    if (!data) return data.error();
    cpu::ThreadPool pool(s.threads);
    Result<train::SessionResult> own =
        train::run_session(rank, prepared.plans.of_rank(number), **data, pool, session_of(number));
    if (!own) return own.error();
    results[static_cast<std::size_t>(number)] = std::move(*own);
    return {};
  });
  if (!done) return done.error();
  return results;
}

Result<VerifyReport> compared(const Prepared& prepared, const Prepared& reference, const TrainOptions& o) {
  const bool promised = plan::has_bits_of_class(prepared.planned.strategy);
  const auto run_reference = [&](const plan::PlanSet&, const train::SessionOf& session_of) {
    return run_ranks_of(reference, o, [&](std::int32_t rank) {
      train::SessionOptions session = session_of(rank);
      // An overflow on any rank is one of all.
      for (executor::InjectedOverflow& each : session.inject) each.rank = 0;
      return session;
    });
  };
  const auto run = [&](const plan::PlanSet&, const train::SessionOf& session_of) {
    return run_ranks_of(prepared, o, session_of);
  };
  train::SessionOptions session = session_options(o);
  if (prepared.weights != nullptr)
    session.first_values = [weights = prepared.weights](model::ParamId param, std::int64_t first,
                                                        std::span<float> values) {
      return weights->read(param, first, values);
    };
  Result<train::Agreement> agreement = train::compare_runs({.reference = &reference.plans,
                                                            .plans = &prepared.plans,
                                                            .run_reference = run_reference,
                                                            .run = run,
                                                            .session = std::move(session),
                                                            .measure = !promised});
  if (!agreement) return agreement.error();
  return VerifyReport{.prepared = &prepared,
                      .reference = &reference,
                      .steps = o.steps,
                      .promised = promised,
                      .agreement = std::move(*agreement)};
}

void print_heading(const cli::Command& command, const Prepared& prepared, const Prepared& reference,
                   const TrainOptions& o, std::ostream& lines) {
  print_notes(prepared.planned.notes);
  cli::print(lines, foreign_lines(o.foreign));
  cli::print(lines, heading(command, prepared.planned, prepared.prediction, prepared.data, prepared.instruction_set));
  std::string text = "compared  with " + reference_text(reference.planned.strategy) + ", " + std::to_string(o.steps) +
                     (o.steps == 1 ? " step" : " steps") + "; all ranks are threads of this process\n";
  if (!plan::has_bits_of_class(prepared.planned.strategy))
    text +=
        "          equal bits are not promised: they take --reproducible, and numbers of data-parallel ranks and "
        "micro-batches that are powers of two\n";
  cli::print(lines, text);
  lines << std::flush;
}

Error launched_error(const Role& role) {
  return {.code = Errc::contradiction,
          .what = "verify runs all ranks as threads of one process, and " + describe(role),
          .where = "",
          .help = "shardscope verify --ranks N without a launcher"};
}

Result<int> verify_now(const cli::Command& command, TrainOptions& o, cli::Format format) {
  const Result<Role> role = role_from_environment();
  if (!role) return role.error();
  if (role->launcher != Launcher::none) return launched_error(*role);
  if (Result<void> few = check_ranks(command, o.strategy.chosen.world_size, "threads"); !few) return few.error();
  if (o.strategy.chosen.device == plan::Device::cuda)
    if (Result<void> chosen = choose_own_transport(command, o); !chosen) return chosen.error();
  const Result<Prepared> prepared = prepare(command, o);
  if (!prepared) return prepared.error();
  if (Result<void> fits = check_fits(*prepared, o); !fits) return fits.error();
  const Result<Prepared> reference = reference_for(*prepared);
  if (!reference) return reference.error();
  print_heading(command, *prepared, *reference, o, format == cli::Format::json ? std::cerr : std::cout);
  const Result<VerifyReport> report = compared(*prepared, *reference, o);
  if (!report) return report.error();
  if (format == cli::Format::json)
    std::cout << cli::json_text(to_json(command, *report));
  else
    cli::print(std::cout, to_text(*report));
  return report->agreement.first ? exit_code(Errc::check_failed) : 0;
}

}  // namespace

int verify_command(std::span<const std::string> arguments) {
  TrainOptions options;
  cli::Command command("shardscope", "verify", "proves a strategy equal to unsharded training, bit for bit",
                       kVerifyDetails);
  declare_verify(command, options);
  if (const auto code = parsed(command, arguments)) return *code;
  const Result<cli::Format> format = document_format(command, options.output);
  if (!format) return failed(format.error());
  if (const auto code = printed_config(command, options.foreign, *format)) return *code;
  if (Result<void> ok = check_predictable(options.foreign); !ok) return failed(ok.error());
  const Result<int> code = cli::guarded([&] { return verify_now(command, options, *format); });
  return code ? *code : failed(code.error());
}

}  // namespace shard::commands
