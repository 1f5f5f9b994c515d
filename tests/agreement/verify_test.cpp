// Is what parts two runs found, and named by step, tensor and rank; and nothing where nothing does?
#include "executor/train/agreement.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/strategy/number_class.h"
#include "tests/agreement/random_runs.h"
#include "tests/agreement/tap.h"

namespace shard {
namespace {

using train::Agreement;
using train::FirstDifference;
using train::StateKind;

/// One element that a rank gets wrong of what a collective leaves it.
struct Fault {
  std::int32_t rank = 0;
  std::int64_t step = 1;  ///< from 1
  OpId op{};
  bool in_shard = false;  ///< of what a reduce-scatter leaves; else of the whole
  std::int64_t element = 5;
};

/// Passes everything on, and changes that element once the call is complete.
class Faulty : public Tap {
 public:
  Faulty(std::unique_ptr<Communicator> below, const Fault& fault)
      : Tap(*below), own_(std::move(below)), fault_(fault) {}
  [[nodiscard]] Result<Ticket> start(const CollectiveRequest& request) override {
    Result<Ticket> ticket = Tap::start(request);
    if (request.op == fault_.op && ++starts_ == fault_.step && ticket) {
      const CommSegment& segment = request.segments.front();
      at_ = (fault_.in_shard ? segment.shard_offset : segment.full_offset) + 4 * fault_.element;
      ticket_ = *ticket;
    }
    return ticket;
  }
  [[nodiscard]] Result<bool> poll(Ticket ticket) override {
    Result<bool> done = Tap::poll(ticket);
    if (!done || !*done || ticket_ != ticket) return done;
    ticket_.reset();
    std::uint32_t bits = 0;
    std::memcpy(&bits, arena.data() + at_, sizeof bits);
    bits ^= 0x3F00'0000U;  // zero becomes a half
    std::memcpy(arena.data() + at_, &bits, sizeof bits);
    return done;
  }

