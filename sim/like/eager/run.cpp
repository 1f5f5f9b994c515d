// The loop of a training script.
#include "sim/like/eager/run.h"

#include "sim/like/eager/operators.h"

namespace shard::like::eager {
namespace {

std::unique_ptr<Program> program(Runtime& runtime, const model::Model& model, const RunOptions& options) {
  switch (options.code) {
    case Code::hugging_face: return hugging_face_program(runtime, model, options.program);
    case Code::course: return course_program(runtime, model, options.program);
    case Code::torchtitan: return torchtitan_program(runtime, model, options.program);
    case Code::megatron:
      return model.family == model::Family::llama
                 ? megatron_te_program(runtime, model, options.program, options.megatron)
                 : megatron_program(runtime, model, options.program, options.megatron);
  }
  return nullptr;
}

class Script {
 public:
  Script(Run& run, const model::Model& model, const RunOptions& options)
      : options_(options),
        model_(model),
        tape_(run.program),
        runtime_(tape_, options.machine, options.version, model.parameters.size()),
        optimizer_(runtime_, options.rule, options.update),
        program_(program(runtime_, model, options)),
        sharding_(options.sharding.make == nullptr ? nullptr : options.sharding.make(runtime_, options.sharding)) {
    runtime_.sharding = sharding_.get();
  }

  void play() {
    tape_.begin_phase(Phase::creation);
    tape_.set_part(Part::creation, Category::parameter);
    program_->create();
    if (options_.code == Code::megatron) sharding_->create(model_, {});
    tape_.mark("creation");
    tape_.begin_phase(Phase::first_step);
    step();
    tape_.mark("first step");
    tape_.begin_phase(Phase::steady_step);
    for (std::int32_t i = 0; i < options_.steady_steps; ++i) {
      step();
      tape_.mark(i + 1 < options_.steady_steps ? "second step" : "steady step");
    }
    tape_.finish();
  }

 private:
  void zero_grad() {
    if (sharding_)
      sharding_->zero_grad(optimizer_, options_.set_to_none);
    else
      optimizer_.zero_grad(options_.set_to_none);
  }

  /// DeepSpeed's engine does it.
  [[nodiscard]] bool divides_itself() const { return options_.sharding.framework == Framework::deepspeed; }
  void clip() {
    if (sharding_)
      sharding_->clip();
    else
      clip_gradients(runtime_);
  }

  void step() {
    zero_grad();
    {
      Tensor loss;
      for (std::int64_t i = 0; i < options_.micro_steps; ++i) {
        loss = program_->loss();
        if (options_.micro_steps > 1 && !divides_itself()) loss = div_number(runtime_, loss);
        runtime_.backward(loss);
      }
      if (options_.clip) clip();
      if (sharding_)
        sharding_->step(optimizer_);
      else
        optimizer_.step();
    }
    program_->end_step();
  }

  RunOptions options_;
  const model::Model& model_;
  Tape tape_;
  Runtime runtime_;
  Optimizer optimizer_;
  std::unique_ptr<Program> program_;
  std::unique_ptr<Sharding> sharding_;
};

}  // namespace

Run run(std::shared_ptr<const model::Model> model, const RunOptions& options) {
  Run result;
  Script script(result, *model, options);
  script.play();
  return result;
}

}  // namespace shard::like::eager
