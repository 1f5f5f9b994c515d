// Numbers that Python's json writes and JSON has none for.
#include "sim/model/python_json.h"

#include <gtest/gtest.h>

#include "sim/model/config.h"

namespace shard::model {
namespace {

TEST(PythonJson, HasNullForInfinities) {
  EXPECT_EQ(without_infinities(R"({"a": [0.0, Infinity], "b": -Infinity, "c": NaN})"),
            R"({"a": [0.0, null], "b": null, "c": null})");
}

TEST(PythonJson, LeavesStringsAlone) {
  const std::string text = R"({"NaN": "a \" Infinity", "b": "\\", "c": 1})";
  EXPECT_EQ(without_infinities(text), text);
}

TEST(PythonJson, TakesAnyText) {
  for (const char* text : {"", "\"", "\\", "\"\\", "Inf", "-Infinit", "NaN\"NaN"})
    EXPECT_NO_FATAL_FAILURE(without_infinities(text));
  EXPECT_EQ(without_infinities("NaN\"NaN"), "null\"NaN");
}

TEST(PythonJson, IsWhatADescriptionMayHave) {
  std::string text =
      R"({"model_type": "gpt2", "n_layer": 1, "n_embd": 8, "n_head": 2, "n_positions": 4, "vocab_size": 16,
    "time_step_limit": [0.0, Infinity]})";
  EXPECT_TRUE(parse_config(text, "tiny", "tiny.json"));
}

}  // namespace
}  // namespace shard::model
