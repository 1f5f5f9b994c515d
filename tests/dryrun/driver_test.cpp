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

TEST_F(OfTheDriver, AnotherProcessOpensMemoryThatStaysItsOwners) {
  const Outcome outcome = asked(R"(import os, subprocess, sys
class Handle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_byte * 64)]

handle, address, again, free, total = Handle(), c_void_p(), c_void_p(), c_size_t(), c_size_t()
opening, closing = cuda.cudaIpcOpenMemHandle, cuda.cudaIpcCloseMemHandle
opening.argtypes = [c_void_p, Handle, c_uint]
if sys.argv[1:]:
    ctypes.memmove(byref(handle), bytes.fromhex(sys.argv[1]), 64)
    assert opening(byref(address), handle, 1) == opening(byref(again), handle, 1) == 0 and address.value == again.value
    attributes = (c_ulonglong * 4)()
    assert cuda.cudaPointerGetAttributes(attributes, address) == 0
    assert attributes[0] == 3 << 32 | 2, "memory of card 3"
    assert cuda.cudaMemGetInfo(byref(free), byref(total)) == 0 and free.value == total.value
    assert closing(address) == closing(address) == 0 and closing(address) == 1
    assert opening(byref(address), Handle(), 1) == 400
    sys.exit()
assert cuda.cudaSetDevice(3) == 0 and cuda.cudaMalloc(byref(address), c_size_t(6 << 20)) == 0
assert cuda.cudaIpcGetMemHandle(byref(handle), c_void_p(address.value + 512)) == 0
assert cuda.cudaIpcGetMemHandle(byref(Handle()), c_void_p(4096)) == 1
assert opening(byref(again), handle, 1) == 201, "its own"
subprocess.run([sys.executable, sys.argv[0], bytes(handle.bytes).hex()], check=True)
)");
  EXPECT_EQ(json_of(outcome, 0)["peak_reserved_bytes"], 6 << 20) << outcome.err;
}

