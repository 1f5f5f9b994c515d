// Tables and JSON of the GPUs of a machine.
#include "executor/commands/machine_report.h"

#include <nlohmann/json.hpp>

#include "sim/cli/output.h"
#include "sim/cli/sizes.h"
#include "traces/base/text_table.h"

namespace shard::commands {
namespace {

using Json = nlohmann::ordered_json;

/// "13.0" of 13000.
std::string cuda_version(std::int32_t version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string user_text(const cuda::DeviceUser& user) {
  return "process " + std::to_string(user.pid) + (user.name.empty() ? "" : " (" + user.name + ")") + " with " +
         (user.memory ? cli::mib(*user.memory) : "memory that is not known");
}

std::string users_text(const cuda::MachineReport& report) {
  std::string text;
  for (std::size_t i = 0; i < report.devices.size(); ++i) {
    const auto& users = report.devices[i].users;
    text += "GPU " + std::to_string(i);
    if (!users) {
      text += ": who uses it is not known: " + report.users_unknown + "\n";
    } else if (users->empty()) {
      text += " is used by nobody else\n";
    } else {
      text += " is used by\n";
      for (const cuda::DeviceUser& user : *users) text += "  " + user_text(user) + "\n";
    }
  }
  return text;
}

Json to_json(const cuda::DeviceReport& device, std::size_t index) {
  Json users;
  if (device.users) {
    users = Json::array();
    for (const cuda::DeviceUser& user : *device.users)
      users.push_back({{"pid", user.pid},
                       {"name", user.name.empty() ? Json() : Json(user.name)},
                       {"memory_bytes", user.memory ? Json(user.memory->count()) : Json()}});
  }
  return {{"index", index},
          {"name", device.facts.name},
          {"bus", device.bus},
          {"compute_capability", cuda::capability_text(device.facts.compute_capability)},
          {"multiprocessors", device.facts.multiprocessors},
          {"memory_bytes", device.memory.total.count()},
          {"free_bytes", device.memory.free.count()},
          {"users", users}};
}

}  // namespace

std::string to_text(const cuda::MachineReport& report) {
  std::string text = "NVIDIA driver" + (report.driver.empty() ? "" : " " + report.driver) + ", which runs CUDA " +
                     cuda_version(report.cuda) + "; built with CUDA " + cuda_version(report.runtime) + "\n\n";
  TextTable devices({"GPU", "name", "compute capability", "multiprocessors", "memory", "free", "bus"}, 2);
  for (std::size_t i = 0; i < report.devices.size(); ++i) {
    const cuda::DeviceReport& each = report.devices[i];
    devices.add({std::to_string(i), each.facts.name, cuda::capability_text(each.facts.compute_capability),
                 std::to_string(each.facts.multiprocessors), cli::mib(each.memory.total), cli::mib(each.memory.free),
                 each.bus});
  }
  TextTable libraries({"library", "version", "where"}, 3);
  for (const cuda::LibraryReport& each : report.libraries)
    libraries.add(
        {each.name, each.version.empty() ? "none" : each.version, each.version.empty() ? each.missing : each.path});
  return text + devices.str() + "\n" + users_text(report) + "\n" + libraries.str();
}

Json to_json(const cuda::MachineReport& report) {
  Json j = cli::json_document("inspect");
  j["device"] = "cuda";
  j["driver"] = report.driver.empty() ? Json() : Json(report.driver);
  j["driver_cuda"] = cuda_version(report.cuda);
  j["runtime_cuda"] = cuda_version(report.runtime);
  j["users_unknown"] = report.users_unknown.empty() ? Json() : Json(report.users_unknown);
  j["devices"] = Json::array();
  for (std::size_t i = 0; i < report.devices.size(); ++i) j["devices"].push_back(to_json(report.devices[i], i));
  j["libraries"] = Json::array();
  for (const cuda::LibraryReport& each : report.libraries)
    j["libraries"].push_back({{"name", each.name},
                              {"version", each.version.empty() ? Json() : Json(each.version)},
                              {"path", each.path.empty() ? Json() : Json(each.path)},
                              {"missing", each.missing.empty() ? Json() : Json(each.missing)}});
  return j;
}

}  // namespace shard::commands
