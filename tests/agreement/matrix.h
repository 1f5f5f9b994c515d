// The strategies that must agree, and what agreement means: same bits, planned memory, planned calls.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "sim/commands/variable_chunks.h"
#include "sim/ir/effects.h"
#include "sim/model/freeze.h"
#include "sim/model/read_model.h"
#include "sim/search/chunk_search.h"
#include "tests/agreement/in_process_run.h"
#include "tests/agreement/pairwise.h"

namespace shard {

inline constexpr std::array<plan::UnitKind, 4> kUnits{plan::UnitKind::tensor, plan::UnitKind::bucket,
                                                      plan::UnitKind::module, plan::UnitKind::chunk};
inline constexpr std::array<plan::Recompute, 3> kRecompute{plan::Recompute::none, plan::Recompute::block,
                                                           plan::Recompute::selective};

/// Where model data rests: all on the device, then every memory of every kind and mixtures of them.
inline constexpr plan::Share kHalfOnDevice{.on_device = 0.5, .rest = Memory::host};
inline const std::array<plan::Placement, 8> kPlacements{{
    {},
    {.policy = plan::PlacementPolicy::host},
    {.policy = plan::PlacementPolicy::fixed, .optimizer = plan::kOnDisk},
    {.policy = plan::PlacementPolicy::fixed, .gradients = plan::kOnHost},
    {.policy = plan::PlacementPolicy::fixed,
     .parameters = kHalfOnDevice,
     .gradients = kHalfOnDevice,
     .optimizer = kHalfOnDevice},
    {.policy = plan::PlacementPolicy::fixed, .parameters = plan::kOnHost},
    {.policy = plan::PlacementPolicy::host, .gradients = plan::kOnDevice, .optimizer = plan::kOnDisk},
    {.policy = plan::PlacementPolicy::fixed, .optimizer = plan::kOnHost},
}};

/// One model's share of the matrix: everything but the strategy is fixed.
struct Subject {
  std::string model;
  std::int64_t micro_batch = 1;
  std::int64_t global_batch = 4;
  std::int64_t sequence = 16;
  Elems chunk{0};
  std::int64_t steps = 10;
  std::vector<std::int32_t> worlds{1, 2, 4};  ///< data-parallel ranks, each of which is `tensor_parallel` ranks
  plan::Precision precision = plan::Precision::fp32;
  bool fp32_reduce_scatter = false;
  std::int32_t tensor_parallel = 1;
  model::TensorLayout tensor_layout = model::TensorLayout::megatron;
  std::vector<std::string> freeze{};
  float dropout = 0;
  plan::Device device = plan::Device::cpu;
};

/// The models of the bit matrix; a test sets what else is its own.
inline const Subject kGpt2Nano{.model = "gpt2-nano", .chunk = Elems{100'000}};
inline const Subject kLlamaNano{.model = TEST_DATA "/data/models/llama-nano.json", .chunk = Elems{30'000}};

inline std::shared_ptr<const model::Model> load_model(const std::string& name) {
  Result<model::Model> model = model::read_model(name);
  if (!model) {
    ADD_FAILURE() << to_string(model.error());
    return nullptr;
  }
  return std::make_shared<const model::Model>(std::move(*model));
}

/// The chunks of their own sizes, of at most the subject's, that rule variable finds for a rank's part of the model.
inline void vary_chunks(const Subject& subject, plan::Strategy& s) {
  const auto whole = load_model(subject.model);
  if (!whole) return;
  const Result<model::Model> part =
      model::freeze(model::split_model(*whole, subject.tensor_parallel, subject.tensor_layout), subject.freeze);
  ASSERT_TRUE(part) << to_string(part.error());
  const Result<RuleAnswer> found = choose_chunk(model::trained_parameters(*part), {.rule = ChunkRule::variable,
                                                                                   .world_size = s.cuts(),
                                                                                   .min_chunk = {},
                                                                                   .max_chunk = subject.chunk,
                                                                                   .forecast = {}});
  ASSERT_TRUE(found) << to_string(found.error());
  commands::use_variable_chunks(*part, found->chunk_starts, subject.chunk, s);
}

/// world, stage, unit (and chunks of their own sizes), recompute, prefetch (0, 1, 2), threads (1, 2), hybrid sharding
/// where there is room for it, placement.
inline std::vector<std::size_t> levels(const Subject& subject) {
  return {subject.worlds.size(), 4, kUnits.size() + 1, kRecompute.size(), 3, 2, 2, kPlacements.size()};
}

inline plan::Strategy strategy_of(const Subject& subject, const std::vector<std::size_t>& row) {
  const std::int32_t world = subject.worlds[row[0]];
  const auto stage = static_cast<std::int32_t>(row[1]);
  plan::Strategy s{.world_size = world * subject.tensor_parallel,
                   .stage = stage,
                   .unit = row[2] < kUnits.size() ? kUnits[row[2]] : plan::UnitKind::chunk,
                   .chunk_elems = round_up(subject.chunk, world),
                   .micro_batch = subject.micro_batch,
                   .global_batch = subject.global_batch,
                   .sequence = subject.sequence,
                   .recompute = kRecompute[row[3]],
                   .precision = subject.precision,
                   .prefetch = static_cast<std::int32_t>(row[4]),
                   .threads = static_cast<std::int32_t>(row[5]) + 1,
                   .device = subject.device,
                   .tensor_parallel = subject.tensor_parallel,
                   .tensor_layout = subject.tensor_layout,
                   .shard_group = row[6] == 1 && stage > 0 && world >= 4 ? world / 2 : 0,
                   .fp32_reduce_scatter = subject.fp32_reduce_scatter,
                   .placement = kPlacements[row[7]],
                   .freeze = subject.freeze,
                   .dropout = subject.dropout};
  if (row[2] == kUnits.size()) vary_chunks(subject, s);
  return s;
}

/// Every strategy of the matrix: world x stage x unit x recompute, the other factors turning with them.
inline std::vector<std::vector<std::size_t>> whole_matrix(const Subject& subject) {
  const std::vector<std::size_t> levels = shard::levels(subject);
  std::vector<std::vector<std::size_t>> rows;
  for (std::size_t w = 0; w < levels[0]; ++w)
    for (std::size_t s = 0; s < levels[1]; ++s)
      for (std::size_t u = 0; u < levels[2]; ++u)
        for (std::size_t r = 0; r < levels[3]; ++r)
          rows.push_back({w, s, u, r, rows.size() % 3, rows.size() % 2, rows.size() / 3 % 2, rows.size() * 5 / 3 % 8});
  return rows;
}

/// Peaks of every arena and calls and bytes of every collective, of every rank, are those of the plan. `evaluated`: how
/// often phase evaluate ran.
inline void expect_as_planned(const InProcessRun& run, std::int64_t steps, const std::string& what,
                              std::int64_t evaluated = 0) {
  for (std::size_t rank = 0; rank < run.ranks.size(); ++rank) {
    const plan::Plan& plan = run.plans.of_rank(static_cast<std::int32_t>(rank));
    for (std::size_t m = 0; m < kMemoryCount; ++m)
      EXPECT_EQ(run.ranks[rank].peak[m].count(), plan.arena_bytes[m].count()) << what << " rank " << rank << ' ' << m;
    CollectiveTotals planned;
    CollectiveTotals of_digest;
    CollectiveTotals of_evaluation;
    for (const plan::PhaseOps& phase : plan.phases) {
      const bool evaluates = phase.phase == Phase::evaluate;
      const std::int64_t times = phase.phase == Phase::steady_step ? steps - 1 : evaluates ? evaluated : 1;
      CollectiveTotals& total = phase.phase == Phase::digest ? of_digest : evaluates ? of_evaluation : planned;
      for (const plan::Op& op : phase.ops)
        if (const auto sends = plan::effects(plan, op).sends) {
          total[sends->kind].calls += times;
          total[sends->kind].bytes += sends->bytes * times;
        }
    }
    EXPECT_EQ(run.ranks[rank].collectives, planned) << what << " rank " << rank;
    EXPECT_EQ(run.ranks[rank].digest_collectives, of_digest) << what << " rank " << rank;
    EXPECT_EQ(run.ranks[rank].evaluation_collectives, of_evaluation) << what << " rank " << rank;
  }
}

/// AdamW with decay, from one seed.
inline train::SessionOptions session_of(std::int64_t steps) {
  return {.steps = steps,
          .scalars = {.weight_decay = 0.01},
          .seed = 7,
          .after_step = {},
          .before_phase = {},
          .disk_path = std::filesystem::temp_directory_path().string()};
}

/// Runs the rows and expects one digest of them all.
inline void expect_agreement(const Subject& subject, const std::vector<std::vector<std::size_t>>& rows) {
  const auto model = load_model(subject.model);
  ASSERT_TRUE(model);
  ASSERT_FALSE(rows.empty());
  std::string sha;
  for (const std::vector<std::size_t>& row : rows) {
    const plan::Strategy strategy = strategy_of(subject, row);
    const std::string what = subject.model + ' ' + to_string(strategy);
    const auto run = run_in_process(model, strategy, session_of(subject.steps));
    ASSERT_TRUE(run) << what << ": " << to_string(run.error());
    expect_as_planned(*run, subject.steps, what);
    if (sha.empty()) sha = run->ranks[0].state_sha256;
    EXPECT_EQ(run->ranks[0].state_sha256, sha) << what;
  }
}

}  // namespace shard
