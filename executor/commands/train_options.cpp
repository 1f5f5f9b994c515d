// The options of `shardscope train`.
#include "executor/commands/train_options.h"

#include <utility>
#include <vector>

#include "executor/data/source.h"
#include "sim/cluster/read_cluster.h"

namespace shard::commands {

void add_run_options(cli::Command& command, TrainOptions& o, std::string_view steps_help) {
  add_strategy_options(command, o.strategy);
  cli::Group run = command.group("Run");
  run.add("data", &o.data, "random|text:FILE|FILE.bin",
          "seeded random data; a text file, bytes as tokens; or token files of nanoGPT, llm.c or Megatron-LM: one, "
          "several "
          "with commas, a folder, 'train_*.bin'")
      .common()
      .required()
      .reads_file(files_of_data);
  std::vector<cli::Choice<DataOrder>> orders;
  for (const DataOrder order : {DataOrder::random, DataOrder::sequential, DataOrder::shuffled})
    orders.push_back({word(order).text, order, word(order).help});
  run.add_choice<DataOrder>("data-order", &o.data_order, std::move(orders),
                            "which sequences of the files follow each other");
  run.add("steps", &o.steps, "N", std::string(steps_help)).common().least(1).most(1e9);
  run.add("weight-decay", &o.weight_decay, "RATE", "of parameters with two dimensions or more")
      .least(0)
      .default_text("0.01 for adamw, 0 else");
  add_read_weights_option(run, o.weights);
  run.add("seed", &o.seed, "N", "of parameters and of the order of the data").common();
  run.add("timeout", &o.timeout_seconds, "SECONDS", "how long to wait for another rank before giving up")
      .least(1)
      .may_differ("a rank's own patience");
  run.add_flag("keep-going", &o.keep_going,
               "train on where weights, losses or gradients are infinite or not a number, which else ends the run");
  add_control_options(command, o.control);
  cli::Group machine = command.group("Machine");
  machine.add("cluster", &o.cluster, "NAME|PATH", "what the prediction assumes of the machine")
      .common()
      .known_names(cluster::cluster_names)
      .reads_file(cluster::cluster_file);
  machine
      .add_choice<std::optional<cpu::InstructionSet>>(
          "instruction-set", &o.instruction_set,
          {{"auto", std::nullopt, "the processor's best, which must be the same for all ranks"},
           {"avx2", cpu::InstructionSet::avx2, ""},
           {"avx512", cpu::InstructionSet::avx512, ""}},
          "what matrix products are computed with: each has bits, and so a digest, of its own")
      .may_differ("what it comes to on the rank's processor is compared");
  machine.add_switch("graph", &o.graphs, "GPUs: capture the step once and launch it as a whole");
}

void add_train_options(cli::Command& command, TrainOptions& o) {
  add_run_options(command, o, "training steps of the whole run, those behind which it is resumed among them");
  add_evaluation_options(command, o.evaluation);
  add_checkpoint_options(command, o.checkpoints);
  cli::Group output = command.group("Output");
  output.add("trace", &o.trace, "FILE", "write what was measured, all ranks in one trace").common().writes_file();
  output.add("trace-predicted", &o.trace_predicted, "FILE", "write what the simulator predicts for the same plan")
      .common()
      .writes_file();
  output
      .add_flag(
          "profile", &o.profile,
          "say where the time went and which ops took longest beside the prediction, on GPUs as CUPTI recorded it; "
          "the trace goes to --trace, else to profile.sst")
      .common()
      .writes_file([&o](const std::string& text) {
        return text == "true" && o.trace.empty() ? std::vector<std::filesystem::path>{kProfileTrace}
                                                 : std::vector<std::filesystem::path>{};
      });
  output.add_custom("profile-steps", "A:B", "record the time of these steps alone, counted from 1",
                    [&o](std::string_view text, std::string_view where, const cli::Range&) -> Result<void> {
                      const std::size_t colon = text.find(':');
                      StepRange range;
                      const auto read = [&](std::string_view part, std::int64_t& value) {
                        return cli::read_value(part, where, {.least = 1, .most = 1e9}, value);
                      };
                      if (Result<void> r = read(text.substr(0, colon), range.first); !r) return r;
                      range.last = range.first;
                      if (colon != std::string_view::npos)
                        if (Result<void> r = read(text.substr(colon + 1), range.last); !r) return r;
                      if (range.last < range.first)
                        return Error{Errc::usage, "steps end before they begin: '" + std::string(text) + "'",
                                     std::string(where), "A:B with A at most B"};
                      o.profile_steps = range;
                      return {};
                    });
  output
      .add("log", &o.log, "FILE",
           "write one JSON object per step: step, loss, step_seconds, learning_rate, gradient_norm, tokens_per_second, "
           "mfu, resident_bytes; an older file stays until the first")
      .common()
      .writes_file();
  output.add("tensorboard", &o.tensorboard, "DIR", "write the same for TensorBoard, a file for each run").common();
  output.add("print-every", &o.print_every, "N", "show every Nth step, and the first and last")
      .least(1)
      .may_differ("rank 0 alone shows steps");
  add_save_weights_options(output, o.weights);
  output
      .add_flag("print-memory", &o.print_memory,
                "show what is live in rank 0's device and host memory when the model and the optimizer are made, and "
                "after forward, backward and the end of each step shown, and the step's TFLOPS")
      .may_differ("rank 0 alone shows its own");
  output
      .add(
          "recorder", &o.recorder, "FILE|DIR",
          "after a failure keep the last events of each rank there, for 'shardscope inspect'; an existing folder, or a "
          "name that ends in /, gets a file per rank")
      .may_differ("a rank's own events");
  cli::add_output_options(command, o.output);
  add_foreign_files(command, o.foreign);
}

OptimizerScalars scalars_of(const TrainOptions& o) {
  OptimizerScalars scalars;
  scalars.learning_rate = o.control.learning_rate;
  scalars.beta1 = o.control.beta1;
  scalars.beta2 = o.control.beta2;
  scalars.epsilon = o.control.epsilon;
  scalars.weight_decay =
      o.weight_decay.value_or(o.strategy.chosen.optimizer == plan::OptimizerKind::adamw ? 0.01 : 0.0);
  return scalars;
}

}  // namespace shard::commands
