// Does a program that is kept say the same when it is asked again, and is a file that is no program refused?
#include <gmock/gmock.h>

#include <array>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>

#include "sim/like/program/program_file.h"
#include "sim/like/program/program_of_snapshot.h"
#include "sim/like/report.h"
#include "sim/like/simulate_eager.h"
#include "tests/like/recipe.h"

namespace shard::like {
namespace {

using testing::HasSubstr;

/// One of every framework's, with sizes and options drawn.
Result<LikeResult> random_answer(unsigned seed) {
  std::mt19937 random(seed);
  const auto one_of = [&](auto... values) {
    const std::array all{values...};
    return all[random() % all.size()];
  };
  if (seed % 6 == 5) {
    const int layers = one_of(1, 3, 8), width = one_of(64, 1000, 2000);
    return test::like(test::mlp(layers, width), test::recipe(one_of(0, 1)));
  }
  constexpr std::array kFrameworks{eager::Framework::none, eager::Framework::fsdp1, eager::Framework::fsdp2,
                                   eager::Framework::deepspeed, eager::Framework::megatron};
  EagerOptions options;
  options.framework = kFrameworks[seed % 6];
  options.allocator.expandable = random() % 2 == 0;
  options.update = one_of(eager::Update::foreach, eager::Update::fused, eager::Update::for_loop);
  const bool gpt = options.framework == eager::Framework::megatron || one_of(true, false);
  const std::string layers = std::to_string(one_of(1, 2, 3));
  const auto model = std::make_shared<model::Model>(test::model_of(
      gpt ? R"({"model_type": "gpt2", "vocab_size": 1000, "n_embd": 256, "n_head": 4, "n_positions": 512, "n_layer": )" +
                layers + "}"
          : R"({"model_type": "llama", "vocab_size": 1000, "hidden_size": 256, "intermediate_size": 704,
                "max_position_embeddings": 512, "tie_word_embeddings": false, "num_attention_heads": 4,
                "num_key_value_heads": 2, "num_hidden_layers": )" +
                layers + "}"));
  plan::Strategy s;
  s.micro_batch = one_of(1, 2, 3);
  s.sequence = one_of(64, 128, 256);
  s.precision = plan::Precision::bf16;
  s.world_size = options.framework == eager::Framework::none ? 1 : 4;
  s.stage = options.framework == eager::Framework::deepspeed                                               ? 2
            : options.framework == eager::Framework::fsdp1 || options.framework == eager::Framework::fsdp2 ? 3
                                                                                                           : 0;
  s.global_batch = s.micro_batch * s.world_size;
  if (one_of(true, false)) options.device_capacity = Bytes{one_of(16, 64, 4096) * (std::int64_t{1} << 20)};
  return simulate_eager(model, s, options);
}

/// Under which it was asked: the first that random_answer() draws.
ReplayOptions options_of(unsigned seed, const LikeResult& result) {
  ReplayOptions options{.device_capacity = result.device_capacity};
  std::mt19937 random(seed);
  options.allocator.expandable = seed % 6 != 5 && random() % 2 == 0;
  return options;
}

TEST(Program, WrittenReadAndReplayedItGivesTheSameAnswer) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const Result<LikeResult> first = random_answer(seed);
    ASSERT_TRUE(first) << to_string(first.error());
    const std::string text = to_text(*first->program);
    const Result<Program> read = read_program(text, "program");
    ASSERT_TRUE(read) << to_string(read.error());
    EXPECT_EQ(to_text(*read), text);
    const Result<MemoryAnswer> again = replay(*read, options_of(seed, *first));
    ASSERT_TRUE(again) << to_string(again.error());
    EXPECT_EQ(to_json(*again).dump(), to_json(static_cast<const MemoryAnswer&>(*first)).dump());
  }
}

TEST(Program, ItsSnapshotIsAProgramOfTheSameMemory) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const Result<LikeResult> first = random_answer(seed);
    ASSERT_TRUE(first) << to_string(first.error());
    ReplayOptions options = options_of(seed, *first);
    options.snapshot = true;
    const Result<MemoryAnswer> recorded = replay(*first->program, options);
    ASSERT_TRUE(recorded);
    // Without a limit where it does not fit.
    const std::optional<Bytes> capacity = recorded->fits ? options.device_capacity : std::nullopt;
    SnapshotProgram made = program_of_snapshot(recorded->snapshot->snapshot, recorded->snapshot->names, capacity);
    EXPECT_EQ(made.there_before, 0);
    made.program.origin.addresses_upwards = first->program->origin.addresses_upwards;
    options.device_capacity = capacity;
    const Result<MemoryAnswer> again = replay(made.program, options);
    ASSERT_TRUE(again);
    EXPECT_EQ(again->peak_allocated(), recorded->peak_allocated());
    EXPECT_EQ(again->peak_reserved(), recorded->peak_reserved());
    EXPECT_EQ(again->statistics.allocation_count, recorded->statistics.allocation_count);
    EXPECT_EQ(again->statistics.segment_count, recorded->statistics.segment_count);
  }
}

