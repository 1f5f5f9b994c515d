// Asks the module for GPUs what there is, and prints it.
#include "executor/commands/device_command.h"

#include <iostream>

#include "executor/commands/machine_report.h"
#include "executor/cuda/api/load.h"
#include "sim/cli/output.h"
#include "sim/commands/printing.h"

namespace shard::commands {
namespace {

constexpr const char* kDeviceDetails =
    R"(Says which GPUs are here, what of their memory is free, who else uses them, which CUDA the driver runs and this
build has, and which of NVIDIA's libraries were found. Who uses a GPU is known where the driver's libnvidia-ml is found.
Libraries are looked for on the loader's path, in SHARDSCOPE_CUDA_LIBRARIES, CUDA_HOME, /usr/local/cuda and Python's
nvidia packages. Exits 69 without a driver or a GPU, and where this build has no part for them.

Examples:
  shardscope inspect --device cuda
  shardscope inspect --device cuda --json
)";

}  // namespace

int device_command(std::span<const std::string> arguments) {
  cli::OutputOptions output;
  cli::Command command("shardscope", "inspect", "says what GPUs are here", kDeviceDetails);
  cli::Group group = command.group("Inspect");
  const std::vector<cli::Group::Named> devices{{"cuda", "NVIDIA's GPUs"}};
  group
      .add_words(
          "device", devices, [&devices] { return devices.size(); }, [](std::size_t) {}, "which kind of device")
      .required();
  cli::add_output_options(command, output);
  if (const auto code = parsed(command, arguments)) return *code;
  const Result<cli::Format> format = document_format(command, output);
  if (!format) return failed(format.error());
  const Result<const cuda::ModuleTable*> module = cuda::load_module();
  if (!module) return failed(module.error());
  const Result<cuda::MachineReport> report = (*module)->inspect();
  if (!report) return failed(report.error());
  if (*format == cli::Format::json)
    std::cout << cli::json_text(to_json(*report));
  else
    cli::print(std::cout, to_text(*report));
  return 0;
}

}  // namespace shard::commands
