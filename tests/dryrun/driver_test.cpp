// Does who asks the driver itself, or brings a runtime of its own, get what the runtime's functions say?
#include <gmock/gmock.h>

#include <filesystem>
#include <string>

#include "tests/dryrun/fake_pytorch.h"

namespace shard::test {
namespace {

class OfTheDriver : public FakePyTorch {
 protected:
  /// Runs lines that have `cuda`, and `named` for the driver's functions by name and version.
  Outcome asked(const std::string& lines) {
    return dryrun(R"(import ctypes
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_ulonglong, c_void_p, create_string_buffer
cuda = ctypes.CDLL(None)

def named(name, version):
    found, how = c_void_p(), c_int(-1)
    assert cuda.cuGetProcAddress_v2(name.encode(), byref(found), version, c_ulonglong(0), byref(how)) == 0 and how.value == 0
    return ctypes.CFUNCTYPE(c_int)(found.value)

)" + lines,
                  {"--json", "--devices", "4"});
  }
};

TEST_F(OfTheDriver, MemoryByTheDriversFunctionsIsTheSameMemory) {
  const Outcome outcome =
      asked(R"(address, free, total, seen = c_void_p(), c_size_t(), c_size_t(), create_string_buffer(8)
assert named("cuMemAlloc", 3020)(byref(address), c_size_t(6 << 20)) == 0 and address.value
assert cuda.cudaMemGetInfo(byref(free), byref(total)) == 0 and total.value - free.value == 6 << 20
assert named("cuMemcpyHtoD", 3020)(address, b"eight by", c_size_t(8)) == 0
assert cuda.cudaMemcpy(seen, address, c_size_t(8), 2) == 0 and seen.raw == b"eight by"
assert named("cuMemAlloc", 3020)(byref(c_void_p()), c_size_t(1 << 40)) == 2
assert named("cuMemFree", 3020)(address) == 0
assert named("cuMemGetInfo", 3020)(byref(free), byref(total)) == 0 and total.value == free.value
)");
  EXPECT_EQ(json_of(outcome, 0)["peak_reserved_bytes"], 6 << 20) << outcome.err;
}

TEST_F(OfTheDriver, ANameMeansWhatItDidWhenTheCallerWasBuilt) {
  const Outcome outcome = asked(R"(older, newer, found, how = c_void_p(), c_void_p(), c_void_p(), c_int(-1)
assert named("cuGetProcAddress", 11030)(b"cuInit", byref(found), 2000, c_ulonglong(0), c_void_p(1)) == 0 and found.value
assert named("cuGetProcAddress", 12000)(b"cuInit", byref(newer), 2000, c_ulonglong(0), byref(how)) == 0 and how.value == 0
assert newer.value == found.value
)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

TEST_F(OfTheDriver, TablesWithoutNamesAreNotFound) {
  const Outcome outcome = asked(R"(table = c_void_p(1)
assert cuda.cuGetExportTable(byref(table), create_string_buffer(16)) == 500 and not table.value
)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

/// As Cython makes it: C functions in capsules, which modules that are loaded later take from there.
TEST_F(OfTheDriver, TheRuntimeOfCudaPythonIsTheStandIns) {
  std::filesystem::create_directories(scratch_.path() / "packages" / "cuda" / "bindings");
  scratch_.write("packages/cuda/bindings/cyruntime.py", R"-(import ctypes
make = ctypes.pythonapi.PyCapsule_New
make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
signature = ctypes.create_string_buffer(b"int (int *)")
at = ctypes.addressof(signature)
__pyx_capi__ = {name: make(16, at, None) for name in ("cudaGetDeviceCount", "cudaFrobnicate", "helper")}
)-");
  scratch_.write("packages/cuda/bindings/__init__.py", "");
  scratch_.write("packages/cuda/__init__.py", "");
  const Outcome outcome = asked(R"-(from cuda.bindings import cyruntime
take = ctypes.pythonapi.PyCapsule_GetPointer
take.restype, take.argtypes = c_void_p, [ctypes.py_object, c_char_p]
address = {name: take(each, b"int (int *)") for name, each in cyruntime.__pyx_capi__.items()}
count = c_int()
assert ctypes.CFUNCTYPE(c_int, c_void_p)(address["cudaGetDeviceCount"])(ctypes.addressof(count)) == 0 and count.value == 4
assert ctypes.CFUNCTYPE(c_int)(address["cudaFrobnicate"])() == 0
assert address["helper"] == 16
)-");
  EXPECT_EQ(json_of(outcome, 0)["unknown_functions"], nlohmann::json({"cudaFrobnicate"})) << outcome.err;
}

}  // namespace
}  // namespace shard::test
