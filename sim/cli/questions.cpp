// The table of questions.
#include "sim/cli/questions.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace shard::cli {
namespace {

constexpr auto kQuestions = std::to_array<Question>({
    {"fit", "Will it fit?", "fits capacity room",
     R"(simulate says what every rank holds at its worst moment, beside what the machine has. Nothing runs and no GPU is
needed. Where it does not fit, the exit code is 3 and the answer names what helps most. On GPUs CUDA's context and
NCCL's buffers count, too: it fits with the most that was seen of them, with the least alone it is tight.

  shardscope simulate --model gpt2-xl --world-size 8 --cluster a100-80gb-x8
  shardscope simulate --model llama-3.1-8b --world-size 8 --cluster h100-80gb-x8 --like fsdp2 --recompute block

Your own model is a Hugging Face config.json, or the folder that holds one:

  shardscope simulate --model config.json --world-size 8 --cluster a100-80gb-x8 --like deepspeed --stage 2 \
      --sequence 512

On GPUs the figures are PyTorch's, or those of the framework that --like or a configuration names (shardscope help
pytorch); on a CPU, and with --like shardscope, those of Shardscope's own executor. Your own script: shardscope help
script. It does not fit: shardscope help oom.)"},
    {"script", "What will my own script take, without a GPU?",
     "dryrun dry-run lora qlora peft adapter quantization 4bit pipeline context-parallel expert moe diffusion trainer",
     R"(dryrun runs it as it is, on GPUs that are not there: PyTorch, the framework and your code are the real ones, and
only the numbers are missing. LoRA, quantization, pipelines, whatever the program does counts.

  shardscope dryrun --cluster h100-80gb-x8 --world-size 8 -- python3 train.py

Without a script, from the files that you have ('shardscope dryrun --help' lists the recipes):

  shardscope dryrun --recipe hf-trainer --model llama-3.1-8b --ds-config ds_config.json --world-size 8
  shardscope dryrun --recipe trl-sft --model llama-3.1-8b --lora-rank 16 --quantize nf4

--rank all runs every rank, --time says how long a step takes. docs/dryrun.md.)"},
    {"oom", "It does not fit: what now?", "reduce smaller offload memory-error outofmemoryerror",
     R"(What PyTorch's message means, whether the GPU is full, fragmented or used by others (--oom -: on stdin):

  shardscope inspect --oom train.log

Ask for everything that takes less, and see what it costs in time. The Pareto front, marked *, is what no other strategy
beats in both memory and speed.

  shardscope sweep --model gpt2-xl --world-size 8 --cluster a100-40gb-x8 --precision bf16 --stage 1,2,3 \
      --recompute none,block
  shardscope sweep --model gpt2-xl --world-size 8 --cluster a100-40gb-x8 --precision bf16 --stage 3 \
      --placement device,host

In the order in which people try them: 16 bits, a higher stage, --recompute block, a smaller --micro-batch (the
global batch stays, in more micro-steps), and host memory for what the device has no room for:

  shardscope simulate --model gpt2-xl --world-size 2 --cluster a100-40gb-x8 --precision bf16 --stage 3 \
      --placement auto \
      --device-capacity 12Gi)"},
    {"chunk-size", "Which chunk size?", "chunk chunks bucket",
     R"(search tries every multiple of the world size and says what each wastes, beside what Colossal-AI's own searches
would choose.

  shardscope search --model gpt2-medium --world-size 8 --cluster a100-40gb-x8
  shardscope search --model gpt2-medium --world-size 8 --rule gemini --search-range 32Mi

A list of parameters does as well as a model, with {name, shape, numel} in order:

  shardscope search --parameters params.json --world-size 8

Whether chunks are the right unit at all: shardscope help strategy.)"},
    {"strategy", "Which strategy should I take?", "which best choose sweep",
     R"(sweep predicts every combination of the lists that options hold: memory, speed and bytes sent, one row each, the
best first.

  shardscope sweep --model llama-7b --world-size 8 --cluster h100-80gb-x8 --precision bf16 --stage 0,1,2,3 \
      --micro-batch 1,2
  shardscope sweep --model gpt2-medium --world-size 4 --cluster a100-40gb-x8 --stage 3 \
      --unit tensor,bucket,module,chunk

What each stage moves where: examples/06_stages; every strategy and what others call it: docs/strategies.md. Two
of them side by side, files as --config takes them:

  shardscope compare stage2.conf stage3.conf --model gpt2-medium --cluster a100-40gb-x8)"},
    {"slow", "Why is it slow?", "speed time fast performance idle exposed tokens",
     R"(Of a prediction, "exposed" is communication while nothing computes: what it adds to the step.

  shardscope simulate --model gpt2-xl --world-size 8 --cluster a100-40gb-x8 --stage 3 --precision bf16

Of a PyTorch profiler's trace, inspect says how long each device was idle and why, which collectives kernels hid,
and which kernels took longest:

  shardscope inspect profile.json.gz

Of our own run, which ops took longer than predicted:

  shardscope train --model gpt2-nano --data random --sequence 64 --steps 3 --profile --trace run.sst

Any CUDA program is recorded by 'shardscope profile -o run.sst -- python3 train.py'.)"},
    {"right", "Is it right?", "true trust verify correct proof validate accurate",
     R"(Run it: memory is predicted to the byte and every collective counted, and '=' says that both agree.

  shardscope train --model gpt2-nano --data random --sequence 64 --ranks 2 --stage 3 --steps 2

verify trains by your strategy and by unsharded training, and compares every value, moment and loss, bit for bit:

  shardscope verify --model gpt2-nano --data random --sequence 64 --ranks 2 --stage 3 --unit chunk --steps 2

Two traces, predicted and measured, line up op by op; with --check a difference is exit code 1:

  shardscope compare predicted.sst measured.sst --check

Why the bits do not depend on the strategy: docs/agreement.md. How far off predicted times are:
docs/performance.md.)"},
    {"memory", "Where does the memory go?", "peak holders allocation leak snapshot who",
     R"(simulate shows memory by category at the peak, and the largest holders. With --format json every buffer's category
is there.

  shardscope simulate --model gpt2-medium --world-size 2 --cluster a100-40gb-x8 --stage 2 --micro-batch 4

Of a PyTorch memory snapshot (torch.cuda.memory._dump_snapshot()), who held it, by the line of your own code:

  shardscope inspect snapshot.pickle --at peak

What is in device and host memory after forward, backward and optimizer of each step, predicted and measured:

  shardscope train --model gpt2-nano --data random --sequence 64 --ranks 2 --stage 3 --steps 2 --print-memory

In words: shardscope help words.)"},
    {"fragmentation", "Is it the allocator?",
     "allocator expandable segments expandable_segments alloc-conf pytorch_cuda_alloc_conf reserved fragmented cache",
     R"(PyTorch's allocator keeps what it took from the device: reserved less allocated is what lies idle in it, and a block
that no gap can hold is an out-of-memory error beside free memory. A snapshot (torch.cuda.memory._dump_snapshot())
says how much that is, and what another setting of PYTORCH_CUDA_ALLOC_CONF would have made of the same run:

  shardscope simulate --model gpt2 --like pytorch --cluster a100-40gb-x8 --micro-batch 4 --what-if
  shardscope simulate --model gpt2 --like pytorch --cluster a100-40gb-x8 --micro-batch 4 \
      --allocator-conf expandable_segments:True

Of a snapshot of your own: 'shardscope simulate --program snapshot.pickle --allocator-conf
expandable_segments:True'. docs/programs.md.)"},
    {"config", "How do I start from the configuration that I have?",
     "deepspeed ds-config ds_config accelerate colossalai colossal-ai gemini torchtitan megatron fsdp file begin",
     R"(A file of DeepSpeed (JSON), accelerate (YAML), torchtitan (TOML), Colossal-AI (Python, read and not executed) or a
launch script with Megatron's arguments is taken as it stands; its content tells which.

  shardscope simulate --model gpt2-medium --world-size 8 --config ds_config.json
  shardscope simulate --ds-config ds_config.json --print-config

--print-config runs nothing: every option with where its value came from, and every key of the file that is left
out, with the reason. The command line wins over the file:

  shardscope sweep --model gpt2-medium --world-size 8 --cluster a100-40gb-x8 --ds-config ds_config.json \
      --stage 1,2,3

Every key of every file: docs/configurations.md.)"},
    {"pytorch", "What does PyTorch itself take?", "torch ddp eager fsdp gpu-memory",
     R"(--like predicts another framework's memory, allocation by allocation: PyTorch 2 on one GPU (pytorch), ddp, fsdp1, fsdp2,
DeepSpeed's ZeRO, Megatron-LM, Colossal-AI's Gemini, PyTorch 1.8's DDP and ZeroRedundancyOptimizer for an mlp.

  shardscope simulate --model gpt2 --like pytorch --cluster h100-80gb-x8 --micro-batch 2
  shardscope simulate --model llama-3.1-8b --like fsdp2 --world-size 8 --cluster h100-80gb-x8 --precision bf16 \
      --sequence 4096 --recompute block
  shardscope simulate --model gpt2-medium --world-size 2 --precision fp16 --micro-batch 2 --like colossalai-gemini

DeepSpeed's estimators beside a plan of ours:

  shardscope inspect gpt2-xl --estimate deepspeed --gpus-per-node 8

Your own program, whatever it does, on a GPU that is not there: 'shardscope dryrun --cluster h100-80gb-x8 --
python3 train.py', or without one 'shardscope dryrun --recipe hf-trainer --model gpt2'. What is modelled and what is not:
docs/emulation.md; dry runs: docs/dryrun.md.)"},
    {"models", "Which models are known, and how do I give my own?",
     "model names family parameters hugging-face config.json",
     R"(Published models are known by name; yours is a Hugging Face config.json or the folder that holds one.

  shardscope inspect --models
  shardscope inspect llama-3.1-8b
  shardscope inspect config.json --json

inspect counts the parameters that transformers builds, and says what cannot be simulated or trained.)"},
    {"machines", "Which machines are known, and how do I describe mine?",
     "machine cluster clusters gpu gpus hardware calibrate nodes",
     R"(Hosts of common GPUs are known by name, each figure with its source; -x4 in a name is another number of devices.

  shardscope inspect --clusters
  shardscope simulate --model gpt2-xl --cluster a100-80gb-x4 --nodes 2 --stage 3 --precision bf16

Memory can be given apart (--device-memory 24Gi). A description of your own is a JSON file (examples/clusters),
and 'shardscope calibrate -o here.json' measures the machine it runs on, so that predicted times are its own. What
GPUs are here: 'shardscope inspect --device cuda'.)"},
    {"weights", "How do weights come in and out?", "weight safetensors checkpoints save load",
     R"(--weights reads safetensors, one file or several with an index, each rank only the bytes that it keeps;
--save-weights writes them for transformers.

  shardscope train --model gpt2-nano --data random --sequence 64 --steps 1 --save-weights trained
  shardscope train --model gpt2-nano --data random --sequence 64 --steps 1 --weights trained --ranks 2 --stage 3

docs/weights.md says which dtypes and names. What is in checkpoints of a run: 'shardscope checkpoint list DIR'.)"},
    {"loop", "How do I train in a loop of my own?", "api c++ library own-loop interface",
     R"(By the C++ interface: make a model, choose a strategy, compile, step, and read losses and memory in between. 'make
install PREFIX=DIR', then find_package(shardscope) and shardscope::shardscope; the README has ten lines that
train, and examples/07_gpt2_medium/own_loop a whole program. What the plan of a step is:

  shardscope plan --model gpt2-nano --world-size 2 --stage 3 --sequence 64)"},
    {"launch", "How do I run it on several processes or hosts?", "mpirun srun torchrun slurm ranks distributed hosts",
     R"(train starts its ranks by itself. Under mpirun, srun and torchrun it joins the ranks that are there, and says
which it found.

  shardscope train --model gpt2-nano --data random --sequence 64 --steps 1 --ranks 2

'mpirun -n 4 shardscope train ...', 'torchrun --nproc-per-node 4 --no-python shardscope train ...'; across hosts
add --transport messages. docs/launching.md, examples/two_hosts.)"},
    {"scripts", "How do I use it in a script?", "script exit codes ci automation completion man",
     R"(Every command with a result takes --json (one object on stdout, sizes as integers with the unit in the key);
messages go to stderr. Tables also come as --format csv or markdown. Every key, and the exit codes: shardscope help json.

  shardscope simulate --model gpt2 --world-size 8 --stage 3 --json
  shardscope sweep --model gpt2 --world-size 8 --stage 1,2,3 --format csv
  shardscope simulate --help=json

The last is the command itself: every option with its values. Completion for a shell: 'source <(shardscope
completion bash)'; manual pages: 'shardscope man simulate | man -l -'.)"},
});

/// Lower case, letters and digits alone.
std::string plain_word(std::string_view word) {
  std::string text;
  for (const char c : word)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '+')
      text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

/// Calls `use` for each word between blanks until it returns true.
template <class Use>
bool any_word(std::string_view text, Use use) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (end > 0 && use(text.substr(0, end))) return true;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return false;
}

