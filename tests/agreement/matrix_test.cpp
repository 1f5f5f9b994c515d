// Do all strategies of the matrix agree, ten steps each? Long: `make test-full`.
#include <gtest/gtest.h>

#include "tests/agreement/matrix.h"

namespace shard {
namespace {

void expect_whole_matrix(const Subject& subject) {
  expect_agreement(subject, whole_matrix(subject));
}

TEST(Matrix, Gpt2Nano) {
  expect_whole_matrix({.model = "gpt2-nano", .chunk = Elems{100'000}});
}

TEST(Matrix, LlamaNano) {
  expect_whole_matrix({.model = TEST_DATA "/data/models/llama-nano.json", .chunk = Elems{30'000}});
}

// The recipe's model, 80 million parameters: about 1.3 GB a rank in stage 0.
TEST(Matrix, Mlp20x2000) {
  expect_whole_matrix(
      {.model = "mlp-20x2000", .micro_batch = 5, .global_batch = 20, .sequence = 1, .chunk = Elems{8'004'000}});
}

}  // namespace
}  // namespace shard
