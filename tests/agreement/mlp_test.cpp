// Does the recipe's mlp agree over a few strategies? The whole matrix of the recipe's own widths is in matrix_test.
#include <gtest/gtest.h>

#include <string>

#include "tests/agreement/matrix.h"

namespace shard {
namespace {

/// The recipe's 20 layers, 400 wide in place of 2000: 3.2 million parameters and the same operations.
std::string narrow_recipe() {
  std::string sizes = "400";
  for (int layer = 0; layer < 20; ++layer) sizes += ",400";
  return R"({"model_type":"mlp","bias":true,"loss":"mse","sizes":[)" + sizes + "]}";
}

TEST(Mlp, RecipeModelAgreesOverStages) {
  expect_agreement(
      {.model = narrow_recipe(),
       .micro_batch = 5,
       .global_batch = 20,
       .sequence = 1,
       .chunk = Elems{320'800},
       .steps = 2},
      {{0, 0, 2, 0, 1, 1, 0, 0}, {1, 1, 3, 1, 1, 0, 0, 1}, {1, 3, 3, 0, 2, 0, 0, 4}, {2, 2, 1, 0, 0, 0, 1, 2}});
}

}  // namespace
}  // namespace shard
