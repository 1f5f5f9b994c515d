// Fuzz target: no text makes the reader of operators' ranges crash, and an operator that it reads has a name and sizes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "tests/fuzz/limits.h"
#include "traces/import/nsys_program.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const shard::fuzz::Limits limits(size);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto made = shard::import::operator_of_range(text);
  if (!made) return 0;
  if (made->name.empty() || !text.starts_with(made->name)) std::abort();
  for (const auto& tensor : made->inputs)
    if (tensor.sizes.empty() || std::ranges::any_of(tensor.sizes, [](std::int64_t each) { return each < 0; })) std::abort();
  return 0;
}
