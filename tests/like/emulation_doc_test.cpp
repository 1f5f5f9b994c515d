// Does docs/emulation.md show what the program computes?
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "sim/like/gemini_report.h"
#include "sim/like/report.h"
#include "tests/like/gemini.h"
#include "tests/like/recipe.h"

namespace shard::like {
namespace {

/// The text between the line "<!-- begin NAME -->" and the line "<!-- end NAME -->".
std::string section(const std::string& text, const std::string& name) {
  const std::string begin = "<!-- begin " + name + " -->\n", end = "<!-- end " + name + " -->";
  const std::size_t from = text.find(begin);
  const std::size_t to = text.find(end);
  if (from == std::string::npos || to == std::string::npos) return "no section " + name;
  return text.substr(from + begin.size(), to - from - begin.size());
}

TEST(EmulationDoc, TablesAreThoseOfTheProgram) {
  std::ifstream file(TEST_DATA "/../docs/emulation.md");
  ASSERT_TRUE(file);
  std::stringstream text;
  text << file.rdbuf();
  for (const std::int32_t stage : {1, 0}) {
    const std::string name = "stage " + std::to_string(stage);
    const std::string now = to_markdown(test::like(test::recipe_model(), test::recipe(stage)));
    EXPECT_EQ(section(text.str(), name), now) << "put this between the marks of " << name << ":\n" << now;
  }
}

TEST(EmulationDoc, GeminisExamplesAreThoseOfTheProgram) {
  std::ifstream file(TEST_DATA "/../docs/emulation.md");
  ASSERT_TRUE(file);
  std::stringstream text;
  text << file.rdbuf();
  const Result<ParameterList> parameters = read_parameter_list(TEST_DATA "/data/chunk_oracle/models/mlp-20x2000.json");
  ASSERT_TRUE(parameters);
  const GeminiOptions options{
      .world_size = 4, .chunk = Elems{8194304}, .offload_optim_frac = 1, .offload_param_frac = 1};
  for (const auto& [name, framework] : {std::pair{"gemini split", test::kSplit}, {"gemini whole", test::kWhole}}) {
    const GeminiResult result = test::gemini(framework, *parameters, options);
    const std::string now =
        "```\n" + verdict_text(result, unit_of(result)) + details_text(result, unit_of(result)) + "```\n";
    EXPECT_EQ(section(text.str(), name), now) << "put this between the marks of " << name << ":\n" << now;
  }
}

}  // namespace
}  // namespace shard::like
