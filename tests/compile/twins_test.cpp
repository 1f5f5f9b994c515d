// Does a class that takes lifetimes, edges and offsets from its twin get what it would have got by itself, and does the
// hash see where it differs?
#include "sim/compile/twins.h"

#include <functional>
#include <set>
#include <string>

#include "sim/compile/passes/passes.h"
#include "sim/ir/hash.h"
#include "tests/compile/random_cases.h"
#include "tests/ir/lists.h"

namespace shard::plan {
namespace {

/// The plan of one class of the set, behind the pass schedule, made without looking at the other classes.
Draft scheduled(const Plan& like) {
  Draft plan = build(like.model, like.strategy, like.rank);
  plan = tensor_parallel(accumulate(recompute(differentiate(std::move(plan)))));
  plan = optimize(shard(std::move(plan)));
  plan.placed = like.placed;
  return schedule(place(std::move(plan)));
}

void expect_equal(const Plan& own, const Plan& taken) {
  for (int m = 0; m < kMemoryCount; ++m) EXPECT_EQ(own.arena_bytes[m], taken.arena_bytes[m]);
  ASSERT_EQ(own.buffers.size(), taken.buffers.size());
  for (std::size_t b = 0; b < own.buffers.size(); ++b)
    EXPECT_EQ(own.buffers[b].offset, taken.buffers[b].offset) << own.buffers[b].name;
  ASSERT_EQ(own.phases.size(), taken.phases.size());
  for (std::size_t p = 0; p < own.phases.size(); ++p) {
    ASSERT_EQ(own.phases[p].ops.size(), taken.phases[p].ops.size());
    for (std::size_t i = 0; i < own.phases[p].ops.size(); ++i) {
      const Op& a = own.phases[p].ops[i];
      const Op& b = taken.phases[p].ops[i];
      EXPECT_EQ(a.id, b.id);
      EXPECT_EQ(a.operands, b.operands) << a.name;
      EXPECT_EQ(a.dependencies, b.dependencies) << a.name;
      EXPECT_EQ(a.acquire, b.acquire) << a.name;
      EXPECT_EQ(a.release, b.release) << a.name;
    }
  }
}

TEST(Twins, GetWhatTheyWouldHaveGotByThemselves) {
  std::int64_t twins = 0;
  for (unsigned seed = 7000; seed < 7300; ++seed) {
    RandomCases random(seed);
    const ModelPtr model = random.model();
    const Strategy s = random.strategy(*model);
    const Result<PlanSet> set = compile(model, s);
    if (!set) continue;
    SCOPED_TRACE(to_string(s));
    for (std::size_t c = 1; c < set->classes.size() && c < 4; ++c) {
      const Plan& taken = set->classes[c];
      expect_equal(allocate(order(scheduled(taken))), taken);
      twins += taken.pool == set->classes.front().pool ? 1 : 0;
    }
  }
  EXPECT_GT(twins, 10);
}

/// Large enough for threads, and with ranks whose last shard is all padding, so that they are nobody's twins.
TEST(Twins, ClassesThatAreNoneAreAllocatedBesideEachOther) {
  Strategy s;
  s.world_size = 8;
  s.stage = 3;
  s.unit = UnitKind::chunk;
  s.chunk_elems = Elems{512};
  s.global_batch = 8 * 15;
  s.sequence = 8;
  const PlanSet set = compiled(small_gpt2(), s);
  ASSERT_TRUE(is_worth_a_thread(set.classes.front()));
  std::set<const Pool*> pools;
  for (const Plan& taken : set.classes) {
    pools.insert(taken.pool.get());
    expect_equal(allocate(order(scheduled(taken))), taken);
  }
  EXPECT_GE(pools.size(), 2U);
}

/// Two classes that are twins: their last chunk is cut in a whole and a padded part.
PlanSet twins() {
  Strategy s;
  s.world_size = 2;
  s.stage = 3;
  s.unit = UnitKind::chunk;
  s.chunk_elems = Elems{1024};
  s.global_batch = 2;
  s.sequence = 8;
  return compiled(small_gpt2(), s);
}

TEST(Twins, ADifferenceInWhatEdgesOrOffsetsAreMadeFromMakesNone) {
  const PlanSet set = twins();
  ASSERT_EQ(set.classes.size(), 2U);
  const std::vector<Draft> alike{scheduled(set.classes[0]), scheduled(set.classes[1])};
  ASSERT_EQ(first_twins(alike), (std::vector<std::size_t>{0, 0}));
  const auto op_of = [](Plan& plan) -> Op& { return plan.find(Phase::steady_step)->ops[20]; };
  const std::vector<std::function<void(Plan&)>> changes{
      [&](Plan& plan) { op_of(plan).stream = Stream::copy_in; },
      [&](Plan& plan) { op_of(plan).part = Part::reduce; },
      [&](Plan& plan) { edit(op_of(plan).operands)[0].buffer = BufferId{0}; },
      [&](Plan& plan) { edit(op_of(plan).operands).back().access = Access::update; },
      [&](Plan& plan) { edit(op_of(plan).operands).back().fresh = !op_of(plan).operands.back().fresh; },
      [&](Plan& plan) { edit(op_of(plan).operands).pop_back(); },
      [&](Plan& plan) { plan.find(Phase::steady_step)->ops.pop_back(); },
      [&](Plan& plan) { plan.buffer(op_of(plan).operands.back().buffer).bytes += Bytes{64}; },
      [&](Plan& plan) { plan.buffer(op_of(plan).operands.back().buffer).memory = Memory::host; },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    std::vector<Draft> plans = alike;
    changes[i](plans[1]);
    EXPECT_EQ(first_twins(plans), (std::vector<std::size_t>{0, 1})) << "change " << i;
  }
}

TEST(Twins, TheHashSeesEveryDifferenceOfALaterClass) {
  const PlanSet set = twins();
  ASSERT_EQ(set.hash, hash_of(set.classes, set.class_of_rank));
  const auto ops_of = [](Plan& plan) -> std::vector<Op>& { return plan.find(Phase::steady_step)->ops; };
  const std::vector<std::function<void(Plan&)>> changes{
      [&](Plan& plan) { ops_of(plan)[20].name = "other"; },
      [&](Plan& plan) { ops_of(plan)[20].part = Part::reduce; },
      [&](Plan& plan) { ops_of(plan)[20].stream = Stream::copy_in; },
      [&](Plan& plan) { ops_of(plan)[20].micro_step = 7; },
      [&](Plan& plan) { edit(ops_of(plan)[20].operands)[0].offset += 64; },
      [&](Plan& plan) { edit(ops_of(plan)[20].operands)[0].rank_stride += 64; },
      [&](Plan& plan) { edit(ops_of(plan)[20].acquire).push_back(BufferId{0}); },
      [&](Plan& plan) { edit(ops_of(plan)[20].release).push_back(BufferId{0}); },
      [&](Plan& plan) { edit(ops_of(plan)[20].dependencies).push_back(OpId{0}); },
      [&](Plan& plan) { ops_of(plan)[20].action = ZeroState{}; },
      [&](Plan& plan) { ops_of(plan).erase(ops_of(plan).begin() + 20); },
      [&](Plan& plan) { ops_of(plan).pop_back(); },
      [&](Plan& plan) { ops_of(plan).push_back(ops_of(plan).back()); },
      [&](Plan& plan) { plan.arena_bytes[0] += Bytes{64}; },
  };
  std::set<std::string> hashes{set.hash};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    std::vector<Plan> classes = set.classes;
    changes[i](classes[1]);
    EXPECT_TRUE(hashes.insert(hash_of(classes, set.class_of_rank)).second) << "change " << i;
  }
}

}  // namespace
}  // namespace shard::plan
