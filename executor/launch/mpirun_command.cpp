// Options of Open MPI 4.1's mpirun(1); the reason stands beside each.
#include "executor/launch/mpirun_command.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "executor/launch/role.h"

namespace shard {

std::vector<std::string> mpirun_arguments(const std::string& mpirun, std::span<const std::string> program, int ranks,
                                          const MpirunPlaces& places) {
  std::vector<std::string> arguments = {mpirun, "-n", std::to_string(ranks)};
  const auto set = [&](const char* variable, const std::string& value) {
    arguments.insert(arguments.end(), {"--mca", variable, value});
  };
  arguments.insert(arguments.end(), {"--oversubscribe",    // more ranks than cores
                                     "--bind-to", "none",  // threads of a rank use all cores
                                     "--quiet"});
  set("plm", "isolated");  // this machine only: neither ssh nor a batch system is asked
  // The launcher's own talk needs no network. Its port is open on every address all the same: Open MPI 4.1 has no
  // parameter for where it listens, and does not start without one.
  set("oob_tcp_if_include", "lo");
  set("pml", "ob1");  // messages through shared memory only:
  set("btl", "self,vader");
  // Neither are networks looked for nor files read by it: loading these costs each rank as much as a small model's
  // step.
  set("mtl", "^ofi,psm,psm2");
  set("io", "^ompio,romio321");
  set("mpi_yield_when_idle", "1");          // MPI's own waits give their core away
  set("orte_tmpdir_base", places.session);  // all files where the parent removes them
  if (!places.memory.empty()) {
    set("btl_vader_backing_directory", places.memory);
    set("mpi_add_procs_cutoff", "1024");  // all files there are opened by all ranks as they start, none later
    if (std::getenv("OMPI_MCA_osc_sm_backing_directory") == nullptr) set("osc_sm_backing_directory", places.memory);
  }
  arguments.insert(arguments.end(), {"-x", kParentVariable, "--"});
  arguments.insert(arguments.end(), program.begin(), program.end());
  return arguments;
}

std::vector<std::string> mpirun_environment(const MpirunPlaces& places) {
  constexpr std::string_view kHidden[] = {"SLURM_",
                                          "PBS_",
                                          "LSB_",
                                          "COBALT_",
                                          "PE_HOSTFILE=",
                                          "PMI_",
                                          "PMIX_",
                                          "ORTE_",
                                          "OPAL_",
                                          "OMPI_COMM_WORLD_",
                                          "OMPI_UNIVERSE_",
                                          "OMPI_ALLOW_RUN_AS_ROOT",
                                          "SHARDSCOPE_PARENT="};
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (std::none_of(std::begin(kHidden), std::end(kHidden), [&](auto prefix) { return text.starts_with(prefix); }))
      environment.emplace_back(text);
  }
  environment.emplace_back("OMPI_ALLOW_RUN_AS_ROOT=1");
  environment.emplace_back("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1");
  // Open MPI asks for all devices of the PCI bus by name, in each process, and places nothing by them here; and for
  // displays, with whose server mpirun would die.
  if (std::getenv("HWLOC_COMPONENTS") == nullptr) environment.emplace_back("HWLOC_COMPONENTS=-pci,-gl");
  environment.push_back(std::string(kParentVariable) + "=" + places.socket);
  return environment;
}

std::string find_in_path(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "/usr/bin:/bin" : path;
  while (!rest.empty()) {
    const std::size_t colon = std::min(rest.find(':'), rest.size());
    std::string candidate(rest.substr(0, colon));
    candidate.append("/").append(name);
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
    rest.remove_prefix(std::min(colon + 1, rest.size()));
  }
  return {};
}

}  // namespace shard