const Question* by_one_word(std::string_view word) {
  const std::string wanted = plain_word(word);
  if (wanted.empty()) return nullptr;
  const auto is_it = [&](std::string_view each) { return plain_word(each) == wanted; };
  for (const Question& each : kQuestions)
    if (is_it(each.topic)) return &each;
  for (const Question& each : kQuestions)
    if (is_it(each.question) || any_word(each.also, is_it)) return &each;
  return nullptr;
}

}  // namespace

std::span<const Question> questions() {
  return kQuestions;
}

const Question* find_question(std::string_view phrase) {
  if (const Question* const whole = by_one_word(phrase)) return whole;
  const Question* found = nullptr;
  any_word(phrase, [&](std::string_view word) { return (found = by_one_word(word)) != nullptr; });
  return found;
}

std::string questions_help(std::string_view program) {
  std::size_t width = 0;
  for (const Question& each : kQuestions) width = std::max(width, each.topic.size());
  std::string text = "What do you want to know?      '" + std::string(program) + " help TOPIC' answers\n\n";
  for (const Question& each : kQuestions)
    text.append("  ").append(each.topic).append(width - each.topic.size() + 2, ' ').append(each.question).append("\n");
  const std::string name(program);
  return text + "\n'" + name + " --help' lists the commands, '" + name + " help COMMAND' explains one, '" + name +
         " help words' the words of the outputs.\n";
}

std::string answered(const Question& question) {
  return std::string(question.question) + "\n\n" + std::string(question.answer) + "\n";
}

}  // namespace shard::cli
