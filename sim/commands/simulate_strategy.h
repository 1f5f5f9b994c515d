// What `simulate` computes of one strategy, from options to figures: for every command that asks. Prints nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/cli/command_line.h"
#include "sim/cluster/cluster.h"
#include "sim/commands/allocator_options.h"
#include "sim/commands/assumed.h"
#include "sim/commands/foreign_files.h"
#include "sim/commands/read_once.h"
#include "sim/commands/simulate_gemini.h"
#include "sim/commands/strategy_options.h"
#include "sim/commands/whose_memory.h"
#include "sim/engine/simulate.h"
#include "sim/like/simulate_eager.h"
#include "sim/like/simulate_gemini.h"
#include "sim/like/simulate_like.h"
#include "traces/base/result.h"

namespace shard::commands {

/// All that changes a figure. Lives as long as the Command it was declared in.
struct SimulateOptions {
  StrategyOptions strategy{.device_of_cluster = true};
  std::string cluster = "cpu-local";
  std::int64_t nodes = 0;
  std::int64_t steps = 2;
  std::string like{};
  ConfiguredFramework configured{};
  GeminiFlags gemini{};
  like::EagerOptions eager{};
  AllocatorFlags allocator{};
};

/// Declares the options of a strategy and of its model, the machine's, those of other frameworks, and --steps.
void add_simulate_options(cli::Command& command, SimulateOptions& options);

/// What strategies share, each read once. May be asked by several threads.
struct SimulateInputs {
  Models models{};
  ReadOnce<cluster::Cluster> clusters{cluster_of};

 private:
  static Result<cluster::Cluster> cluster_of(std::string_view name);
};

/// Why our own executor answers in place of the framework whose run the options mean.
struct Instead {
  std::string framework;  ///< NAME@VERSION
  Error reason;
};

/// Figures of our own executor, of an allocator of PyTorch, or of Gemini.
struct Simulated {
  std::variant<engine::Simulation, like::LikeResult, like::GeminiResult> figures;
  std::optional<Planned> planned;   ///< not of Gemini
  cluster::Cluster cluster;         ///< of our own executor: what it was simulated on,
  engine::SimulateOptions options;  ///< and how
  like::EagerOptions eager{};       ///< of eager PyTorch 2: what it was told
  Assumed taken;
  std::optional<Instead> instead{};
  bool asked = false;  ///< by --like

  [[nodiscard]] bool fits() const { return verdict() != cluster::Verdict::does_not_fit; }
  [[nodiscard]] cluster::Verdict verdict() const {
    return std::visit([](const auto& of) { return of.verdict(); }, figures);
  }
};

/// How it is asked.
struct SimulateRequest {
  SimulateInputs& inputs;
  /// Is told what was read and not applied, which chunk size was found, and the like; also where an error follows.
  std::function<void(const std::vector<std::string>&)> note;
  bool series = false;  ///< memory over time is wanted
  std::string trace{};  ///< the predicted trace's file; empty: none
  /// Figures of options of which some were changed, on the same machine and of the same model: what is equal there is
  /// not made again, and where all is equal the answer is a contradiction. Null: none.
  const Simulated* base = nullptr;
};

/// Errors: as resolve(), compile() and simulate(), and of options that have no meaning for what --like names.
[[nodiscard]] Result<Simulated> simulate_strategy(const cli::Command& command, const SimulateOptions& options,
                                                  const SimulateRequest& request);

/// The framework whose run the options mean, and the error with which it refused, where nobody asked for it by --like
/// and our own executor may answer in its place.
[[nodiscard]] std::optional<Instead> instead_of(const cli::Command& command, const SimulateOptions& options,
                                                SimulateInputs& inputs, const Error& refusal);

}  // namespace shard::commands
