// Frames give every stack a phase of training; the order of events tells what outlived the phase that it was made in.
#include "traces/import/pytorch_categories.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "traces/library_files.h"
#include "traces/sites.h"
#include "traces/snapshot.h"

namespace shard::import {
namespace {

using std::string_view;

/// What a program was doing when it asked for memory.
enum class Doing : std::uint8_t {
  unknown,  ///< no frames
  other,    ///< Python code that is none of the following
  setup,    ///< a module's parameters come into being or move
  forward,
  gathering,  ///< FSDP's full parameters
  backward,
  accumulating,  ///< of a backward, what goes into .grad
  stepping,      ///< a step of PyTorch's optimizers
  own_step,      ///< the same of somebody's own optimizer: state, or parameters anew
  calling,       ///< a library, which wants a workspace for that
};

/// File or folder, function ("" for every one), and what they do. Files as PyTorch has them; a file without a directory
/// (people take them out before they publish) is one of these where the function is PyTorch's alone.
struct Known {
  string_view file, function;
  Doing doing;
  bool also_bare;
};
constexpr std::array kKnown = {
    Known{"torch/nn/modules/module.py", "_call_impl", Doing::forward, true},
    Known{"torch/nn/modules/module.py", "_apply", Doing::setup, true},
    Known{"torch/nn/modules/module.py", "convert", Doing::setup, true},
    Known{"torch/nn/modules/", "__init__", Doing::setup, false},
    Known{"torch/nn/modules/", "reset_parameters", Doing::setup, false},
    Known{"torch/nn/modules/", "_reset_parameters", Doing::setup, false},
    Known{"torch/nn/parameter.py", "", Doing::setup, false},
    Known{"torch/nn/init.py", "", Doing::setup, false},
    Known{"_fsdp_param.py", "_init_sharded_param", Doing::setup, true},
    Known{"_fsdp_param.py", "init_all_gather_outputs", Doing::gathering, true},
    Known{"_fsdp_param.py", "init_unsharded_param", Doing::gathering, true},
    Known{"_fsdp_param.py", "alloc_all_gather_outputs", Doing::gathering, true},
    Known{"_fsdp_collectives.py", "foreach_all_gather", Doing::gathering, true},
    Known{"_fsdp_collectives.py", "foreach_all_gather_copy_out", Doing::gathering, true},
    Known{"_flat_param.py", "_alloc_padded_unsharded_flat_param", Doing::gathering, true},
    Known{"_flat_param.py", "unshard", Doing::gathering, true},
    Known{"torch/utils/checkpoint.py", "unpack_hook", Doing::backward, true},
    Known{"torch/utils/checkpoint.py", "recompute_fn", Doing::backward, true},
    Known{"torch/autograd/__init__.py", "grad", Doing::backward, false},
    Known{"graph.py", "_engine_run_backward", Doing::backward, true},
    Known{"torch/optim/", "", Doing::stepping, false},
    Known{"optimizer.py", "wrapper", Doing::stepping, true},
    Known{"optimizer.py", "_use_grad", Doing::stepping, true},
    Known{"", "_init_group", Doing::stepping, true},
};

/// Whether `path` is the file (or lies in the folder) `known`, whole names of folders compared.
[[nodiscard]] bool is_at(string_view path, string_view known) {
  const std::size_t at = path.rfind(known);
  if (at == string_view::npos) return false;
  const std::size_t end = at + known.size();
  return (at == 0 || path[at - 1] == '/') && (known.ends_with('/') || end == path.size());
}

/// What a frame says of its stack; nothing where it says nothing.
[[nodiscard]] std::optional<Doing> said_by(string_view path, string_view function) {
  if (function.find("torch::autograd::AccumulateGrad::") != string_view::npos) return Doing::accumulating;
  if (function.starts_with("torch::autograd::Engine::") ||
      function.starts_with("torch::autograd::python::PythonEngine"))
    return Doing::backward;
  if (function.starts_with("at::cuda::getCurrentCUDABlasHandle") || function.starts_with("at::cuda::getNewWorkspace") ||
      function.find("CUDABlasLtWorkspace") != string_view::npos)
    return Doing::calling;
  if (!path.ends_with(".py")) return std::nullopt;
  if (function == "backward") return Doing::backward;  // of a tensor, a function of somebody's, an engine: all the same
  const bool bare = path.find('/') == string_view::npos;
  const auto is = [&](const Known& known) {
    if (!known.function.empty() && known.function != function) return false;
    if (!bare) return !known.file.empty() && is_at(path, known.file);
    return known.also_bare && (known.file.empty() || file_name(known.file) == path);
  };
  const auto* const known = std::ranges::find_if(kKnown, is);
  if (known == kKnown.end()) return std::nullopt;
  return known->doing;
}

/// What a stack does, and whether under a backward: a forward there computes again.
struct Deed {
  Doing doing = Doing::unknown;
  bool under_backward = false;
};

/// By stack: callers come first, so one pass finds all.
[[nodiscard]] std::vector<Deed> deeds(const Trace& trace) {
  struct Said {
    std::optional<Doing> doing;
    bool python = false, torch = false;
  };
  std::vector<Said> frames;
  frames.reserve(trace.frames.size());
  const LibraryFiles files(trace);
  for (const StackFrame& frame : trace.frames) {
    const string_view path = trace.name_of(frame.file);
    frames.push_back({said_by(path, trace.name_of(frame.function)), path.ends_with(".py"),
                      path.find("/torch/") != string_view::npos ||
                          (path.find('/') == string_view::npos && files.owner_of(trace, frame) == FileOwner::library)});
  }
  std::vector<Deed> of(trace.stacks.size());
  for (std::size_t i = 0; i < of.size(); ++i) {
    const StackNode& node = trace.stacks[i];
    if (node.caller.valid()) of[i] = of[static_cast<std::size_t>(node.caller.value)];
    if (!node.frame.valid()) continue;
    const auto& [said, python, torch] = frames[static_cast<std::size_t>(node.frame.value)];
    Doing& doing = of[i].doing;
    if (said) {
      doing = *said;
      of[i].under_backward |= doing == Doing::backward;
    } else if (doing == Doing::stepping && python && !torch) {
      doing = Doing::own_step;
    }
    if (doing == Doing::unknown && python) doing = Doing::other;
  }
  return of;
}

/// The blocks of one rank's memory, followed through its events.
class Blocks {
 public:
  explicit Blocks(MemoryTable& memory) : memory_(memory) {}

