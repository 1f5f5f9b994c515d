// Fuzzes the reader of tables of published runs: any bytes end in rows of equal length or an error.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "sim/validate/csv.h"
#include "sim/validate/published_run.h"
#include "tests/fuzz/limits.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const shard::fuzz::Limits limits(size);
  const shard::Result<shard::validate::CsvTable> table = shard::validate::parse_csv(text, "fuzz");
  if (table) {
    for (const auto& row : table->rows)
      if (row.size() != table->columns.size()) std::abort();
    if (table->lines.size() != table->rows.size()) std::abort();
  }
  if (shard::validate::read_published_runs(text, "fuzz") && !table) std::abort();
  return 0;
}
