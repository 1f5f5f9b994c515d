// Do tools that ask beside CUDA (NVML) learn of the card that the dry run shows?
#include <gmock/gmock.h>

#include <string>

#include "tests/dryrun/fake_pytorch.h"

namespace shard::test {
namespace {

using ::testing::HasSubstr;

class BesideCuda : public FakePyTorch {
 protected:
  /// Runs lines that have `runtime`, `nvml` and cards' handles.
  Outcome asked(const std::string& lines, Words options = {"--json", "--devices", "4"}) {
    return dryrun(R"(import ctypes, os, subprocess, sys
from ctypes import byref, c_int, c_size_t, c_uint, c_ulonglong, c_void_p, create_string_buffer
runtime, nvml = ctypes.CDLL(None), ctypes.CDLL("libnvidia-ml.so.1")

def handle(card):
    found = c_void_p()
    assert nvml.nvmlDeviceGetHandleByIndex_v2(card, byref(found)) == 0
    return found

def text(function, *of):
    buffer = create_string_buffer(256)
    assert function(*of, buffer, 256) == 0
    return buffer.value.decode()

def used(card):
    memory = (c_ulonglong * 3)()
    assert nvml.nvmlDeviceGetMemoryInfo(handle(card), memory) == 0
    assert memory[0] == memory[1] + memory[2]
    return memory[2]

)" + lines,
                  std::move(options));
  }
};

TEST_F(BesideCuda, NvmlCountsAllCardsAndCudaWhatItsEnvironmentLeaves) {
  const Outcome outcome = asked(R"(count = c_uint()
assert nvml.nvmlDeviceGetCount_v2(byref(count)) == 1  # uninitialized
assert nvml.nvmlInit_v2() == 0
os.environ["CUDA_VISIBLE_DEVICES"] = "2,0"
assert nvml.nvmlDeviceGetCount_v2(byref(count)) == 0 and count.value == 4
assert nvml.nvmlDeviceGetHandleByIndex_v2(4, byref(c_void_p())) == 2
pointer = c_void_p()
assert runtime.cudaSetDevice(0) == 0 and runtime.cudaMalloc(byref(pointer), c_size_t(6 << 20)) == 0
assert [used(card) for card in range(4)] == [0, 0, 6 << 20, 0]
assert runtime.cudaFree(pointer) == 0
assert [used(card) for card in range(4)] == [0, 0, 0, 0]
assert nvml.nvmlShutdown() == 0 and nvml.nvmlShutdown() == 1
)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

TEST_F(BesideCuda, WhatOneNamesTheOtherFinds) {
  const Outcome outcome = asked(R"(nvml.nvmlInit_v2()
os.environ["CUDA_VISIBLE_DEVICES"] = "3,1"
uuid, version, own, found = create_string_buffer(16), c_int(), c_int(), c_void_p()
assert runtime.cuDeviceGetUuid(uuid, 0) == 0
hexadecimal = uuid.raw.hex()
name = "GPU-" + "-".join((hexadecimal[:8], hexadecimal[8:12], hexadecimal[12:16], hexadecimal[16:20], hexadecimal[20:]))
assert nvml.nvmlDeviceGetHandleByUUID(name.encode(), byref(found)) == 0 and found.value == handle(3).value
assert nvml.nvmlDeviceGetHandleByUUID(b"GPU-1", byref(found)) == 6
properties = create_string_buffer(2048)
assert runtime.cudaGetDeviceProperties(properties, 0) == 0 and properties[256:272] == uuid.raw
bus = create_string_buffer(16)
assert runtime.cudaDeviceGetPCIBusId(bus, 16, 1) == 0
assert nvml.nvmlDeviceGetHandleByPciBusId_v2(bus.value, byref(found)) == 0 and found.value == handle(1).value
assert runtime.cudaDeviceGetByPCIBusId(byref(own), bus.value) == 0 and own.value == 1
assert nvml.nvmlSystemGetCudaDriverVersion(byref(version)) == 0
assert runtime.cudaDriverGetVersion(byref(own)) == 0 and own.value == version.value
assert text(nvml.nvmlSystemGetDriverVersion).split(".")[0].isdigit()
# A name of the user's machine is that of a card here.
os.environ["CUDA_VISIBLE_DEVICES"] = "GPU-8a7b6c5d-1111-2222-3333-444455556666"
assert text(nvml.nvmlDeviceGetUUID, handle(0)) == os.environ["CUDA_VISIBLE_DEVICES"]
)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

TEST_F(BesideCuda, AProcessSeesWhatAnotherHasTaken) {
  const Outcome outcome = asked(R"(nvml.nvmlInit_v2()
if sys.argv[1:]:
    print(os.getppid() == int(sys.argv[1]), used(0))
    sys.exit()
pointer = c_void_p()
assert runtime.cudaMalloc(byref(pointer), c_size_t(4 << 20)) == 0
words = [sys.executable, sys.argv[0], str(os.getpid())]
assert subprocess.check_output(words, text=True).split() == ["True", str(4 << 20)]
count, entries = c_uint(0), (c_ulonglong * 6)()
assert nvml.nvmlDeviceGetComputeRunningProcesses_v3(handle(0), byref(count), None) == 7 and count.value == 1
assert nvml.nvmlDeviceGetComputeRunningProcesses_v3(handle(0), byref(count), entries) == 0
assert entries[0] & 0xffffffff == os.getpid() and entries[1] == 4 << 20
)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

TEST_F(BesideCuda, WhatNvmlDoesNotKnowIsNotSupportedAndNoFault) {
  const Outcome outcome = asked(R"(nvml.nvmlInit_v2()
assert nvml.nvmlDeviceGetFrobnication(handle(0), byref(c_uint())) == 3
assert nvml.nvmlDeviceGetName(c_void_p(1), create_string_buffer(96), 96) == 2
assert nvml.nvmlDeviceGetName(handle(0), create_string_buffer(1), 1) == 7
field = (c_ulonglong * 5)(138)
assert nvml.nvmlDeviceGetFieldValues(handle(0), 1, field) == 0 and field[3] >> 32 == 3
)");
  EXPECT_EQ(json_of(outcome, 0)["unknown_functions"], nlohmann::json::array()) << outcome.err;
}

TEST_F(BesideCuda, LinksAreThoseOfTheKindOfCard) {
  constexpr const char* kProgram = R"(nvml.nvmlInit_v2()
active = c_int()
print("links", [nvml.nvmlDeviceGetNvLinkState(handle(0), link, byref(active)) for link in (0, 11, 12, 17, 18)])
)";
  EXPECT_THAT(asked(kProgram, {"--cluster", "h100-80gb-x8"}).out, HasSubstr("links [0, 0, 0, 0, 2]"));
  EXPECT_THAT(asked(kProgram, {"--cluster", "a100-80gb-x8"}).out, HasSubstr("links [0, 0, 3, 3, 2]"));
}

TEST_F(BesideCuda, NvidiaSmiSaysTheSame) {
  const Outcome outcome = asked(R"(nvml.nvmlInit_v2()
def smi(*words):
    return subprocess.check_output(["nvidia-smi", *words], text=True)

name, uuids = text(nvml.nvmlDeviceGetName, handle(0)), [text(nvml.nvmlDeviceGetUUID, handle(card)) for card in range(4)]
assert smi("-L") == "".join(f"GPU {card}: {name} (UUID: {uuids[card]})\n" for card in range(4)), smi("-L")
pointer = c_void_p()
assert runtime.cudaSetDevice(1) == 0 and runtime.cudaMalloc(byref(pointer), c_size_t(6 << 20)) == 0
assert smi("-i", "1", "--query-gpu=index,memory.used,fan.speed", "--format=csv") == \
    "index, memory.used [MiB], fan.speed [%]\n1, 6 MiB, [N/A]\n"
assert smi("--query-gpu=gpu_name,memory.used", "--format=csv,noheader,nounits") == \
    "".join(f"{name}, {used}\n" for used in (0, 6, 0, 0))
assert smi("--query-compute-apps=pid,used_memory,gpu_uuid", "--format=csv,noheader") == f"{os.getpid()}, 6 MiB, {uuids[1]}\n"
driver = text(nvml.nvmlSystemGetDriverVersion)
assert f"Driver Version: {driver} " in smi() and len({len(line) for line in smi().splitlines() if line[:1] in ("|", "+")}) == 1
assert subprocess.run(["nvidia-smi", "--query-gpu=frob", "--format=csv"], stdout=subprocess.DEVNULL).returncode == 2
assert subprocess.run(["nvidia-smi", "-i", "9"], stdout=subprocess.DEVNULL).returncode == 6
)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

}  // namespace
}  // namespace shard::test
