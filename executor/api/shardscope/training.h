// Training in a loop of your own: a step when you ask for one, losses and memory in between.
//
//   const auto model = shardscope::Model::open("gpt2-nano");
//   const auto plan = shardscope::compile(*model, shardscope::Strategy{.ranks = 2, .stage = 3});
//   auto training = shardscope::Training::start(*plan);
//   for (int n = 0; n < 10; ++n) {
//     const auto step = training->step();
//     if (!step) return fail(step.error());  // as each of the Results above is to be looked at
//     std::printf("%f\n", step->loss);
//   }
//
// Steps are those of `shardscope train` with the same options: the same losses, the same state_sha256. So are
// checkpoints: what save() writes `shardscope train --resume` goes on with, and load() with what `--save` wrote.
//
//   auto training = shardscope::Training::load(*plan, "checkpoints");
//   while (training->steps() < 1000) {
//     if (const auto step = training->step(); !step) return fail(step.error());
//     if (training->steps() % 100 == 0)
//       if (const auto saved = training->save("checkpoints", 2); !saved) return fail(saved.error());
//   }
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <shardscope/export.h>
#include <shardscope/plan.h>
#include <shardscope/result.h>

namespace shardscope {

class Gate;  // the library's own

/// Of one rank. `predicted` is the plan's word, `measured` what the rank's arenas held as it ran.
struct CreatedMemory {
  Created measured{};
  Created predicted{};
};
struct StepMemory {
  InStep measured{};
  InStep predicted{};
};

/// With --clip-norm, and with fp16's loss scaler.
struct GradientControl {
  double norm = 0;        ///< before clipping; not finite after an overflow
  double loss_scale = 1;  ///< that the step used
  bool skipped = false;   ///< an overflow: nothing was updated
};

struct Step {
  std::int64_t number = 0;  ///< from 1
  float loss = 0;           ///< mean over the global batch
  Seconds seconds{};        ///< of rank 0
  double learning_rate = 0;
  std::optional<GradientControl> control{};
  std::vector<StepMemory> memory{};  ///< by rank
};

/// A checkpoint: a folder whose weights Hugging Face's libraries open, with the optimizer's state and a manifest.
struct Saved {
  std::string path;
  std::int64_t steps = 0;  ///< that are done there
  Bytes bytes{};           ///< of weights and state
  Seconds seconds{};
};

/// Whether a run that goes on is to have the numbers of the run that was saved, bit for bit, or may have others.
enum class Resume {
  exact,
  inexact,
};

/// One run. Its ranks are threads of this process, which sleep between calls; a call returns when all of them have done
/// what it asks, so nothing goes on while your own code runs. One thread at a time calls: a second is refused at once
/// (retryable) and nothing has happened. Destroying it waits for the call that is inside. Once a step has failed every
/// later one returns the same error.
///
/// contradiction, whatever is called: of an object that was moved from, and in a process that forked off the one that
/// started it, where the ranks' threads are not; there it is destroyed without giving its memory back.
///
/// Not here: ranks in other processes or on other machines (mpirun, srun and torchrun start `shardscope train`; under
/// them each process would train by itself), GPUs, and stopping within a step, where prefetched and reduced units are
/// under way: the memory there is in Step::memory.
class SHARDSCOPE_API Training {
 public:
  /// Takes memory, makes parameters. Errors: those of Plan::fits(), unavailable, io (the data), contradiction (more
  /// than 256 ranks).
  [[nodiscard]] static Result<Training> start(const Plan& plan);
  /// The same, going on where the newest whole checkpoint of `folder` stands, or where `folder` itself does if it is a
  /// checkpoint: saved by any number of ranks, under any strategy of the same numbers. With Resume::inexact what the
  /// numbers depend on may differ (precision, batch, optimizer, data), which notes() then says. Errors: start()'s;
  /// no_input and malformed (files), contradiction (another model, other numbers, a plan with --weights).
  [[nodiscard]] static Result<Training> load(const Plan& plan, const std::string& folder,
                                             Resume resume = Resume::exact);
  Training(Training&&) noexcept;
  Training& operator=(Training&&) noexcept;
  ~Training();

  /// The next step, on what --data names. --steps says how long a learning rate's schedule is and no more: behind its
  /// end the rate stays.
  [[nodiscard]] Result<Step> step();
  /// The same on tokens of your own: plan.global_batch() rows of plan.sequence() + 1 tokens, each below the model's
  /// vocabulary; the targets of a row are its tokens one further. They are read during the call. Which rank gets which
  /// row is the strategy's to choose and does not change the result. contradiction where they are too few or too many,
  /// or out of range (the first is named), or the model takes no tokens: nothing has happened then.
  [[nodiscard]] Result<Step> step(std::span<const std::int32_t> tokens);

  /// Saves the run as it stands behind its last step: `folder`/step-NUMBER, made where it is absent. It has its name
  /// when it is whole, flushed and read again; then all but the newest `keep` are removed (0: none is). Memory is the
  /// plan's staging buffer. The run goes on whether it succeeds or not: cannot_create and io (the folder, the disk)
  /// leave it as it was. contradiction before the first step of this object, when the optimizer has no state yet.
  /// Tokens that were handed to step() are the caller's: a run that goes on is handed the next ones.
  [[nodiscard]] Result<Saved> save(const std::string& folder, std::int64_t keep = 0);

  /// Steps that are done, those of the run that load() goes on with among them; 0 of an object that was moved from.
  [[nodiscard]] std::int64_t steps() const;
  /// What load() took that will not give the saved run's numbers; empty of an object that was moved from.
  [[nodiscard]] const std::vector<std::string>& notes() const;
  /// By rank; empty of an object that was moved from.
  [[nodiscard]] const std::vector<CreatedMemory>& created() const;
  /// The arenas' high-water marks so far; equal to Plan::peak() behind the second step and state_sha256().
  /// contradiction where there is no such rank.
  [[nodiscard]] Result<Live> peak(int rank) const;
  /// SHA-256 of all parameters and the optimizer's state as they are now, as `shardscope train` prints it.
  /// contradiction before the first step of this object.
  [[nodiscard]] Result<std::string> state_sha256();

 private:
  class Impl;
  struct End {
    void operator()(Impl* impl) const noexcept;
  };
  explicit Training(std::unique_ptr<Impl, End> impl);
  /// `folder`: null for a new run.
  [[nodiscard]] static Result<Training> begin(const Plan& plan, const std::string* folder, Resume resume);
  [[nodiscard]] std::shared_ptr<Gate> gate() const;  ///< null of an object that was moved from
  std::unique_ptr<Impl, End> impl_;
};

/// Memory of this whole process as the operating system counts it (proportional set size, pages of libraries left out):
/// all ranks' arenas as far as they have been touched, and your own. 0 where the system does not tell.
[[nodiscard]] SHARDSCOPE_API Bytes resident();

}  // namespace shardscope