TEST_F(OfTheDriver, MemoryGoesToAnotherProcessByAFileDescriptor) {
  const Outcome outcome = asked(R"(import os, subprocess, sys
handle, address, free, total = c_ulonglong(), c_ulonglong(), c_size_t(), c_size_t()
size = c_size_t(4 << 20)

def used(card):
    assert cuda.cudaSetDevice(card) == 0 and cuda.cudaMemGetInfo(byref(free), byref(total)) == 0
    return total.value - free.value

def card_of_mapped():
    assert cuda.cuMemAddressReserve(byref(address), size, c_size_t(0), c_ulonglong(0), c_ulonglong(0)) == 0
    assert cuda.cuMemMap(address, size, c_size_t(0), handle, c_ulonglong(0)) == 0
    attributes = (c_ulonglong * 4)()
    assert cuda.cudaPointerGetAttributes(attributes, c_void_p(address.value + 100)) == 0
    return attributes[0] >> 32

if sys.argv[1:]:
    assert cuda.cuMemImportFromShareableHandle(byref(handle), c_void_p(int(sys.argv[1])), 1) == 0
    assert card_of_mapped() == 2 and used(2) == 0
    assert cuda.cuMemUnmap(address, size) == 0 and cuda.cuMemRelease(handle) == 0 and cuda.cuMemRelease(handle) == 1
    assert cuda.cuMemImportFromShareableHandle(byref(handle), c_void_p(0), 1) == 1, "not of a card"
    sys.exit()
properties, file, again = (c_int * 8)(1, 1, 1, 2), c_int(-1), c_ulonglong()
assert cuda.cuMemCreate(byref(handle), size, properties, c_ulonglong(0)) == 0
assert cuda.cuMemExportToShareableHandle(byref(file), handle, 1, c_ulonglong(0)) == 0 and file.value >= 0
os.set_inheritable(file.value, True)
subprocess.run([sys.executable, sys.argv[0], str(file.value)], close_fds=False, check=True, stdin=subprocess.DEVNULL)
assert card_of_mapped() == 2 and used(2) == 4 << 20
assert cuda.cuMemRetainAllocationHandle(byref(again), c_void_p(address.value)) == 0 and again.value == handle.value
assert cuda.cuMemRelease(handle) == 0 and used(2) == 4 << 20
assert cuda.cuMemRelease(handle) == 0 and used(2) == 0
)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

TEST_F(OfTheDriver, CublasIsOfTheVersionThatTheProgramHasLoaded) {
  const Outcome outcome = asked(R"(import os
def says():
    version, part, parts = c_int(), c_int(), []
    assert cuda.cublasGetVersion_v2(c_void_p(1), byref(version)) == 0 and version.value == cuda.cublasLtGetVersion()
    for which in range(3):
        assert cuda.cublasGetProperty(which, byref(part)) == 0
        parts.append(part.value)
    return version.value, parts
assert says() == (120400, [12, 4, 0]), says()
real = ctypes.CDLL(")" CUBLAS_LT R"(")
assert says() == (130102, [13, 1, 2]), says()
)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

/// Who asks hands in a variable that nobody wrote to.
TEST_F(OfTheDriver, WorkspacesOfSolversAreNoneAndAreSaidSo) {
  const Outcome outcome = asked(R"(size, on_device, on_host = c_int(-1), c_size_t(7 << 40), c_size_t(7 << 40)
none, whole = c_void_p(), ctypes.c_longlong
assert cuda.cusolverDnSgeqrf_bufferSize(none, 8, 8, none, 8, byref(size)) == 0 and size.value == 0
size.value = -1
assert cuda.cusolverDnDormqr_bufferSize(none, 0, 0, 8, 8, 8, none, 8, none, none, 8, byref(size)) == 0 and size.value == 0
assert cuda.cusolverDnXsyevd_bufferSize(none, none, 1, 0, whole(8), 0, none, whole(8), 0, none, 0, byref(on_device),
                                        byref(on_host)) == 0 and on_device.value == on_host.value == 0
on_device.value = 7 << 40
assert cuda.cufftXtMakePlanMany(1, 1, none, none, whole(1), whole(8), 0, none, whole(1), whole(8), 0, whole(1),
                                byref(on_device), 0) == 0 and on_device.value == 0
size.value = -1
assert cuda.cublasSgeqrfBatched(none, 8, 8, none, 8, none, byref(size), 4) == 0 and size.value == 0
matrix = create_string_buffer(512)
assert cuda.cusparseLtStructuredDescriptorInit(none, matrix, whole(128), whole(128), whole(128), 16, 2, 0, 0) == 0
assert cuda.cusparseLtSpMMACompressedSize2(none, matrix, byref(on_device), byref(on_host)) == 0
assert on_device.value == 128 * 128 * 2 * 9 // 16 and on_host.value == 0
)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(json_of(outcome)["unknown_workspaces_of"], nlohmann::json({"cuSOLVER", "cuSPARSE", "cuFFT"}));
}

TEST_F(OfTheDriver, NeitherFabricNorMulticastIsThere) {
  const Outcome outcome = asked(R"(handle, value = c_ulonglong(), c_int(-1)
for fabric_or_multicast in (128, 132):
    assert cuda.cuDeviceGetAttribute(byref(value), fabric_or_multicast, 0) == 0 and value.value == 0
assert cuda.cuMemCreate(byref(handle), c_size_t(2 << 20), (c_int * 8)(1, 8, 1, 0), c_ulonglong(0)) == 801
assert cuda.cuMulticastCreate(byref(handle), (c_ulonglong * 4)(2, 2 << 20, 1, 0)) == 801
)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

TEST_F(OfTheDriver, NothingLeadsFromFilesToACard) {
  const Outcome outcome = asked(R"(import os
library = ctypes.CDLL("libcuda.so.1")
assert library.cuFileDriverOpen() == 5007 and library.cuFileRead() == -1
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
