// A shared library made out of names: each is a function that answers success and says once that it was asked.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace shard::dryrun {

/// Where the functions lead.
struct StubTarget {
  std::string_view library;  ///< its soname; who looks for a name in the stubs finds what it has, too
  std::string_view handler;  ///< `extern "C" long handler(const char* name)` in it
};

/// An ELF shared object for x86-64 Linux with a function for each name. A call `f(...)` becomes `handler("f")`, whose
/// result is its own. Arguments are neither read nor written.
[[nodiscard]] std::vector<std::byte> stub_library(const std::set<std::string>& names, std::string_view soname,
                                                  const StubTarget& target);

}  // namespace shard::dryrun