TEST(Program, UnderOtherSettingsItGivesTheAnswerOfTheRulesUnderThese) {
  const Result<LikeResult> first = random_answer(2);
  ASSERT_TRUE(first);
  const Result<Program> read = read_program(to_text(*first->program), "program");
  ASSERT_TRUE(read);
  ReplayOptions options;
  options.allocator.expandable = !options_of(2, *first).allocator.expandable;
  const Result<MemoryAnswer> here = replay(*read, options), there = replay(*first->program, options);
  ASSERT_TRUE(here && there);
  EXPECT_NE(here->peak_reserved(), first->peak_reserved());
  EXPECT_EQ(here->peak_reserved(), there->peak_reserved());
  EXPECT_EQ(here->peak_allocated(), first->peak_allocated());
}

TEST(Program, AnExpandableSegmentHasRoomForATakeLargerThanTheDevice) {
  const Result<Program> read =
      read_program("shardscope program 1\nname x\nop 0 1 -1 forward\ntake 4000000000 activation\nend 2\n", "program");
  ASSERT_TRUE(read) << to_string(read.error());
  ReplayOptions options{.device_capacity = Bytes{1 << 30}};
  options.allocator.expandable = true;
  options.allocator.expandable_space = Bytes{1 << 30};
  const Result<MemoryAnswer> answer = replay(*read, options);
  ASSERT_TRUE(answer);
  EXPECT_FALSE(answer->fits);
  EXPECT_GE(answer->peak_reserved().count(), 4'000'000'000);
}

std::string all_lines() {
  std::ifstream in(std::string(TEST_DATA) + "/fuzz/corpus/program_fuzz/all_lines", std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

TEST(Program, EveryLineIsReadAsItSays) {
  const Result<Program> read = read_program(all_lines(), "program");
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_EQ(read->origin.framework, "a A");
  EXPECT_EQ(read->origin.rank, 1);
  EXPECT_TRUE(read->origin.addresses_upwards);
  EXPECT_TRUE(read->origin.all_kernels);
  EXPECT_EQ(read->origin.uncertainty_ppm, 10'000);
  ASSERT_EQ(read->allocations.size(), 4U);
  EXPECT_EQ(read->name_of(read->allocations[0]), "layer mm");
  EXPECT_EQ(read->name_of(read->allocations[1]), "layer");
  EXPECT_EQ(read->allocations[1].stream, 2U);
  EXPECT_EQ(read->allocations[2].memory, Memory::pinned);
  ASSERT_EQ(read->works.size(), 1U);
  EXPECT_EQ(read->works[0].flops.count(), 6e9);
  ASSERT_EQ(read->works[0].operands.size(), 2U);
  EXPECT_EQ(read->works[0].operands[0].type, "bf16");
  EXPECT_EQ(read->works[0].operands[0].sizes[1], 4);
  EXPECT_TRUE(read->works[0].operands[1].written);
  ASSERT_EQ(read->collectives.size(), 1U);
  EXPECT_EQ(read->collectives[0].ranks, 4);
  ASSERT_EQ(read->waits.size(), 2U);
  EXPECT_TRUE(read->waits[0].host);
  EXPECT_EQ(read->waits[1].for_stream, 2U);
}

TEST(Program, WhatIsLetGoIsActiveAndNotAllocated) {
  const Result<Program> read = read_program(
      "shardscope program 1\nname x\nop 0 1 -1 forward\ntake 4194304 activation stream=1\nlet_go 0\n"
      "take 2097152 activation\nback 0\nmark 1\nend 6\n",
      "program");
  ASSERT_TRUE(read) << to_string(read.error());
  const Result<MemoryAnswer> answer = replay(*read, {});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->peak_allocated().count(), 4194304);
  EXPECT_EQ(answer->peak_active().count(), 4194304 + 2097152);
  EXPECT_EQ(answer->moments.back().blocks.size(), 1U);
}

TEST(Program, PinnedMemoryIsNoneOfTheDevice) {
  const Result<Program> read = read_program(
      "shardscope program 1\nname x\nop 0 1 -1 forward\ntake 4194304 activation memory=pinned\nback 0\n"
      "take 100 activation memory=pinned\ntake 7 input memory=host\nend 5\n",
      "program");
  ASSERT_TRUE(read) << to_string(read.error());
  const Result<MemoryAnswer> answer = replay(*read, {});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->peak_reserved().count(), 0);
  EXPECT_EQ(answer->pinned_peak.count(), 4194304);
  EXPECT_EQ(answer->host_peak.count(), 7);
  ASSERT_EQ(answer->moments.size(), 1U) << "a program without marks is read at its end";
}

/// What is put in place of what in all_lines(), and what the error says: its line and why.
struct Planted {
  std::string from, to, where, what;
};
void PrintTo(const Planted& planted, std::ostream* out) {
  *out << planted.from << " -> " << planted.to;
}

class PlantedFault : public testing::TestWithParam<Planted> {};

TEST_P(PlantedFault, IsRefusedWithItsLine) {
  const Planted& planted = GetParam();
  std::string text = all_lines();
  const std::size_t at = text.find(planted.from);
  ASSERT_NE(at, std::string::npos);
  text.replace(at, planted.from.size(), planted.to);
  const Result<Program> read = read_program(text, "kept.program");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Errc::malformed);
  EXPECT_EQ(read.error().where, "kept.program:" + planted.where);
  EXPECT_THAT(read.error().what, HasSubstr(planted.what));
}

INSTANTIATE_TEST_SUITE_P(
    Lines, PlantedFault,
    testing::Values(Planted{"program 1", "program 2", "1", "first line"},
                    Planted{"framework a \\x41", "framework a \\q", "2", "backslash"},
                    Planted{"world_size 4", "world_size 0", "6", "world_size"},
                    Planted{"addresses up", "addresses down", "8", "addresses"},
                    Planted{"kernels all", "kernels some", "9", "kernels"},
                    Planted{"uncertainty 10000", "uncertainty 2000000", "10", "uncertainty"},
                    Planted{"phase creation", "phase birth", "11", "unknown phase 'birth'"},
                    Planted{"op 1 2 0 forward", "op 1 3 0 forward", "14", "name has the number '3'"},
                    Planted{"op 1 2 0 forward", "op 1 2 0 sideways", "14", "part of a step 'sideways'"},
                    Planted{"op 1 2 0 forward\n", "", "14", "no op has begun"},
                    Planted{"take 1000 act", "take -1 act", "15", "size in bytes: '-1'"},
                    Planted{"take 1000 act", "take 2000000000000 act", "15", "size in bytes"},
                    Planted{"take 1000 act", "take 10e2 act", "15", "size in bytes: '10e2'"},
                    Planted{"activation", "activity", "15", "category 'activity'"},
                    Planted{"stream=2", "queue=2", "16", "unknown 'queue=2'"},
                    Planted{"stream=2", "stream=9999", "16", "unknown 'stream=9999'"},
                    Planted{"work 6e9", "work nan", "18", "flops: 'nan'"},
                    Planted{"3:r:2x4", "3:r:2x", "18", "operand: '3:r:2x'"},
                    Planted{"all_gather", "all_scatter", "19", "collective 'all_scatter'"},
                    Planted{"copy host", "copy ghost", "20", "memory 'ghost'"},
                    Planted{"wait host 0", "wait host 0 0", "22", "more than belongs"},
                    Planted{"let_go 1", "let_go 2", "24", "take 2 cannot be let go"},
                    Planted{"let_go 1", "let_go 3", "24", "no take has the number '3'"},
                    Planted{"back 0", "back 1", "30", "given back before"},
                    Planted{"mark 1\n", "mark 1 twice\n", "32", "'twice'"},
                    Planted{"empty_cache", "empty_cash", "31", "unknown line 'empty_cash'"},
                    Planted{"end 19", "end 18", "33", "has 19 steps"},
                    Planted{"end 19\n", "end 19\nmark 1\n", "34", "behind the end"}));

TEST(Program, AFileThatIsCutShortAtAnyLineIsRefused) {
  const std::string text = all_lines();
  for (std::size_t end = text.find('\n'); end + 1 < text.size(); end = text.find('\n', end + 1)) {
    SCOPED_TRACE(text.substr(0, end));
    const Result<Program> read = read_program(text.substr(0, end + 1), "program");
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, Errc::malformed);
    EXPECT_THAT(read.error().what, HasSubstr("cut short"));
  }
}

}  // namespace
}  // namespace shard::like
