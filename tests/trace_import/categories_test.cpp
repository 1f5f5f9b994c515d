// Which category do blocks of a PyTorch program get, by the frames that asked for them and by what they outlive?
#include "traces/import/pytorch_categories.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "tests/trace_import/files.h"
#include "traces/holders.h"
#include "traces/import/import.h"

namespace shard::import {
namespace {

using Frames = std::vector<std::pair<std::string, std::string>>;  // file and function, the innermost first

const std::string kTorch = "/opt/venv/lib/python3.11/site-packages/torch/";
const Frames kMain = {{"train.py", "main"}};

Frames called(Frames inner, const Frames& by) {
  inner.insert(inner.end(), by.begin(), by.end());
  return inner;
}
Frames forward(const Frames& by = kMain) {
  return called({{"model.py", "forward"}, {kTorch + "nn/modules/module.py", "_call_impl"}}, by);
}
Frames backward() {
  return {{"??", "torch::autograd::generated::MmBackward0::apply(std::vector<at::Tensor>&&)"},
          {"??", "torch::autograd::Engine::thread_main(std::shared_ptr<GraphTask> const&)"}};
}
Frames accumulate() {
  return called({{"??", "torch::autograd::AccumulateGrad::apply(std::vector<at::Tensor>&&)"}}, backward());
}
Frames step() {
  return called({{kTorch + "optim/adamw.py", "_init_group"}, {kTorch + "optim/optimizer.py", "wrapper"}}, kMain);
}

/// Writes a program's blocks down as an importer would.
class Program {
 public:
  /// A block; its number.
  int alloc(const Frames& frames, std::int64_t bytes = 512) {
    sizes_.push_back(bytes);
    event(blocks_, bytes, frames);
    return blocks_++;
  }
  void free(int block, const Frames& frames) { event(block, -sizes_[static_cast<std::size_t>(block)], frames); }
  /// As with context="alloc": the free has the stack of the allocation.
  void free_as_allocated(int block) {
    const auto made = std::ranges::find(trace_.memory.buffer, BufferId{block}) - trace_.memory.buffer.begin();
    event(block, -512, {});
    trace_.memory.stack.back() = trace_.memory.stack[static_cast<std::size_t>(made)];
  }

  /// Categories by block; each of its events has the same one.
  [[nodiscard]] std::vector<Category> categories(std::size_t recorded_from = 0) {
    recognise_categories(trace_, recorded_from);
    std::vector<Category> of(static_cast<std::size_t>(blocks_), Category::not_known);
    for (std::size_t i = 0; i < trace_.memory.size(); ++i) {
      Category& category = of[static_cast<std::size_t>(trace_.memory.buffer[i].value)];
      if (trace_.memory.delta_bytes[i] > 0) category = trace_.memory.category[i];
      EXPECT_EQ(category, trace_.memory.category[i]) << "event " << i;
    }
    return of;
  }
  Trace& trace() { return trace_; }

 private:
  NameId name(const std::string& text) {
    trace_.names.push_back(text);
    return NameId{static_cast<std::int32_t>(trace_.names.size()) - 1};
  }
  StackId stack(const Frames& frames) {
    StackId stack;
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
      trace_.frames.push_back({.function = name(frame->second), .file = name(frame->first), .line = 1});
      trace_.stacks.push_back({FrameId{static_cast<std::int32_t>(trace_.frames.size()) - 1}, stack});
      stack = StackId{static_cast<std::int32_t>(trace_.stacks.size()) - 1};
    }
    return stack;
  }
  void event(int block, std::int64_t bytes, const Frames& frames) {
    trace_.memory.push_back({.rank = Rank{0},
                             .buffer = BufferId{block},
                             .delta_bytes = bytes,
                             .category = Category::not_known,
                             .time_ns = static_cast<std::int64_t>(trace_.memory.size()),
                             .stack = stack(frames)});
  }

