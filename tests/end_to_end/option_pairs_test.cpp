// Does every option that simulate declares change a framework's answer, or is it refused by its name?
#include <gmock/gmock.h>

#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "sim/cli/describe.h"
#include "sim/like/frameworks/framework.h"
#include "tests/end_to_end/program.h"

namespace shard::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

/// Of printing, of files, and what says no more than another option of the list.
const std::vector<std::string> kNotAsked{"help",  "config",       "model",   "like", "cluster", "json",  "format",
                                         "exact", "print-config", "what-if", "find", "trace",   "nodes", "parameters"};

/// What says what is so without it, or of a small model does not show: Adam's and AdamW's states are alike, model data
/// rest on the device, losses are of logits in fp32, gradients are summed in the masters' type, Gemini is fp16 and
/// predicted for three steps.
bool is_alike(const like::Framework& framework, const std::string& option, const std::string& value) {
  return (option == "optimizer" && value == "adam") || (option.ends_with("-placement") && value == "device") ||
         ((option == "logits" || option == "reduce-dtype") && value == "fp32") ||
         (option == "reduce-dtype" && framework.name == "fsdp1") ||
         (framework.teller == like::Teller::gemini &&
          ((option == "precision" && value == "fp16") || (option == "steps" && value == "3")));
}

/// Values that are not the default: words, or numbers within every option's range.
std::vector<std::string> values_of(const cli::OptionDescription& option) {
  if (option.name == "memory-fraction") return {"0.0001"};  // less than the small model reserves
  std::vector<std::string> values;
  for (const std::string& word : option.values)
    if (word != option.default_text) values.push_back(word);
  if (values.empty() && option.value_name.empty()) return {""};
  if (values.empty())
    for (const char* number : {"2", "0.5", "3"})
      if (number != option.default_text) values.emplace_back(number);
  return values;
}

/// What is predicted, without what was taken for it.
json answer_of(const Outcome& outcome) {
  json answer = json::parse(outcome.out);
  for (const char* key : {"assumed", "strategy"}) answer.erase(key);
  return answer;
}

Words line_of(const like::Framework& framework) {
  Words words{"simulate", "--cluster", "h100-80gb-x8", "--json", "--like", framework.full_name()};
  const bool mlp = framework.teller == like::Teller::pytorch_1_8;
  words.insert(words.end(), {"--model", mlp ? "mlp-20x2000" : "gpt2-nano"});
  if (framework.name != "pytorch") words.insert(words.end(), {"--world-size", "4"});
  if (framework.teller == like::Teller::eager) words.insert(words.end(), {"--precision", "bf16"});
  if (framework.teller == like::Teller::gemini) words.insert(words.end(), {"--chunk-size", "64Ki"});
  return words;
}

TEST(OptionPairs, AnOptionCountsOrIsRefusedByName) {
  const Outcome described = shardscope({"simulate", "--help=json"});
  const Result<cli::CommandDescription> simulate = cli::parse_description(described.out);
  ASSERT_TRUE(simulate) << described.err;
  std::vector<cli::OptionDescription> options;
  for (const cli::GroupDescription& group : simulate->groups)
    for (const cli::OptionDescription& option : group.options)
      if (!option.is_file && std::ranges::find(kNotAsked, option.name) == kNotAsked.end()) options.push_back(option);
  ASSERT_GT(options.size(), 40U);

  const char* const asked = std::getenv("SHARDSCOPE_OPTION_FRAMEWORK_PAIRS");
  const int pairs = asked == nullptr ? 400 : std::atoi(asked);
  std::mt19937 random(20261125);
  const auto below = [&](std::size_t count) {
    return std::uniform_int_distribution<std::size_t>(0, count - 1)(random);
  };
  int refused = 0;
  std::map<std::string, Outcome> plain;  // of each framework, without the option
  for (int i = 0; i < pairs; ++i) {
    const like::Framework& framework = like::frameworks()[below(like::frameworks().size())];
    const cli::OptionDescription& option = options[below(options.size())];
    const std::vector<std::string> values = values_of(option);
    if (values.empty()) continue;
    const std::string value = values[below(values.size())];
    if (is_alike(framework, option.name, value)) continue;
    Words words = line_of(framework);
    if (std::ranges::find(words, "--" + option.name) != words.end()) continue;
    Outcome& without = plain[framework.full_name()];
    if (without.out.empty()) without = shardscope(words);
    ASSERT_THAT(without.exit_code, testing::AnyOf(0, 3)) << without.err;
    words.push_back("--" + option.name + (value.empty() ? "" : "=" + value));
    const Outcome with = shardscope(words);
    const std::string pair = framework.full_name() + " " + words.back();
    if (with.exit_code == 0 || with.exit_code == 3) {
      EXPECT_NE(answer_of(with), answer_of(without)) << pair << " changes nothing";
      continue;
    }
    ++refused;
    EXPECT_THAT(with.exit_code, testing::AnyOf(2, 65, 78)) << pair << "\n" << with.err;
    EXPECT_THAT(with.err, HasSubstr(option.name)) << pair;
  }
  EXPECT_GT(refused, pairs / 10);
}

}  // namespace
}  // namespace shard::test
