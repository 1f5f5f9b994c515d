// Does an MPI communicator keep the contract? Run under mpirun: mpi_conformance shared|messages. Exits 1 on a finding.
#include <cstdio>
#include <string_view>

#include "executor/comm/mpi.h"
#include "tests/comm/conformance.h"

int main(int argc, char** argv) {
  using namespace shard;
  using namespace shard::test;
  const bool messages = argc > 1 && std::string_view(argv[1]) == "messages";
  auto comm = make_mpi(messages ? MpiTransport::messages : MpiTransport::shared);
  if (!comm) return std::fprintf(stderr, "%s\n", to_string(comm.error()).c_str()), exit_code(comm.error().code);
  const auto arena = (*comm)->make_arena(kArena);
  if (!arena) return std::fprintf(stderr, "%s\n", to_string(arena.error()).c_str()), exit_code(arena.error().code);
  bool found = false;
  for (const ConformanceCase& test : conformance_cases()) {
    Findings findings;
    test.run(**comm, *arena, findings);
    for (const std::string& finding : findings)
      std::fprintf(stderr, "%s rank %d: %s\n", test.name.c_str(), (*comm)->rank().value, finding.c_str());
    found = found || !findings.empty();
    if (found) break;
  }
  if (found) (*comm)->abort("a finding");
  if (!found && (*comm)->rank().value == 0)
    std::printf("%zu cases on %d ranks of %s\n", conformance_cases().size(), (*comm)->size(),
                std::string((*comm)->name()).c_str());
  return found ? 1 : 0;
}
