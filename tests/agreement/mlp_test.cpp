// Does the recipe's mlp agree over a few strategies? The whole matrix is in matrix_test.
#include <gtest/gtest.h>

#include "tests/agreement/matrix.h"

namespace shard {
namespace {

TEST(Mlp, RecipeModelAgreesOverStages) {
  expect_agreement(
      {.model = "mlp-20x2000",
       .micro_batch = 5,
       .global_batch = 20,
       .sequence = 1,
       .chunk = Elems{8'004'000},
       .steps = 2},
      {{0, 0, 2, 0, 1, 1, 0, 0}, {1, 1, 3, 1, 1, 0, 0, 1}, {1, 3, 3, 0, 2, 0, 0, 4}, {2, 2, 1, 0, 0, 0, 1, 2}});
}

}  // namespace
}  // namespace shard
