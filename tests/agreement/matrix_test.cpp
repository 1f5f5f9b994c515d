// Do all strategies of the matrix agree, ten steps each? Long: `make test-full`.
#include <gtest/gtest.h>

#include "tests/agreement/matrix.h"

namespace shard {
namespace {

TEST(Matrix, Gpt2Nano) {
  expect_agreement({.model = "gpt2-nano", .chunk = Elems{100'000}}, whole_matrix());
}

TEST(Matrix, LlamaNano) {
  expect_agreement({.model = TEST_DATA "/data/models/llama-nano.json", .chunk = Elems{30'000}}, whole_matrix());
}

// The recipe's model, 80 million parameters: about 1.3 GB a rank in stage 0.
TEST(Matrix, Mlp20x2000) {
  expect_agreement(
      {.model = "mlp-20x2000", .micro_batch = 5, .global_batch = 20, .sequence = 1, .chunk = Elems{8'004'000}},
      whole_matrix());
}

}  // namespace
}  // namespace shard