  void acquired(std::size_t event, Deed deed) {
    enter(deed);
    const Doing doing = deed.doing;
    live_[memory_.buffer[event].value] = {event, doing, backwards_, passes_};
    switch (doing) {
      case Doing::setup: return is(event, Category::parameter);
      case Doing::gathering: return is(event, Category::gathered);
      case Doing::forward: return is(event, Category::activation);
      case Doing::accumulating: return is(event, Category::gradient);
      case Doing::calling: return is(event, Category::workspace);
      case Doing::backward:
      case Doing::stepping: made_here_.push_back(event); return;
      case Doing::own_step:
      case Doing::other:
      case Doing::unknown: return;
    }
  }

  void released(std::size_t event, Deed deed) {
    const auto at = live_.find(memory_.buffer[event].value);
    if (at == live_.end()) return enter(deed);
    const std::size_t made = at->second.event;
    // Where stacks of allocations alone are recorded (context="alloc"), a free says who allocated.
    if (memory_.stack[event] != memory_.stack[made]) enter(deed);
    if (at->second.doing == Doing::other && phase_ == Doing::backward) is(made, Category::activation);
    // What is made and given back in one backward or one step lives within that pass alone.
    if (memory_.stack[event] != memory_.stack[made] && deed.doing != Doing::unknown && of_pass(at->second))
      is(made, Category::workspace);
    settle(at->second);
    memory_.category[event] = memory_.category[made];
    live_.erase(at);
  }

  void end() {
    for (const auto& [buffer, block] : live_) settle(block);
  }

 private:
  struct Block {
    std::size_t event = 0;
    Doing doing = Doing::unknown;
    int backwards = 0;  // that had begun when it was made
    int passes = 0;     // the same of phases
  };
  /// A forward's blocks that outlived so many backwards were not made for these: caches, workspaces of libraries.
  static constexpr int kBackwards = 2;