 private:
  std::unique_ptr<Communicator> own_;
  Fault fault_;
  std::int64_t starts_ = 0;
  std::int64_t at_ = 0;
  std::optional<Ticket> ticket_;
};

/// Against stage 0 of its class; `changed`: what the strategy's own session is told otherwise.
Result<Agreement> verified(const plan::ModelPtr& model, const plan::Strategy& s, const train::SessionOptions& session,
                           const std::optional<Fault>& fault = std::nullopt,
                           const std::function<void(train::SessionOptions&)>& changed = nullptr) {
  const Result<plan::PlanSet> reference = plan::compile(model, plan::unsharded(s));
  if (!reference) return reference.error();
  const Result<plan::PlanSet> plans = plan::compile(model, s);
  if (!plans) return plans.error();
  const BatchShape shape{.batch = s.micro_batch, .sequence = s.sequence, .seed = session.seed};
  return train::compare_runs(
      {.reference = &*reference,
       .plans = &*plans,
       .run_reference =
           [&](const plan::PlanSet& of, const train::SessionOf& session_of) {
             return train::run_in_process(of, make_in_process(static_cast<int>(of.class_of_rank.size())), "random",
                                          shape, session_of);
           },
       .run =
           [&](const plan::PlanSet& of, const train::SessionOf& session_of) {
             auto communicators = make_in_process(static_cast<int>(of.class_of_rank.size()));
             if (fault) {
               auto& own = communicators[static_cast<std::size_t>(fault->rank)];
               own = std::make_unique<Faulty>(std::move(own), *fault);
             }
             return train::run_in_process(of, communicators, "random", shape, [&](std::int32_t rank) {
               train::SessionOptions options = session_of(rank);
               if (changed) changed(options);
               return options;
             });
           },
       .session = session});
}

class RandomStrategies : public testing::TestWithParam<unsigned> {};

TEST_P(RandomStrategies, AreThoseOfStageZero) {
  RandomClass drawn(1000 + GetParam());
  for (int tries = 0; tries < 50; ++tries) {
    const std::optional<plan::Strategy> s = drawn.draw(plan::Device::cpu);
    if (!s) continue;
    const std::string what = drawn.model()->name + ' ' + to_string(*s);
    EXPECT_TRUE(plan::has_bits_of_class(*s)) << what;
    const Result<Agreement> agreement = verified(drawn.model(), *s, random_session(GetParam()));
    ASSERT_TRUE(agreement) << what << ": " << to_string(agreement.error());
    EXPECT_FALSE(agreement->first) << what << ": step " << agreement->first->step;
    EXPECT_EQ(agreement->sha256, agreement->reference_sha256) << what;
    EXPECT_EQ(agreement->losses.size(), 3U);
    return;
  }
  FAIL() << "none was drawn";
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomStrategies, testing::Range(0U, VERIFIED_STRATEGIES));

plan::Strategy strategy_of_stage(std::int32_t stage, std::int32_t world) {
  return {.world_size = world, .stage = stage, .micro_batch = 1, .global_batch = 4, .sequence = 8};
}

/// The first collective of that kind and part in a steady step, of a flat of that many parameters, and that flat.
struct Call {
  OpId op{};
  const plan::Flat* flat = nullptr;
};
Call call_of(const plan::Plan& plan, Collective kind, Part part, std::size_t parameters = 1) {
  for (const plan::Op& op : plan.find(Phase::steady_step)->ops) {
    const auto* const call = std::get_if<plan::Communicate>(&op.action);
    if (call == nullptr || call->kind != kind || op.part != part) continue;
    if (!call->unit.valid()) continue;
    const std::int32_t flat = plan.units[static_cast<std::size_t>(call->unit.value)].flats.front();
    const plan::Flat& found = plan.flats[static_cast<std::size_t>(flat)];
    if (found.items.size() >= parameters) return {.op = op.id, .flat = &found};
  }
  ADD_FAILURE() << "no " << to_string(kind);
  return {};
}

struct Expected {
  std::int64_t step;
  StateKind kind;
  std::int32_t rank;
  std::string tensor;
  std::int64_t element;
};

/// Element `at` of the flat.
Expected expected_at(const plan::Plan& plan, const plan::Flat& flat, std::int64_t at, std::int64_t step, StateKind kind,
                     std::int32_t rank) {
  const auto ranges = plan::param_ranges(flat, Elems{at}, Elems{at + 1});
  if (ranges.size() != 1) {
    ADD_FAILURE() << at << " is padding";
    return {};
  }
  return {.step = step,
          .kind = kind,
          .rank = rank,
          .tensor = plan.model->parameters[static_cast<std::size_t>(ranges[0].param.value)].name,
          .element = ranges[0].first.count()};
}

void expect_first(const Result<Agreement>& agreement, const model::Model& model, const Expected& expected) {
  ASSERT_TRUE(agreement) << to_string(agreement.error());
  ASSERT_TRUE(agreement->first);
  const FirstDifference& first = *agreement->first;
  EXPECT_EQ(first.step, expected.step);
  EXPECT_EQ(first.rank, expected.rank);
  ASSERT_TRUE(first.tensor);
  EXPECT_STREQ(to_string(first.tensor->kind), to_string(expected.kind));
  EXPECT_EQ(model.parameters[static_cast<std::size_t>(first.tensor->param)].name, expected.tensor);
  EXPECT_EQ(first.element, expected.element);
  EXPECT_NE(first.expected, first.found);
  EXPECT_NE(agreement->sha256, agreement->reference_sha256);
}

/// Of one rank's copy of a whole gradient: the others train on as they should.
TEST(Verify, NamesTheRankWhoseGradientIsWrong) {
  const auto model = load_model("gpt2-nano");
  const plan::Strategy s = strategy_of_stage(0, 2);
  const auto plans = plan::compile(model, s);
  ASSERT_TRUE(plans);
  const plan::Plan& plan = plans->of_rank(1);
  const Call call = call_of(plan, Collective::all_reduce, Part::reduce);
  ASSERT_NE(call.flat, nullptr);
  expect_first(verified(model, s, session_of(3), Fault{.rank = 1, .step = 2, .op = call.op}), *model,
               expected_at(plan, *call.flat, 5, 2, StateKind::first_moment, 1));
}

/// Where a gradient is summed by one rank alone, all see what it made of it.
TEST(Verify, NamesTheOwnerOfAShard) {
  const auto model = load_model("gpt2-nano");
  const plan::Strategy s = strategy_of_stage(2, 4);
  const auto plans = plan::compile(model, s);
  ASSERT_TRUE(plans);
  const plan::Plan& plan = plans->of_rank(2);
  const Call call = call_of(plan, Collective::reduce_scatter, Part::reduce);
  ASSERT_NE(call.flat, nullptr);
  const std::int64_t at = 2 * call.flat->shard(4).count() + 5;
  expect_first(verified(model, s, session_of(3), Fault{.rank = 2, .step = 3, .op = call.op, .in_shard = true}), *model,
               expected_at(plan, *call.flat, at, 3, StateKind::first_moment, 2));
}

/// A refresh that goes wrong leaves moments and the other ranks' copies as they are.
TEST(Verify, NamesAStaleCopy) {
  const auto model = load_model("gpt2-nano");
  const plan::Strategy s = strategy_of_stage(1, 4);
  const auto plans = plan::compile(model, s);
  ASSERT_TRUE(plans);
  const plan::Plan& plan = plans->of_rank(3);
  const Call call = call_of(plan, Collective::all_gather, Part::gather);
  ASSERT_NE(call.flat, nullptr);
  expect_first(verified(model, s, session_of(2), Fault{.rank = 3, .step = 1, .op = call.op}), *model,
               expected_at(plan, *call.flat, 5, 1, StateKind::value, 3));
}

/// What a rank computes with is wrong for one step: all of its gradients are.
TEST(Verify, FindsAWrongGather) {
  const auto model = load_model("gpt2-nano");
  const plan::Strategy s = strategy_of_stage(3, 2);
  const auto plans = plan::compile(model, s);
  ASSERT_TRUE(plans);
  const plan::Plan& plan = plans->of_rank(1);
  const Call call = call_of(plan, Collective::all_gather, Part::gather, 10);  // a block, all of which every token meets
  ASSERT_NE(call.flat, nullptr);
  const auto agreement = verified(model, s, session_of(3), Fault{.rank = 1, .step = 2, .op = call.op});
  ASSERT_TRUE(agreement) << to_string(agreement.error());
  ASSERT_TRUE(agreement->first && agreement->first->tensor);
  EXPECT_EQ(agreement->first->step, 2);
  EXPECT_EQ(agreement->first->tensor->kind, StateKind::first_moment);
  EXPECT_GT(agreement->first->parameters, 10);
}

TEST(Verify, FindsAStepByAnotherRule) {
  const auto model = load_model("gpt2-nano");
  const auto agreement = verified(
      model, strategy_of_stage(2, 2), session_of(3), std::nullopt,
      [](train::SessionOptions& o) { o.learning_rate = [](std::int64_t step) { return step == 1 ? 2e-3 : 1e-3; }; });
  expect_first(agreement, *model,
               {.step = 2,
                .kind = StateKind::value,
                .rank = agreement ? agreement->first->rank : -1,
                .tensor = model->parameters[0].name,
                .element = agreement ? agreement->first->element : -1});
  EXPECT_EQ(agreement->first->parameters, static_cast<std::int64_t>(model->parameters.size()));
}

TEST(Verify, FindsOtherData) {
  const auto model = load_model("gpt2-nano");
  const auto agreement = verified(model, strategy_of_stage(0, 1), session_of(2), std::nullopt,
                                  [](train::SessionOptions& o) { o.seed += 1; });
  ASSERT_TRUE(agreement) << to_string(agreement.error());
  ASSERT_TRUE(agreement->first);
  EXPECT_EQ(agreement->first->step, 1);
  EXPECT_NE(agreement->losses.front(), agreement->reference_losses.front());
}

TEST(NumberClass, KeepsWhatNumbersDependOn) {
  plan::Strategy s = strategy_of_stage(3, 8);
  s.precision = plan::Precision::bf16;
  s.clip_norm = true;
  EXPECT_EQ(plan::unsharded(s).world_size, 1);
  EXPECT_EQ(plan::unsharded(s).stage, 0);
  EXPECT_EQ(plan::unsharded(s).precision, plan::Precision::bf16);
  EXPECT_TRUE(plan::unsharded(s).clip_norm);
  s.tensor_parallel = 2;
  EXPECT_EQ(plan::unsharded(s).world_size, 2);
  EXPECT_TRUE(plan::has_bits_of_class(s));
  s.reproducible = false;
  EXPECT_FALSE(plan::has_bits_of_class(s));
  EXPECT_FALSE(plan::has_bits_of_class(plan::Strategy{.world_size = 3, .global_batch = 3}));
  s.predivide = 2;
  EXPECT_EQ(plan::unsharded(s).world_size, 8);
}

}  // namespace
}  // namespace shard
