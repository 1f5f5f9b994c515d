// Does a library made out of names load, have them all, and tell which was called?
#include "profiler/dryrun/stub_library.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "profiler/dryrun/imports.h"

static std::string last_called;  // NOLINT: set through a C function

extern "C" __attribute__((visibility("default"))) long dryrun_test_handler(const char* name) {
  last_called = name;
  return 42;
}

namespace shard::dryrun {
namespace {

namespace fs = std::filesystem;

fs::path written(const std::vector<std::byte>& bytes, const std::string& name) {
  fs::path path = fs::path(testing::TempDir()) / name;
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return path;
}

class StubLibrary : public ::testing::TestWithParam<int> {};

TEST_P(StubLibrary, HasEveryNameAndTellsItsHandler) {
  std::mt19937 random(static_cast<unsigned>(GetParam()));
  std::set<std::string> names;
  while (static_cast<int>(names.size()) < GetParam()) names.insert("cudaThing" + std::to_string(random()));
  const fs::path path = written(stub_library(names, "libstub.so", {"libc.so.6", "dryrun_test_handler"}),
                                "libstub" + std::to_string(GetParam()) + ".so");
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  for (const std::string& name : names) {
    auto* const function = reinterpret_cast<long (*)(int, double)>(dlsym(library, name.c_str()));
    ASSERT_NE(function, nullptr) << name;
    EXPECT_EQ(function(1, 2.0), 42);
    EXPECT_EQ(last_called, name);
  }
  EXPECT_EQ(dlsym(library, "cudaOther"), nullptr);
  EXPECT_NE(dlsym(library, "malloc"), nullptr) << "of the library behind it";
  dlclose(library);
}

INSTANTIATE_TEST_SUITE_P(Sizes, StubLibrary, ::testing::Values(0, 1, 2, 700));

TEST(Imports, AreTheFunctionsOfCudaAlone) {
  const Result<std::set<std::string>> names = imported_functions(fs::path(USES_CUDA));
  ASSERT_TRUE(names) << to_string(names.error());
  for (const char* const imported : {"cudaFree", "cudaFrobnicate", "cudaLaunchKernel", "cublasGemmEx"})
    EXPECT_TRUE(names->contains(imported)) << imported;
  for (const std::string& name : *names) EXPECT_TRUE(name.find("cu") != std::string::npos) << name;
  const Result<std::set<std::string>> exported = exported_functions(fs::path(USES_CUDA));
  ASSERT_TRUE(exported);
  EXPECT_TRUE(exported->contains("allocate_and_frobnicate"));
}

TEST(Imports, FunctionsOfTheDriverAreAskedForByName) {
  EXPECT_EQ(functions_named_in("dlsym(h, \"cuMemMap\"); cuMemMap_t f; xcuMemFree cublasCreate cuda cu cuInit"),
            (std::set<std::string>{"cuInit", "cuMemMap"}));
  EXPECT_TRUE(functions_named_in(std::string(100, 'x') + " cuM" + std::string(100, 'a')).empty());
  EXPECT_TRUE(named_functions(fs::path(USES_CUDA)).contains("cuMemMap"));
  EXPECT_TRUE(named_functions("/nowhere/lib.so").empty());
}

TEST(Imports, OfWhatIsNoLibraryThereAreNone) {
  EXPECT_TRUE(imported_functions(fs::path(TEST_DATA) / "dryrun" / "uses_cuda.c")->empty());
  EXPECT_EQ(imported_functions(fs::path("/nowhere/lib.so")).error().code, Errc::no_input);
}

TEST(Imports, OfDamagedLibrariesAreReadWithoutHarm) {
  std::ifstream in(USES_CUDA, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  const std::vector<std::byte> whole(first, first + text.size());
  std::mt19937 random(7);
  for (int i = 0; i < 3000; ++i) {
    std::vector<std::byte> bytes = whole;
    for (int flips = 0; flips < 8; ++flips) bytes[random() % (i % 2 == 0 ? 64 : bytes.size())] = std::byte(random());
    if (i % 3 == 0) bytes.resize(random() % bytes.size());
    (void)imported_functions(std::span<const std::byte>(bytes));
  }
}

}  // namespace
}  // namespace shard::dryrun