  void is(std::size_t event, Category category) { memory_.category[event] = category; }

  [[nodiscard]] bool of_pass(const Block& block) const {
    return block.passes == passes_ && (block.doing == Doing::backward || block.doing == Doing::stepping) &&
           memory_.category[block.event] == Category::not_known;
  }

  void settle(const Block& block) {
    if (block.doing == Doing::forward && backwards_ - block.backwards > kBackwards)
      is(block.event, Category::not_known);
  }

  /// Where another phase begins, what was made in the one before and is still there has outlived it.
  void enter(Deed deed) {
    Doing doing = deed.doing;
    if (doing == Doing::accumulating || deed.under_backward) doing = Doing::backward;
    if (doing == Doing::own_step) doing = Doing::stepping;
    if (doing == Doing::unknown || doing == Doing::calling || doing == phase_) return;
    const Category outlived = phase_ == Doing::backward ? Category::gradient : Category::optimizer_state;
    for (const std::size_t made : made_here_) {
      const auto at = live_.find(memory_.buffer[made].value);
      if (at != live_.end() && at->second.event == made) is(made, outlived);
    }
    made_here_.clear();
    if (doing == Doing::backward) ++backwards_;
    phase_ = doing;
    ++passes_;
  }

  MemoryTable& memory_;
  std::unordered_map<std::int32_t, Block> live_;  // by buffer
  std::vector<std::size_t> made_here_;            // in this backward, in this step
  Doing phase_ = Doing::unknown;
  int backwards_ = 0;
  int passes_ = 0;
};

/// Blocks that were there before the recording and stay throughout, of a rank that trains with Adam: of every size
/// there are three for each gradient of that size, or nothing is said. One of each three is a parameter, two are its
/// state; which of equal ones is which no figure depends on.
class AtStart {
 public:
  void add(std::size_t event, BufferId buffer) { there_[buffer.value] = event; }
  void released(BufferId buffer) { there_.erase(buffer.value); }
  void stepped_with_adam() { adam_ = true; }

  void settle(MemoryTable& memory, Rank rank, Memory kind) {
    if (!adam_) return;
    std::map<std::int64_t, std::vector<std::size_t>> by_size;
    for (const auto& [buffer, event] : there_) by_size[memory.delta_bytes[event]].push_back(event);
    const std::map<std::int64_t, std::size_t> gradients = most_gradients(memory, rank, kind);
    for (const auto& [bytes, count] : gradients)
      if (bytes >= kTelling && by_size[bytes].size() != kOfAdam * count) return;
    for (const auto& [bytes, count] : gradients) {
      const std::vector<std::size_t>& events = by_size[bytes];
      if (events.size() != kOfAdam * count) continue;
      for (std::size_t i = 0; i < events.size(); ++i)
        memory.category[events[i]] = i < count ? Category::parameter : Category::optimizer_state;
    }
  }

 private:
  static constexpr std::size_t kOfAdam = 3;
  /// Smaller blocks are of too many things to tell from their size that something is wrong.
  static constexpr std::int64_t kTelling = 1 << 20;

  /// How many gradients of a size lived at once, at the most.
  static std::map<std::int64_t, std::size_t> most_gradients(const MemoryTable& memory, Rank rank, Memory kind) {
    std::map<std::int64_t, std::size_t> live, most;
    for (std::size_t i = 0; i < memory.size(); ++i) {
      if (memory.rank[i] != rank || memory.memory[i] != kind || memory.category[i] != Category::gradient) continue;
      const std::int64_t bytes = memory.delta_bytes[i];
      if (bytes < 0) {
        --live[-bytes];
      } else {
        most[bytes] = std::max(most[bytes], ++live[bytes]);
      }
    }
    return most;
  }