  Trace trace_;
  std::vector<std::int64_t> sizes_;  // by block
  int blocks_ = 0;
};

TEST(Categories, OfATrainingStep) {
  Program program;
  const Frames moving = called({{kTorch + "nn/modules/module.py", "convert"}}, kMain);
  const int weight = program.alloc(moving);
  const int batch = program.alloc(kMain);
  const int hidden = program.alloc(forward());
  const int loss = program.alloc(kMain);
  const int temporary = program.alloc(backward());
  const int stolen = program.alloc(backward());
  program.free(loss, backward());
  program.free(temporary, backward());
  program.free(hidden, backward());
  const int accumulated = program.alloc(accumulate());
  const int state = program.alloc(step());
  const int scratch = program.alloc(step());
  program.free(scratch, step());
  program.free(stolen, kMain);
  program.free(batch, kMain);
  const std::vector<Category> is = program.categories();
  const auto at = [&](int block) { return is[static_cast<std::size_t>(block)]; };
  EXPECT_EQ(at(weight), Category::parameter);
  EXPECT_EQ(at(batch), Category::not_known);
  EXPECT_EQ(at(hidden), Category::activation);
  EXPECT_EQ(at(loss), Category::activation) << "autograd held it, though no module made it";
  EXPECT_EQ(at(temporary), Category::workspace);
  EXPECT_EQ(at(stolen), Category::gradient) << "outlived its backward";
  EXPECT_EQ(at(accumulated), Category::gradient);
  EXPECT_EQ(at(state), Category::optimizer_state);
  EXPECT_EQ(at(scratch), Category::workspace);
}

/// A step of Adam's after a backward with one gradient, and `there` blocks of its size before.
std::vector<Category> categories_of_start(int there, const std::string& optimizer) {
  Program program;
  for (int i = 0; i < there; ++i) (void)program.alloc({});
  (void)program.alloc(accumulate());
  (void)program.alloc(called({{kTorch + "optim/x.py", optimizer}, {kTorch + "optim/optimizer.py", "wrapper"}}, kMain));
  return program.categories(static_cast<std::size_t>(there));
}

TEST(Categories, BlocksThatWereThereAreThreeForEachGradientOfAdams) {
  using enum Category;
  std::vector<Category> three = categories_of_start(3, "_multi_tensor_adam");
  three.resize(3);
  EXPECT_EQ(three, (std::vector{parameter, optimizer_state, optimizer_state}));
  EXPECT_EQ(categories_of_start(4, "_multi_tensor_adam")[0], not_known) << "one is of something else";
  EXPECT_EQ(categories_of_start(3, "_multi_tensor_sgd")[0], not_known) << "whose state nobody knows";
}

TEST(Categories, WhatBackwardComputesAgainDoesNotEndIt) {
  Program program;
  const int early = program.alloc(backward());
  const int again = program.alloc(forward(backward()));
  program.free(early, backward());
  program.free(again, backward());
  const int gradient = program.alloc(backward());
  (void)program.alloc(kMain);
  const std::vector<Category> is = program.categories();
  EXPECT_EQ(is[static_cast<std::size_t>(early)], Category::workspace);
  EXPECT_EQ(is[static_cast<std::size_t>(again)], Category::activation);
  EXPECT_EQ(is[static_cast<std::size_t>(gradient)], Category::gradient);
}

TEST(Categories, FilesWithoutFoldersAreKnownByFunctionsThatPyTorchAloneHas) {
  Program program;
  (void)program.alloc({{"model.py", "forward"}, {"module.py", "_call_impl"}, {"train.py", "main"}});
  (void)program.alloc({{"linear.py", "__init__"}, {"train.py", "main"}});
  (void)program.alloc({{"/home/me/mytorch/nn/modules/module.py", "_call_impl"}, {"train.py", "main"}});
  EXPECT_EQ(program.categories(), (std::vector{Category::activation, Category::not_known, Category::not_known}));
}

TEST(Categories, WorkspacesOfLibrariesAreNoActivations) {
  Program program;
  const int workspace = program.alloc(
      called({{"??", "at::cuda::getNewWorkspace()"}, {"??", "at::cuda::getCurrentCUDABlasHandle()"}}, forward()));
  const int cache = program.alloc(forward()), saved = program.alloc(forward());
  for (int step = 0; step < 3; ++step) {
    (void)program.alloc(forward());
    (void)program.alloc(backward());
    if (step == 0) program.free(saved, backward());
  }
  const std::vector<Category> is = program.categories();
  EXPECT_EQ(is[static_cast<std::size_t>(workspace)], Category::workspace);
  EXPECT_EQ(is[static_cast<std::size_t>(cache)], Category::not_known);
  EXPECT_EQ(is[static_cast<std::size_t>(saved)], Category::activation);
}

TEST(Categories, FreesThatNameTheAllocationEndNoPhase) {
  Program program;
  const int first = program.alloc(forward()), second = program.alloc(forward());
  for (int i = 0; i < 5; ++i) {
    const int temporary = program.alloc(backward());
    if (i == 0) program.free_as_allocated(first);
    program.free_as_allocated(temporary);
  }
  program.free_as_allocated(second);
  const int gradient = program.alloc(backward());
  (void)program.alloc(kMain);
  const std::vector<Category> is = program.categories();
  EXPECT_EQ(is[static_cast<std::size_t>(first)], Category::activation);
  EXPECT_EQ(is[static_cast<std::size_t>(second)], Category::activation);
  EXPECT_EQ(is[static_cast<std::size_t>(gradient)], Category::gradient);
  EXPECT_EQ(std::ranges::count(is, Category::workspace), 5) << "the same backward made more afterwards";
}

TEST(Categories, GradientsGivenBackByWhomNobodyKnowsAreNoTemporaries) {
  const Frames engine = {{"??", "torch::autograd::Engine::thread_main()"}};
  const auto first = [&](const Frames& then) {
    Program program;
    const int given_back = program.alloc(engine);
    program.free_as_allocated(given_back);
    (void)program.alloc(then);
    (void)program.alloc(engine);
    return program.categories()[0];
  };
  EXPECT_EQ(first(engine), Category::workspace);
  EXPECT_EQ(first(forward()), Category::not_known) << "zero_grad() may have given it back";
  EXPECT_EQ(first(called({{kTorch + "autograd/__init__.py", "_make_grads"}}, backward())), Category::not_known)
      << "another backward begins";
}

TEST(Categories, WithoutFramesOfCppAutogradsThreadsHaveNone) {
  Program program;
  const int before = program.alloc({});
  const int saved = program.alloc(kMain);
  const int gradient = program.alloc({});
  program.free(saved, {});
  (void)program.alloc(kMain);
  const std::vector<Category> is = program.categories(1);
  EXPECT_EQ(is[static_cast<std::size_t>(before)], Category::not_known);
  EXPECT_EQ(is[static_cast<std::size_t>(saved)], Category::activation);
  EXPECT_EQ(is[static_cast<std::size_t>(gradient)], Category::gradient);
}

TEST(Categories, BlocksWithoutFramesStayNotKnownAndEndNoPhase) {
  Program program;
  const int gradient = program.alloc(backward());
  const int unknown = program.alloc({});
  program.free(gradient, {});
  (void)program.alloc(step());
  const std::vector<Category> is = program.categories();
  EXPECT_EQ(is[static_cast<std::size_t>(gradient)], Category::not_known);
  EXPECT_EQ(is[static_cast<std::size_t>(unknown)], Category::not_known);
}

TEST(Categories, AStepOfAnOwnOptimizerMakesNobodyKnowsWhat) {
  Program program;
  (void)program.alloc(called({{"mine.py", "step"}, {kTorch + "optim/optimizer.py", "wrapper"}}, kMain));
  (void)program.alloc({{"mine.py", "step"}, {"optimizer.py", "wrapper"}, {"train.py", "main"}});
  (void)program.alloc({{"adamw.py", "_init_group"}, {"optimizer.py", "wrapper"}, {"train.py", "main"}});
  (void)program.alloc(kMain);
  EXPECT_EQ(program.categories(),
            (std::vector{Category::not_known, Category::not_known, Category::optimizer_state, Category::not_known}));
}

TEST(Categories, ThatAProducerToldAreKept) {
  Program program;
  (void)program.alloc(forward());
  program.trace().memory.category[0] = Category::input;
  EXPECT_EQ(program.categories(), std::vector{Category::input});
}

constexpr std::int64_t kMiB = 1 << 20;

/// `there` blocks of each size before the recording; then what `record` does. Categories of all blocks.
template <typename Record>
std::vector<Category> with_start(const std::vector<std::int64_t>& there, const Record& record) {
  Program program;
  for (const std::int64_t bytes : there) (void)program.alloc({}, bytes);
  record(program);
  return program.categories(there.size());
}

TEST(Categories, AnOwnOptimizerThatReplacesParametersKeepsStateBeside) {
  const Frames own = {{"mine.py", "step"}, {kTorch + "optim/optimizer.py", "wrapper"}, {"train.py", "main"}};
  const Frames assigning = called({{"", "torch::autograd::VariableHooks::set_data(at::TensorBase const&)"}}, own);
  const auto after_a_step = [&](const Frames& giving_back) {
    Program program;
    const int old = program.alloc(kMain, 4 * kMiB);
    (void)program.alloc(own, 4 * kMiB);  // an average
    (void)program.alloc(own, 4 * kMiB);  // the parameter anew
    (void)program.alloc(own, kMiB);      // of another size
    program.free(old, giving_back);
    (void)program.alloc(forward());
    std::vector<Category> is = program.categories();
    is.pop_back();
    return is;
  };
  using enum Category;
  EXPECT_EQ(after_a_step(assigning), (std::vector{parameter, optimizer_state, parameter, not_known}));
  EXPECT_EQ(after_a_step(own), (std::vector{not_known, not_known, not_known, not_known}))
      << "nothing says that a parameter was replaced";
}

TEST(Categories, BlocksThatWereThereAndAreAsLargeAsCublasWorkspacesAreThese) {
  constexpr std::int64_t kDefault = 8'519'680, kAsked = 32 * kMiB;
  const Frames calling = {{"??", "at::cuda::getNewWorkspace()"}, {"model.py", "f"}};
  const auto first_of = [&](const std::vector<std::int64_t>& there, const Frames& frames, std::int64_t bytes) {
    return with_start(there, [&](Program& program) { (void)program.alloc(frames, bytes); })[0];
  };
  EXPECT_EQ(first_of({kDefault, kDefault}, kMain, 512), Category::workspace);
  EXPECT_EQ(first_of({kAsked}, calling, kAsked), Category::workspace);
  EXPECT_EQ(first_of({kAsked}, kMain, kAsked), Category::not_known) << "none of the library's has that size";
  EXPECT_EQ(first_of({kDefault, kDefault, kDefault}, kMain, 512), Category::not_known) << "more than there are handles";
  EXPECT_EQ(first_of({kDefault}, accumulate(), kDefault), Category::not_known) << "a parameter has that size";
}

Frames to_device(const Frames& by, const std::string& arguments = "at::Tensor const&, c10::Device, bool, bool") {
  return called({{"p.cpp", "torch::autograd::dispatch_to(" + arguments + ")"}}, by);
}

TEST(Categories, AdamsStateTellsThatThereIsAParameterOfItsSize) {
  const Frames making = called({{kTorch + "optim/adam.py", "_init_group"}, {kTorch + "optim/x.py", "wrapper"}}, kMain);
  const auto of_those = [&](std::size_t states, const std::vector<std::pair<Frames, std::int64_t>>& before) {
    Program program;
    for (const auto& [frames, bytes] : before) (void)program.alloc(frames, bytes);
    for (std::size_t i = 0; i < states; ++i) (void)program.alloc(making, 4 * kMiB);
    (void)program.alloc(forward());
    std::vector<Category> is = program.categories();
    is.resize(before.size());
    return is;
  };
  using enum Category;
  EXPECT_EQ(of_those(2, {{kMain, 4 * kMiB}, {kMain, 2 * kMiB}}), (std::vector{parameter, not_known}));
  EXPECT_EQ(of_those(2, {{kMain, 4 * kMiB}, {{{"b.py", "g"}}, 4 * kMiB}}), (std::vector{not_known, not_known}))
      << "which of the two it is, nothing tells";
  EXPECT_EQ(of_those(3, {{kMain, 4 * kMiB}}), std::vector{not_known}) << "three are no pairs";
}

TEST(Categories, WhatIsCopiedToTheDeviceIsAnInput) {
  const auto first = [&](const Frames& frames, const Frames& then, std::int64_t bytes) {
    Program program;
    (void)program.alloc(frames, 4 * kMiB);
    (void)program.alloc(then, bytes);
    return program.categories()[0];
  };
  EXPECT_EQ(first(to_device(kMain), kMain, 512), Category::input);
  EXPECT_EQ(first(to_device(kMain, "at::Tensor const&, c10::ScalarType, bool, bool"), kMain, 512), Category::not_known)
      << "a conversion copies from where it is";
  EXPECT_EQ(first(to_device(kMain), accumulate(), 4 * kMiB), Category::not_known)
      << "its gradient makes it a parameter";
  EXPECT_EQ(first(to_device(called({{kTorch + "nn/modules/module.py", "_apply"}}, kMain)), kMain, 512),
            Category::parameter);
}

/// Of the first of blocks that were there, with `kept` blocks of a forward.
Category of_a_forward(const std::vector<std::int64_t>& there, int kept, const Frames& last) {
  return with_start(there, [&](Program& program) {
    for (int i = 0; i < kept; ++i) (void)program.alloc(forward());
    (void)program.alloc(last);
  })[0];
}

TEST(Categories, BlocksThatWereThereAreParametersOfForwardsThatKeepAsMany) {
  std::vector<std::int64_t> there(7, 4 * kMiB);
  there.insert(there.end(), 5, 2 * kMiB);
  EXPECT_EQ(of_a_forward(there, 12, kMain), Category::parameter);
  EXPECT_EQ(of_a_forward(there, 11, kMain), Category::not_known) << "no gradients: caches are as likely";
  EXPECT_EQ(of_a_forward(there, 12, backward()), Category::not_known) << "may have gradients and state beside";
  const std::vector<std::int64_t> six(6, 4 * kMiB), eight(8, 4 * kMiB), nine(9, 4 * kMiB);
  EXPECT_EQ(of_a_forward(six, 12, kMain), Category::not_known)
      << "two parameters with Adam's state, or three with momenta";
  EXPECT_EQ(of_a_forward(eight, 12, kMain), Category::not_known) << "four with momenta";
  EXPECT_EQ(of_a_forward(nine, 12, kMain), Category::not_known) << "three with Adam's state";
}

/// Bytes of each category at the peak of a public recording.
void expect_at_the_peak(const char* name, const std::array<std::int64_t, kCategoryCount>& bytes) {
  const auto path = files::recording(name);
  SKIP_WITHOUT(path);
  const Result<LoadedTrace> loaded = load_any(path);
  ASSERT_TRUE(loaded) << to_string(loaded.error());
  const Result<Held> held = held_at(loaded->trace, {});
  ASSERT_TRUE(held) << to_string(held.error());
  EXPECT_EQ(held->category_bytes, bytes);
  EXPECT_TRUE(held->categories_inferred);
}

// An image that Adam changes, and the image that it began with.
TEST(Categories, OfARecordingThatChangesAnImage) {
  expect_at_the_peak("pytorch-snapshot-small.pickle",
                     {7864320, 0, 7864320, 0, 15728640, 29892608, 40633344, 0, 7864320, 263168});
}

// Forwards of a transformer of 3,406,809,600 parameters in fp32: 13,627,238,400 bytes, and what blocks round up.
TEST(Categories, OfARecordingOfForwardsAlone) {
  expect_at_the_peak("pytorch-snapshot-transformer-forward.pickle",
                     {13761511424, 0, 0, 0, 0, 12589735936, 33554432, 0, 0, 3295232});
}

}  // namespace
}  // namespace shard::import
