// Stands in for nsys.cpp and nsys_program.cpp where SQLite is missing.
#include <string>

#include "traces/import/nsys.h"
#include "traces/import/nsys_program.h"

namespace shard::import {
namespace {

Error unavailable(const std::string& where) {
  return {.code = Errc::unavailable,
          .what = "is an nsys export (SQLite), which this program was built without",
          .where = where,
          .help = "install libsqlite3-dev and build again"};
}

}  // namespace

Result<LoadedTrace> import_nsys(const std::filesystem::path& path) {
  return unavailable(path.string());
}

Result<LoadedTrace> import_nsys(std::span<const std::byte>, std::string_view label) {
  return unavailable(std::string(label));
}

Result<KinetoProgram> read_nsys_program(const std::filesystem::path& path) {
  return unavailable(path.string());
}

}  // namespace shard::import
