// Fuzz target: no bytes make the readers of libraries crash, or name a function that is none of CUDA's.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

#include "profiler/dryrun/imports.h"
#include "tests/fuzz/limits.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const shard::fuzz::Limits limits(size);
  const auto* const bytes = reinterpret_cast<const std::byte*>(data);
  for (const std::string& name : shard::dryrun::imported_functions(std::span(bytes, size)))
    if (name.find("cu") == std::string::npos && !name.starts_with("n")) std::abort();
  for (const std::string& name : shard::dryrun::functions_named_in({reinterpret_cast<const char*>(data), size}))
    if (!name.starts_with("cu")) std::abort();
  return 0;
}
