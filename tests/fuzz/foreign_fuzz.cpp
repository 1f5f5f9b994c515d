// Fuzz target: no content makes the reader of another tool's configurations crash, cost more than it may, lose a leaf,
// or refuse without a word. Macro: FUZZ_OPTION, the option whose files it reads.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "sim/foreign/foreign_config.h"
#include "sim/foreign/tools.h"
#include "tests/fuzz/limits.h"

namespace {

bool covers(const std::string& told, const std::string& pointer) {
  return pointer.starts_with(told) && (pointer.size() == told.size() || pointer[told.size()] == '/');
}

bool is_told(const shard::foreign::ForeignConfig& config, const std::string& pointer) {
  for (const std::string& key : config.understood)
    if (covers(key, pointer)) return true;
  for (const shard::foreign::LeftOut& each : config.left_out)
    if (covers(each.key, pointer)) return true;
  return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shard;
  const foreign::Tool& tool = *foreign::tool_of_option(FUZZ_OPTION);
  // NOLINTNEXTLINE: bytes are characters
  std::string content(reinterpret_cast<const char*>(data), size);
  const fuzz::Limits limits(size);
  const foreign::Text text = foreign::text_of("file", std::move(content));
  const Result<foreign::ForeignConfig> config = foreign::read_as(tool, text, foreign::Given{});
  if (!config) {
    if (config.error().what.empty()) std::abort();
    return 0;
  }
  for (const foreign::Setting& each : config->settings)
    if (each.option.empty() || each.value.empty() || each.pointer.empty()) std::abort();
  for (const foreign::LeftOut& each : config->left_out)
    if (each.reason.empty()) std::abort();
  // Of programs the tree is none of the reader's: they are read by readers of their own.
  const std::string_view option = FUZZ_OPTION;
  if (option != "ds-config" && option != "accelerate-config") {
    for (const foreign::LeftOut& each : config->left_out)
      if (std::ranges::count(config->left_out, each.key, &foreign::LeftOut::key) != 1 ||
          std::ranges::find(config->understood, each.key) != config->understood.end())
        std::abort();
    return 0;
  }
  // The tree of `text` is what tells whose file it is. DeepSpeed reads by Hjson what is no JSON, and where YAML, too,
  // can read that, the two may find different leaves in it.
  const Result<foreign::Value> root = option == "ds-config" ? foreign::read_deepspeed_json(text.content, text.file)
                                                            : Result<foreign::Value>(*text.tree);
  if (!root) std::abort();
  std::size_t looked = 0;
  for (const foreign::Leaf& leaf : foreign::leaves(*root))
    if (++looked < 200 && !is_told(*config, leaf.pointer)) std::abort();
  return 0;
}
