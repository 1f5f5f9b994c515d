// What holds for every plan, whatever the model and the strategy?
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "sim/check/verify.h"
#include "sim/ir/control_block.h"
#include "sim/ir/effects.h"
#include "sim/memory/arena.h"
#include "sim/target/workspace.h"
#include "tests/compile/random_cases.h"
#include "tests/ir/lists.h"

namespace shard::plan {
namespace {

void for_random_plans(unsigned first_seed, unsigned cases,
                      const std::function<void(const ModelPtr&, const Strategy&, const PlanSet&)>& check) {
  for (unsigned seed = first_seed; seed < first_seed + cases; ++seed) {
    RandomCases random(seed);
    const ModelPtr model = random.model();
    const Strategy strategy = random.strategy(*model);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + to_string(strategy));
    check(model, strategy, compiled(model, strategy));
    if (testing::Test::HasFailure()) return;
  }
}

TEST(PlanProperties, EveryPlanPassesTheVerifier) {
  for_random_plans(1, 80, [](const ModelPtr&, const Strategy&, const PlanSet& plans) {
    const Result<void> ok = verify(plans);
    EXPECT_TRUE(ok) << to_string(ok.error());
  });
}

TEST(PlanProperties, EveryPlanForGpusPassesTheVerifier) {
  for_random_plans(500, 80, [](const ModelPtr& model, Strategy strategy, const PlanSet&) {
    strategy.device = Device::cuda;
    const Result<void> ok = verify(compiled(model, strategy));
    EXPECT_TRUE(ok) << to_string(ok.error());
  });
}

TEST(PlanProperties, IdsNameTheSameOpInEveryClass) {
  for_random_plans(1000, 80, [](const ModelPtr&, const Strategy&, const PlanSet& plans) {
    std::map<std::int32_t, std::string> names;
    for (const Plan& plan : plans.classes)
      for (const PhaseOps& phase : plan.phases)
        for (const Op& op : phase.ops) EXPECT_EQ(names.try_emplace(op.id.value, op.name).first->second, op.name);
  });
}

// So what fits does not depend on whether a run ends with a digest.
TEST(PlanProperties, TheDigestNeedsNoMoreThanTheSteps) {
  for_random_plans(7000, 80, [](const ModelPtr&, const Strategy& strategy, const PlanSet& plans) {
    for (const Plan& plan : plans.classes) {
      std::array<std::int64_t, kMemoryCount> digest{};
      std::array<std::int64_t, kMemoryCount> others{};
      for (const PhaseOps& phase : plan.phases)
        for (const Op& op : phase.ops)
          for (BufferId b : op.acquire) {
            const Buffer& buffer = plan.buffer(b);
            std::int64_t& extent =
                (phase.phase == Phase::digest ? digest : others)[static_cast<std::size_t>(buffer.memory)];
            extent = std::max(extent, buffer.offset + buffer.bytes.count());
          }
      for (std::size_t m = 0; m < kMemoryCount; ++m) EXPECT_LE(digest[m], others[m]) << to_string(strategy) << ' ' << m;
    }
  });
}

TEST(PlanProperties, TheArenaIsWhatTheLedgerReachesAndAtLeastTheLivePeak) {
  for_random_plans(2000, 80, [](const ModelPtr&, const Strategy&, const PlanSet& plans) {
    const Plan& plan = plans.classes.back();
    std::array<ArenaLedger, kMemoryCount> ledgers{ArenaLedger(Memory::device), ArenaLedger(Memory::host),
                                                  ArenaLedger(Memory::disk), ArenaLedger(Memory::pinned)};
    const auto ledger_of = [&](BufferId b) -> ArenaLedger& {
      return ledgers[static_cast<std::size_t>(plan.buffer(b).memory)];
    };
    for (const PhaseOps& phase : plan.phases)
      for (const Op& op : phase.ops) {
        for (BufferId b : op.acquire) {
          const Buffer& buffer = plan.buffer(b);
          const Result<void> ok = ledger_of(b).acquire(b, Bytes{buffer.offset}, buffer.bytes, buffer.category);
          ASSERT_TRUE(ok) << to_string(ok.error());
        }
        for (BufferId b : op.release) ASSERT_TRUE(ledger_of(b).release(b));
      }
    for (std::size_t m = 0; m < ledgers.size(); ++m) {
      EXPECT_EQ(ledgers[m].extent(), plan.arena_bytes[m]) << m;
      EXPECT_GE(plan.arena_bytes[m], ledgers[m].live_peak()) << m;
    }
  });
}

/// Calls and bytes of a steady step, by kind.
using Calls = std::array<std::pair<std::int64_t, std::int64_t>, kCollectiveCount>;

Calls calls_of(const Plan& plan) {
  Calls calls{};
  for (const Op& op : plan.find(Phase::steady_step)->ops)
    if (const std::optional<Sends> sends = effects(plan, op).sends) {
      auto& [count, bytes] = calls[static_cast<std::size_t>(sends->kind)];
      ++count;
      bytes += sends->bytes.count();
    }
  return calls;
}

/// Stages 0 to 2 need no schedule to know what is sent: units times what the stage does with each.
TEST(PlanProperties, StagesZeroToTwoSendWhatTheyMust) {
  for_random_plans(3000, 80, [](const ModelPtr& model, const Strategy& s, const PlanSet& plans) {
    const Plan& plan = plans.classes.front();
    std::set<std::int32_t> trained_units;
    std::int64_t bytes = 0;
    for (const Flat& flat : plan.flats) {
      if (flat.frozen) continue;
      trained_units.insert(flat.unit.value);
      bytes += flat.elems.count();
    }
    const auto units = static_cast<std::int64_t>(trained_units.size());
    std::int64_t trained = 0;
    std::int64_t trained_elements = 0;
    for (std::size_t p = 0; p < model->parameters.size(); ++p) {
      if (std::ranges::count(s.freeze, model->parameters[p].name) > 0) continue;
      ++trained;
      trained_elements += model->parameters[p].elems.count();
    }
    const std::int64_t stored = bytes_per_element(s.storage());
    const std::int64_t summed = bytes_per_element(s.reduction());
    const std::int64_t losses = 4 * s.micro_batches();
    using enum Collective;
    const auto at = [](Collective kind) { return static_cast<std::size_t>(kind); };
    Calls expected{};
    const auto add = [&](Collective kind, std::int64_t calls, std::int64_t sent) {
      expected[at(kind)].first += calls;
      expected[at(kind)].second += sent;
    };
    if (s.world_size > 1) add(all_gather, 1, losses);
    // What ranks know of their gradients: from those that step different elements, or all where any may overflow.
    if (const std::int64_t members = s.has_scaler()            ? s.data_parallel()
                                     : s.effective_stage() > 0 ? s.shard_degree()
                                                               : 1;
        s.is_controlled() && members > 1)
      add(all_gather, 1, members * (s.has_scaler() ? 2 : 1) * kGradientFactsBytes.count());
    if (s.effective_stage() == 0 && s.world_size > 1) expected[at(all_reduce)] = {units, summed * bytes};
    if (s.effective_stage() == 1 && s.partition == Partition::parameter) {
      expected[at(all_reduce)] = {units, summed * bytes};
      expected[at(broadcast)] = {trained, stored * trained_elements};
    } else if (s.effective_stage() > 0) {
      const std::int64_t times = s.effective_stage() == 1 ? 1 : s.accumulation();
      auto& reductions = expected[at(s.has_owners() ? reduce : reduce_scatter)];
      reductions = {units * times, summed * bytes * times};
      // Buckets send the same in fewer calls; these models fit into one.
      if (s.bucket_mib > 0 && units > 0) reductions.first = times;
      auto& made_whole = expected[at(s.has_owners() ? broadcast : all_gather)];
      if (s.effective_stage() < 3) {
        made_whole.first += units;
        made_whole.second += stored * bytes;
      } else {
        // Each unit that forward uses is gathered at least once a step, at most twice a micro-step and op that uses it.
        const auto all_units = static_cast<std::int64_t>(plan.units.size());
        const auto gathers = calls_of(plan)[at(s.has_owners() ? broadcast : all_gather)];
        EXPECT_GE(gathers.first - made_whole.first, all_units);
        if (s.keep_gathered) {
          EXPECT_EQ(gathers.first - made_whole.first, all_units);
        }
        made_whole = gathers;
      }
    }
    // Hybrid sharding sums every shard over the replicas once more; of a whole unit, only its owners do.
    if (s.effective_stage() > 0 && s.replicas() > 1) {
      std::int64_t own = 0;
      std::set<std::int32_t> owned;
      for (const Flat& flat : plan.flats)
        if (!flat.frozen && flat.owner == position(s.topology(), plan.rank).shard) {
          own += flat.elems.count();
          owned.insert(flat.unit.value);
        }
      if (s.has_owners())
        expected[at(all_reduce)] = {static_cast<std::int64_t>(owned.size()), summed * own};
      else
        expected[at(all_reduce)] = {units, summed * bytes / s.shard_degree()};
    }
    EXPECT_EQ(calls_of(plan), expected);
  });
}

TEST(PlanProperties, ALongerPrefetchNeverGathersMore) {
  for_random_plans(4000, 20, [](const ModelPtr& model, const Strategy& strategy, const PlanSet&) {
    Strategy s = strategy;
    s.stage = 3;
    s.partition = Partition::flat;
    // What stays on the device by itself depends on what prefetch leaves over.
    if (s.placement.policy == PlacementPolicy::automatic) s.placement.policy = PlacementPolicy::host;
    const auto kind = static_cast<std::size_t>(s.has_owners() ? Collective::broadcast : Collective::all_gather);
    std::int64_t before = std::numeric_limits<std::int64_t>::max();
    for (s.prefetch = 0; s.prefetch < 4; ++s.prefetch) {
      const std::int64_t gathers = calls_of(compiled(model, s).classes.front())[kind].first;
      EXPECT_LE(gathers, before);
      before = gathers;
    }
  });
}

TEST(PlanProperties, TheHashIsThatOfModelAndStrategy) {
  const Strategy base{.world_size = 2,
                      .stage = 3,
                      .unit = UnitKind::chunk,
                      .chunk_elems = Elems{600},
                      .micro_batch = 1,
                      .global_batch = 8,
                      .sequence = 4,
                      .prefetch = 1};
  const std::function<void(Strategy&)> changes[] = {
      [](Strategy&) {},
      [](Strategy& s) { s.world_size = 4; },
      [](Strategy& s) { s.stage = 2; },
      [](Strategy& s) { s.stage = 1; },
      [](Strategy& s) { s.stage = 0; },
      [](Strategy& s) { s.stage = 1, s.partition = Partition::parameter; },
      [](Strategy& s) { s.unit = UnitKind::tensor; },
      [](Strategy& s) { s.unit = UnitKind::bucket; },
      [](Strategy& s) { s.unit = UnitKind::module; },
      [](Strategy& s) { s.chunk_elems = Elems{602}; },
      [](Strategy& s) {
        s.chunk_starts = {0, 5};
      },
      [](Strategy& s) {
        s.chunk_starts = {0, 6};
      },
      [](Strategy& s) { s.micro_batch = 2; },
      [](Strategy& s) { s.global_batch = 4; },
      [](Strategy& s) { s.sequence = 5; },
      [](Strategy& s) { s.recompute = Recompute::block; },
      [](Strategy& s) { s.optimizer = OptimizerKind::adam; },
      [](Strategy& s) { s.optimizer = OptimizerKind::sgd; },
      [](Strategy& s) { s.prefetch = 0; },
      [](Strategy& s) { s.threads = 2; },
      [](Strategy& s) { s.reproducible = false; },
      [](Strategy& s) { s.transport = Transport::messages; },
      [](Strategy& s) { s.clip_norm = true; },
      [](Strategy& s) { s.loss_scaling = true; },
      [](Strategy& s) { s.clip_norm = true, s.loss_scaling = true; },
      [](Strategy& s) { s.predivide = 2.0f; },
      [](Strategy& s) { s.freeze = {"transformer.wpe.weight"}; },
      [](Strategy& s) { s.freeze = {"transformer.ln_f.bias"}; },
      [](Strategy& s) { s.chunk_per_tensor = true; },
      [](Strategy& s) { s.ownership = Ownership::rank; },
      [](Strategy& s) { s.distributed = false; },
      [](Strategy& s) { s.keep_gathered = true; },
      [](Strategy& s) { s.bucket_mib = 1; },
      [](Strategy& s) { s.precision = Precision::bf16, s.global_batch = 2; },
      [](Strategy& s) { s.precision = Precision::bf16, s.global_batch = 2, s.reuse_shard = true; },
      [](Strategy& s) { s.precision = Precision::tf32; },
  };
  std::set<std::string> hashes;
  for (const auto& change : changes) {
    Strategy s = base;
    change(s);
    const std::string hash = compiled(small_gpt2(), s).hash;
    EXPECT_EQ(hash.size(), 32U);
    EXPECT_EQ(hash, compiled(small_gpt2(), s).hash);
    EXPECT_TRUE(hashes.insert(hash).second) << to_string(s);
  }
  const auto epsilon = [](const char* value) {
    return model_from(std::string(R"({"model_type": "gpt2", "vocab_size": 11, "n_positions": 8, "n_embd": 8,
        "n_layer": 2, "n_head": 2, "layer_norm_epsilon": )") +
                      value + "}");
  };
  EXPECT_TRUE(hashes.insert(compiled(epsilon("1e-6"), base).hash).second);
  EXPECT_TRUE(hashes.insert(compiled(epsilon("1e-7"), base).hash).second);
}

/// Each edge is a wait: without any one of them, some byte would be touched out of order.
TEST(PlanProperties, EveryEdgeIsNeeded) {
  std::int64_t edges = 0;
  for (unsigned seed = 5000; seed < 5008; ++seed) {
    RandomCases random(seed);
    const ModelPtr model = random.model();
    Strategy s = random.strategy(*model);
    s.stage = std::max(s.stage, 2);
    s.partition = Partition::flat;
    s.world_size = 2;
    s.shard_group = 0;
    s.reuse_shard = false;
    s.global_batch = 4 * s.micro_batch;
    if (s.unit == UnitKind::chunk) s.chunk_elems = Elems{100};
    Plan plan = std::move(compiled(model, s).classes.front());
    ASSERT_TRUE(verify(plan)) << to_string(verify(plan).error());
    for (Op& op : plan.find(Phase::steady_step)->ops)
      for (std::size_t i = 0; i < op.dependencies.size(); ++i) {
        const OpId edge = op.dependencies[i];
        const List<OpId> all = op.dependencies;
        edit(op.dependencies).remove(edge);
        const Result<void> found = verify(plan);
        ++edges;
        ASSERT_FALSE(found) << "seed " << seed << ": edge " << edge.value << " of " << to_text(plan, op);
        EXPECT_TRUE(found.error().what.ends_with("(P7)")) << to_string(found.error());
        op.dependencies = all;
      }
  }
  EXPECT_GT(edges, 300);
}

}  // namespace
}  // namespace shard::plan
