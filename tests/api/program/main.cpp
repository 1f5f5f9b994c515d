// Trains two steps in a loop of its own.
#include <shardscope/shardscope.h>
#include <cstdio>

int fail(const shardscope::Error& error) {
  return std::fprintf(stderr, "%s\n", to_string(error).c_str()), exit_code(error.code);
}

int main() {
  const auto model = shardscope::Model::open("gpt2-nano");
  if (!model) return fail(model.error());
  const auto plan = shardscope::compile(*model, {.ranks = 2, .stage = 3, .unit = "chunk", .sequence = 32});
  if (!plan) return fail(plan.error());
  auto training = shardscope::Training::start(*plan);
  if (!training) return fail(training.error());
  for (int n = 0; n < 2; ++n) {
    const auto step = training->step();
    if (!step) return fail(step.error());
    std::printf("loss %.9g\n", static_cast<double>(step->loss));
  }
  const auto state = training->state_sha256();
  if (!state) return fail(state.error());
  std::printf("state %s\n", state->c_str());
}
