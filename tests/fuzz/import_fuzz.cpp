// Fuzz target: no bytes make an importer crash, hang, or break its promises. FUZZ_PREFIX, the first bytes of a file of
// the kind to fuzz, keeps mutations from turning it into a file of another kind.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tests/fuzz/import_check.h"
#include "traces/export/chrome_json.h"
#include "traces/export/perfetto.h"
#include "traces/export/snapshot_again.h"
#include "traces/import/combine.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shard;
  const auto* first = reinterpret_cast<const std::byte*>(data);
  std::vector<std::byte> bytes(first, first + size);
  constexpr std::string_view kPrefix(FUZZ_PREFIX, sizeof(FUZZ_PREFIX) - 1);
  if (bytes.size() < kPrefix.size()) bytes.resize(kPrefix.size());
  std::transform(kPrefix.begin(), kPrefix.end(), bytes.begin(), [](char c) { return static_cast<std::byte>(c); });
  const Result<LoadedTrace> loaded = fuzz::load_checked(bytes);
  if (loaded && size % 4 == 1) {  // with itself: at one time it is refused, or has no events
    std::vector<NamedTrace> twice;
    for (const char* name : {"first", "second"}) twice.push_back({name, *load_any(bytes, "fuzz")});
    if (const Result<LoadedTrace> both = combine(std::move(twice))) fuzz::check(*both);
  }
  if (!loaded || size % 4 != 0) return 0;  // exporting costs more than reading
  fuzz::require(export_chrome_json(loaded->trace, "/dev/null").has_value());
  fuzz::require(export_perfetto(loaded->trace, "/dev/null").has_value());
  if (loaded->snapshot) fuzz::require(export_snapshot_again(*loaded->snapshot, loaded->trace, "/dev/null").has_value());
  return 0;
}
