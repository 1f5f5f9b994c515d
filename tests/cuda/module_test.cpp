// Is the module for GPUs found, whole and of this build, and is what is missing said where it cannot be used?
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <link.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <map>
#include <nlohmann/json.hpp>

#include "executor/cuda/api/load.h"
#include "traces/base/nvidia_libraries.h"

namespace shard::cuda {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

bool has_driver() {
  return fs::exists("/proc/driver/nvidia/version");
}

/// A folder of this test, empty.
fs::path scratch(const std::string& name) {
  const fs::path folder = fs::path(testing::TempDir()) / "module_test" / name;
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

void touch(const fs::path& file) {
  fs::create_directories(file.parent_path());
  std::ofstream(file) << "text";
}

#ifdef SHARDSCOPE_CUDA_MODULE
constexpr bool kBuilt = true;
const char* const kModule = SHARDSCOPE_CUDA_MODULE;
#else
constexpr bool kBuilt = false;
const char* const kModule = "";
#endif
#define NEEDS_MODULE() \
  if (!kBuilt) GTEST_SKIP() << "this build has no part for GPUs: there was no nvcc"

TEST(Loader, ABuildWithoutNvccSaysSo) {
  const Result<const ModuleTable*> module = load_module(std::vector<fs::path>{"/nowhere/a.so", "/nowhere/b.so"});
  ASSERT_FALSE(module);
  EXPECT_EQ(exit_code(module.error().code), 69);
  EXPECT_EQ(module.error().what, "this build has no part for GPUs: there is no /nowhere/a.so");
  EXPECT_THAT(module.error().help, HasSubstr("nvcc"));
}

TEST(Loader, WhatIsNoModuleIsRefusedWithItsPath) {
  const fs::path file = scratch("no_module") / "text.so";
  touch(file);
  const Result<const ModuleTable*> text = load_module(std::vector<fs::path>{"/nowhere/a.so", file});
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, Errc::unavailable);
  EXPECT_EQ(text.error().where, file.string());
  EXPECT_THAT(text.error().what, HasSubstr("cannot be used"));

  // A library, but another's.
  const Result<OpenLibrary> other = open_library("libstdc++.so.6", {});
  ASSERT_TRUE(other);
  const Result<const ModuleTable*> library = load_module(std::vector<fs::path>{other->path});
  ASSERT_FALSE(library);
  EXPECT_THAT(library.error().what, HasSubstr("it is no module of Shardscope's"));
}

TEST(Loader, TheModuleOfThisBuildIsFoundBesideItsPrograms) {
  NEEDS_MODULE();
  bool found = false;
  for (const fs::path& place : module_places()) found = found || (fs::exists(place) && fs::equivalent(place, kModule));
  EXPECT_TRUE(found);
  EXPECT_TRUE(load_module());
}

TEST(Module, OfAnotherBuildIsRefused) {
  NEEDS_MODULE();
  void* handle = dlopen(kModule, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(handle, nullptr) << dlerror();
  auto* entry = reinterpret_cast<ModuleEntry>(dlsym(handle, kModuleEntry));
  ASSERT_NE(entry, nullptr);
  EXPECT_NE(entry(kModuleVersion - 1)->refused, nullptr);
  EXPECT_EQ(entry(kModuleVersion - 1)->open, nullptr);
  EXPECT_EQ(entry(kModuleVersion)->refused, nullptr);
}

TEST(Module, BringsEveryCallAndEveryKernel) {
  NEEDS_MODULE();
  const Result<const ModuleTable*> module = load_module(std::vector<fs::path>{kModule});
  ASSERT_TRUE(module) << to_string(module.error());
  EXPECT_NE((*module)->open, nullptr);
  EXPECT_NE((*module)->inspect, nullptr);
  EXPECT_NE((*module)->inspect_libraries, nullptr);
  EXPECT_NE((*module)->open_nccl, nullptr);
  ASSERT_NE((*module)->kernels, nullptr);
  std::array<void*, sizeof(Kernels) / sizeof(void*)> functions{};
  std::memcpy(functions.data(), (*module)->kernels, sizeof functions);
  for (std::size_t i = 0; i < functions.size(); ++i) EXPECT_NE(functions[i], nullptr) << "kernel " << i;
}

TEST(Module, NeedsNothingOfNvidiaToBeOpened) {
  NEEDS_MODULE();
  void* handle = dlopen(kModule, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(handle, nullptr) << dlerror();
  link_map* map = nullptr;
  ASSERT_EQ(dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void*>(&map)), 0);
  const char* strings = nullptr;
  for (const ElfW(Dyn)* each = map->l_ld; each->d_tag != DT_NULL; ++each)
    if (each->d_tag == DT_STRTAB) strings = reinterpret_cast<const char*>(each->d_un.d_ptr);
  ASSERT_NE(strings, nullptr);
  std::vector<std::string> needed;
  for (const ElfW(Dyn)* each = map->l_ld; each->d_tag != DT_NULL; ++each)
    if (each->d_tag == DT_NEEDED) needed.emplace_back(strings + each->d_un.d_val);
  EXPECT_THAT(needed, testing::Contains("libc.so.6"));
  for (const std::string& name : needed)
    for (const char* of_nvidia : {"libcu", "libnv", "libnccl"}) EXPECT_FALSE(name.starts_with(of_nvidia)) << name;
}

TEST(Module, WithoutADriverEverythingSaysWhichIsNeeded) {
  NEEDS_MODULE();
  if (has_driver()) GTEST_SKIP() << "this machine has a driver";
  const Result<Device> device = open_device(0);
  ASSERT_FALSE(device);
  EXPECT_EQ(exit_code(device.error().code), 69);
  EXPECT_THAT(device.error().what,
              AllOf(HasSubstr("there is no NVIDIA driver"), HasSubstr("needs driver "), HasSubstr(" or newer")));
  EXPECT_THAT(device.error().help, HasSubstr("install driver"));
  const Result<MachineReport> machine = (*load_module())->inspect();
  ASSERT_FALSE(machine);
  EXPECT_EQ(machine.error().what, device.error().what);
}

TEST(Module, LibrariesAreThereWithTheirVersionOrSayWhyNot) {
  NEEDS_MODULE();
  std::vector<std::string> names;
  for (const LibraryReport& library : (*load_module())->inspect_libraries()) {
    names.push_back(library.name);
    EXPECT_NE(library.version.empty(), library.missing.empty()) << library.name;
    EXPECT_TRUE(library.version.empty() || fs::exists(library.path)) << library.path;
  }
  EXPECT_THAT(names, ElementsAre("cuBLASLt", "cuDNN", "NCCL"));
}

TEST(Libraries, AreLookedForInTheirFoldersInOrder) {
  const fs::path root = scratch("libraries");
  const fs::path own = root / "own";
  const fs::path toolkit = root / "toolkit" / "lib64";
  const fs::path path = root / "site" / "nvidia" / "cu13" / "lib";
  const fs::path virtual_environment = root / "venv" / "lib" / "python3.12" / "site-packages" / "nvidia";
  const fs::path python = root / "python" / "lib" / "python3.9" / "site-packages" / "nvidia" / "nccl" / "lib";
  for (const fs::path& folder : {own, toolkit, path, virtual_environment / "cudnn" / "lib",
                                 virtual_environment / "cublas" / "lib", virtual_environment / "empty", python})
    fs::create_directories(folder);
  touch(root / "python" / "bin" / "python3");
  const std::map<std::string, std::string> variables{{"SHARDSCOPE_CUDA_LIBRARIES", own.string() + ":/nowhere:relative"},
                                                     {"CUDA_HOME", (root / "toolkit").string()},
                                                     {"PYTHONPATH", ":" + (root / "site").string()},
                                                     {"VIRTUAL_ENV", (root / "venv").string()},
                                                     {"PATH", "/nowhere:" + (root / "python" / "bin").string()}};
  std::vector<fs::path> found = library_folders([&](const char* name) -> const char* {
    const auto variable = variables.find(name);
    return variable == variables.end() ? nullptr : variable->second.c_str();
  });
  // What this machine has of its own is in between and behind.
  std::erase_if(found, [&](const fs::path& folder) { return !folder.string().starts_with(root.string()); });
  EXPECT_THAT(found, ElementsAre(own, toolkit, path, virtual_environment / "cublas" / "lib",
                                 virtual_environment / "cudnn" / "lib", python));
}

TEST(Libraries, WhatIsMissingIsNamed) {
  const Result<OpenLibrary> absent = open_library("libshard_nowhere.so.1", {"/nowhere"});
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, Errc::unavailable);
  EXPECT_EQ(absent.error().what, "libshard_nowhere.so.1 was not found");
  const fs::path folder = scratch("broken");
  touch(folder / "libshard_broken.so.1");
  const Result<OpenLibrary> broken = open_library("libshard_broken.so.1", {folder});
  ASSERT_FALSE(broken);
  EXPECT_THAT(broken.error().what, HasSubstr("cannot be loaded: " + (folder / "libshard_broken.so.1").string()));
  const Result<OpenLibrary> library = open_library("libstdc++.so.6", {});
  ASSERT_TRUE(library);
  EXPECT_FALSE(find_symbol(*library, "no_such_function"));
}

#ifdef SHARDSCOPE_CUDA_MODULE
TEST(Build, NvccIsToldWhatWasMeant) {
  // CMake 3.25 leaves a request for C++20 out without a word.
  std::ifstream file(COMPILE_COMMANDS);
  const nlohmann::json commands = nlohmann::json::parse(file);
  int kernels = 0;
  for (const nlohmann::json& each : commands) {
    const auto command = each.at("command").get<std::string>();
    if (command.find(" -x cu ") == std::string::npos) continue;
    ++kernels;
    EXPECT_THAT(command, AllOf(HasSubstr(" -std=c++20 "), HasSubstr(" -fmad=false ")));
    std::istringstream architectures(ARCHITECTURES);  // "80-real;90-real;100"
    for (std::string each_of; std::getline(architectures, each_of, ';');)
      EXPECT_THAT(command, HasSubstr("sm_" + each_of.substr(0, each_of.find('-'))));
  }
  EXPECT_GT(kernels, 0);
}
#endif

}  // namespace
}  // namespace shard::cuda