  std::map<std::int32_t, std::size_t> there_;  // events, by buffer
  bool adam_ = false;
};

/// By stack: whether PyTorch's Adam is in it.
[[nodiscard]] std::vector<bool> of_adam(const Trace& trace) {
  std::vector<bool> of(trace.stacks.size());
  for (std::size_t i = 0; i < of.size(); ++i) {
    const StackNode& node = trace.stacks[i];
    if (node.caller.valid()) of[i] = of[static_cast<std::size_t>(node.caller.value)];
    if (!node.frame.valid()) continue;
    const string_view function = trace.name_of(trace.frame_of(node.frame).function);
    if (function == "_multi_tensor_adam" || function == "_single_tensor_adam" || function == "_multi_tensor_adamw" ||
        function == "_single_tensor_adamw")
      of[i] = true;
  }
  return of;
}

/// By stack: what one of its frames calls a category.
[[nodiscard]] std::vector<std::optional<Category>> said_categories(const Trace& trace) {
  std::vector<std::optional<Category>> of(trace.stacks.size());
  for (std::size_t i = 0; i < of.size(); ++i) {
    const StackNode& node = trace.stacks[i];
    if (node.caller.valid()) of[i] = of[static_cast<std::size_t>(node.caller.value)];
    if (!node.frame.valid()) continue;
    const StackFrame& frame = trace.frame_of(node.frame);
    if (trace.name_of(frame.file) != kCategoryFile) continue;
    for (int c = 0; c < kCategoryCount; ++c)
      if (trace.name_of(frame.function) == to_string(static_cast<Category>(c))) of[i] = static_cast<Category>(c);
  }
  return of;
}

/// Nothing is left to find out in a snapshot whose stacks say categories. Returns whether this is one.
bool take_said_categories(Trace& trace) {
  const std::vector<std::optional<Category>> said = said_categories(trace);
  bool any = false;
  for (std::size_t i = 0; i < trace.memory.size(); ++i) {
    const StackId stack = trace.memory.stack[i];
    if (!stack.valid() || !said[static_cast<std::size_t>(stack.value)]) continue;
    trace.memory.category[i] = *said[static_cast<std::size_t>(stack.value)];
    any = true;
  }
  return any;
}

/// What was there before the first event that was recorded.
void tell_start(Trace& trace, std::size_t recorded_from) {
  const std::vector<bool> adam = of_adam(trace);
  std::map<std::pair<Rank, Memory>, AtStart> starts;
  MemoryTable& memory = trace.memory;
  for (std::size_t i = 0; i < memory.size(); ++i) {
    AtStart& start = starts[{memory.rank[i], memory.memory[i]}];
    if (memory.delta_bytes[i] < 0) {
      start.released(memory.buffer[i]);
    } else if (i < recorded_from && memory.category[i] == Category::not_known && !memory.stack[i].valid()) {
      start.add(i, memory.buffer[i]);
    }
    if (memory.stack[i].valid() && adam[static_cast<std::size_t>(memory.stack[i].value)]) start.stepped_with_adam();
  }
  for (auto& [of, start] : starts) start.settle(memory, of.first, of.second);
}

}  // namespace

void recognise_categories(Trace& trace, std::size_t recorded_from) {
  if (trace.stacks.empty() || take_said_categories(trace)) return;
  const bool python_alone = std::ranges::all_of(
      trace.frames, [&](const StackFrame& frame) { return trace.name_of(frame.file).ends_with(".py"); });
  const std::vector<Deed> of = deeds(trace);
  std::map<std::pair<Rank, Memory>, Blocks> memories;
  MemoryTable& memory = trace.memory;
  for (std::size_t i = 0; i < memory.size(); ++i) {
    if (memory.category[i] != Category::not_known) continue;
    Blocks& blocks = memories.try_emplace({memory.rank[i], memory.memory[i]}, memory).first->second;
    const StackId stack = memory.stack[i];
    const Deed without_frames{.doing = python_alone && i >= recorded_from ? Doing::backward : Doing::unknown};
    const Deed deed = stack.valid() ? of[static_cast<std::size_t>(stack.value)] : without_frames;
    memory.delta_bytes[i] < 0 ? blocks.released(i, deed) : blocks.acquired(i, deed);
  }
  for (auto& [of_rank, blocks] : memories) blocks.end();
  tell_start(trace, recorded_from);
}

}  // namespace shard::import
