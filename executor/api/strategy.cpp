// A strategy's fields as the options that they are.
#include <shardscope/strategy.h>

#include <array>
#include <charconv>

namespace shardscope {
namespace {

std::string word_of(const std::string& text) {
  return text;
}
/// The shortest text that reads back as this number.
template <class Number>
std::string word_of(Number number) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
  return {text.data(), end};
}

}  // namespace

Options to_options(const Strategy& s) {
  Options words;
  const auto add = [&](const char* option, const auto& value) {
    if (!value) return;
    words.push_back(std::string("--") + option);
    words.push_back(word_of(*value));
  };
  add("ranks", s.ranks);
  add("stage", s.stage);
  add("unit", s.unit);
  add("chunk-size", s.chunk_size);
  add("placement", s.placement);
  add("precision", s.precision);
  add("recompute", s.recompute);
  add("optimizer", s.optimizer);
  add("lr", s.learning_rate);
  add("micro-batch", s.micro_batch);
  add("global-batch", s.global_batch);
  add("sequence", s.sequence);
  add("threads", s.threads);
  add("seed", s.seed);
  add("data", s.data);
  words.insert(words.end(), s.more.begin(), s.more.end());
  return words;
}

}  // namespace shardscope
