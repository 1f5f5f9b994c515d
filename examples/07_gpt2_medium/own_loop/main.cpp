// GPT-2 medium with ZeRO on random tokens, in a loop of its own: own_loop [SCALE [STEPS [OPTION...]]]
#include <shardscope/shardscope.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>

using namespace shardscope;

int fail(const Error& error) {
  return std::fprintf(stderr, "%s\n", to_string(error).c_str()), exit_code(error.code);
}

void show(const std::string& when, const Live& memory) {
  const auto mb = [](Bytes bytes) { return static_cast<double>(bytes.count()) / (1 << 20); };
  std::printf("%sGPU memory usage: %.2f MB, CPU memory usage: %.2f MB\n", when.c_str(), mb(memory.device),
              mb(memory.host));
}

int main(int argc, char** argv) {
  const int scale = argc > 1 ? std::max(1, std::atoi(argv[1])) : 8, steps = argc > 2 ? std::atoi(argv[2]) : 10;
  const auto scaled = [scale](int size) { return std::to_string(size / scale); };
  const auto model = Model::open(R"({"model_type": "gpt2", "n_embd": )" + scaled(1024) + R"(, "n_layer": )" +
                                 scaled(24) + R"(, "n_head": )" + scaled(16) + R"(, "n_positions": )" + scaled(1024) +
                                 R"(, "vocab_size": )" + scaled(50257) + "}");
  if (!model) return fail(model.error());

  Options options{"--stage",         "3",     "--unit",        "tensor", "--precision", "fp16",
                  "--initial-scale", "32",    "--lr",          "1e-3",   "--optimizer", "HybridAdam",
                  "--recompute",     "block", "--micro-batch", "8",      "--sequence",  scaled(1024)};
  if (argc <= 3) options.insert(options.end(), {"--ranks", "2", "--placement", "cpu", "--reuse-fp16-shard"});
  options.insert(options.end(), argv + std::min(argc, 3), argv + argc);
  const auto plan = compile(*model, options);
  if (!plan) return fail(plan.error());
  auto training = Training::start(*plan);
  if (!training) return fail(training.error());
  const CreatedMemory& created = training->created()[0];
  bool as_predicted = created.measured == created.predicted;
  show("After init model, ", created.measured.model);
  show("After init optim, ", created.measured.optimizer);

  std::mt19937 random(123);
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(plan->global_batch() * (plan->sequence() + 1)));
  for (int n = 0; n < steps; ++n) {
    for (auto& token : tokens) token = static_cast<std::int32_t>(random() % static_cast<unsigned>(model->vocabulary()));
    const auto step = training->step(tokens);
    if (!step) return fail(step.error());
    const InStep& memory = step->memory[0].measured;
    as_predicted = as_predicted && memory == step->memory[0].predicted;
    const std::string which = "[" + std::to_string(n + 1) + "/" + std::to_string(steps) + "] ";
    show("Forward " + which, memory.forward);
    show("Backward " + which, memory.backward);
    show("Optimizer step " + which, memory.step);
    const auto tflops = [&](Flops flops) { return flops.count() / step->seconds.count() / 1e12; };
    std::printf("%sLoss:%.3f, Step time: %.3fs, TFLOPS: %.3f (by operator %.3f)\n", which.c_str(), step->loss,
                step->seconds.count(), tflops(plan->flops(0)->by_parameters), tflops(plan->flops(0)->model));
  }
  std::printf("%ld parameters, memory predicted to the byte: %s\n", plan->parameter_elements(),
              as_predicted ? "yes" : "no");
}
