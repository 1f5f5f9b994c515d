// Are out-of-memory messages of every release read, and do their figures lead to the likely cause? The forms are those
// of PyTorch's source (CUDACachingAllocator.cpp, by release); the figures are from the places that are named.
#include "traces/out_of_memory.h"

#include <gtest/gtest.h>

#include <cmath>

namespace shard {
namespace {

Bytes mib(double size) {
  return Bytes{std::llround(size * 0x1p20)};
}
Bytes gib(double size) {
  return Bytes{std::llround(size * 0x1p30)};
}

OutOfMemory read(const std::string& text) {
  Result<OutOfMemory> message = read_out_of_memory(text, "log");
  EXPECT_TRUE(message) << text;
  return message ? *message : OutOfMemory{};
}

// PyTorch 1.0: pull request 13751, which brought the figures.
TEST(OutOfMemory, OfPyTorch10SaysWhatIsCached) {
  const OutOfMemory m = read(
      "RuntimeError: CUDA out of memory. Tried to allocate 16.00 GiB (GPU 0; 11.93 GiB total capacity; 4.00 GiB "
      "already "
      "allocated; 7.33 GiB free; 179.00 KiB cached)");
  EXPECT_EQ(m.form, OutOfMemoryForm::cached);
  EXPECT_EQ(m.device, 0);
  EXPECT_EQ(m.asked, gib(16));
  EXPECT_EQ(m.capacity, gib(11.93));
  EXPECT_EQ(m.allocated, gib(4));
  EXPECT_EQ(m.free, gib(7.33));
  EXPECT_EQ(m.unallocated, Bytes{179 << 10});
  EXPECT_FALSE(m.in_use || m.outside() || m.allowed);
  EXPECT_EQ(cause_of(m), OutOfMemoryCause::full);
}

// PyTorch 1.4: issue 35901.
TEST(OutOfMemory, OfPyTorch14SaysWhatIsReserved) {
  const OutOfMemory m = read(
      "CUDA out of memory. Tried to allocate 10.84 GiB (GPU 0; 23.65 GiB total capacity; 1.06 GiB already allocated; "
      "10.26 GiB free; 12.53 GiB reserved in total by PyTorch)");
  EXPECT_EQ(m.form, OutOfMemoryForm::reserved);
  EXPECT_EQ(m.allocated, gib(1.06));
  EXPECT_EQ(m.reserved(), gib(12.53));
  EXPECT_EQ(cause_of(m), OutOfMemoryCause::fragmentation);  // 11.47 GiB idle, 10.84 asked for
}

// PyTorch 1.8: issue 59778. More is free than was asked for.
TEST(OutOfMemory, OfFreeMemoryThatIsRefusedSaysSo) {
  const OutOfMemory m = read(
      "CUDA out of memory. Tried to allocate 2.26 GiB (GPU 0; 6.00 GiB total capacity; 781.59 MiB already allocated; "
      "3.03 GiB free; 1.24 GiB reserved in total by PyTorch)");
  EXPECT_EQ(m.allocated, mib(781.59));
  EXPECT_EQ(cause_of(m), OutOfMemoryCause::refused);
}

// PyTorch 1.12: memory of others, which the message does not name.
TEST(OutOfMemory, OfOlderReleasesMissesWhatOthersHold) {
  const OutOfMemory m = read(
      "RuntimeError: CUDA out of memory. Tried to allocate 12.00 MiB (GPU 1; 15.90 GiB total capacity; 8.12 GiB "
      "already "
      "allocated; 6.56 MiB free; 8.12 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try "
      "setting max_split_size_mb to avoid fragmentation.  See documentation for Memory Management and "
      "PYTORCH_CUDA_ALLOC_CONF");
  EXPECT_EQ(m.device, 1);
  EXPECT_EQ(m.elsewhere(), gib(15.90) - gib(8.12) - mib(6.56));
  EXPECT_EQ(cause_of(m), OutOfMemoryCause::other_processes);
}

// PyTorch 1.8 and later, with set_per_process_memory_fraction.
TEST(OutOfMemory, OfALimitedProcessSaysWhatIsAllowed) {
  const OutOfMemory m = read(
      "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 23.65 GiB total capacity; 10.90 GiB already allocated; "
      "11.26 GiB free; 11.82 GiB allowed; 11.00 GiB reserved in total by PyTorch)");
  EXPECT_EQ(m.allowed, gib(11.82));
  EXPECT_EQ(cause_of(m), OutOfMemoryCause::limit);
}

// PyTorch 2.1 has "capacty": NeuroLens, issue 2; MyGirlGPT, issue 11.
TEST(OutOfMemory, OfPyTorch21SaysWhatTheProcessHasInUse) {
  const OutOfMemory m = read(
      "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 32.00 MiB. GPU 0 has a total capacty of 4.00 "
      "GiB of which 41.56 MiB is free. Including non-PyTorch memory, this process has 3.44 GiB memory in use. Of the "
      "allocated memory 2.58 GiB is allocated by PyTorch, and 1.90 MiB is reserved by PyTorch but unallocated.");
  EXPECT_EQ(m.form, OutOfMemoryForm::unallocated);
  EXPECT_EQ(m.capacity, gib(4));
  EXPECT_EQ(m.in_use, gib(3.44));
  EXPECT_EQ(m.outside(), gib(3.44) - gib(2.58) - mib(1.90));
  const OutOfMemory too_large = read(
      "CUDA out of memory. Tried to allocate 55.57 GiB. GPU 0 has a total capacty of 12.00 GiB of which 9.02 GiB is "
      "free. "
      "Of the allocated memory 984.52 MiB is allocated by PyTorch, and 463.48 MiB is reserved by PyTorch but "
      "unallocated.");
  EXPECT_EQ(cause_of(too_large), OutOfMemoryCause::full);
  EXPECT_FALSE(too_large.in_use);
}

// PyTorch 2.6: Wan2.1, issue 465.
TEST(OutOfMemory, OfOneThatHasItAllIsFull) {
  const OutOfMemory m = read(
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 100.00 MiB. GPU 0 has a total capacity of 31.37 "
      "GiB of "
      "which 15.88 MiB is free. Including non-PyTorch memory, this process has 31.34 GiB memory in use. Of the "
      "allocated "
      "memory 30.74 GiB is allocated by PyTorch, and 19.41 MiB is reserved by PyTorch but unallocated.");
  EXPECT_EQ(cause_of(m), OutOfMemoryCause::full);
  EXPECT_LT(m.elsewhere(), mib(32));
}

TEST(OutOfMemory, OfANamedProcessIsThatOnes) {
  const OutOfMemory m = read(
      "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 3 has a total capacity of 31.36 GiB of which 2.62 MiB is "
      "free. "
      "Process 81034 has 30.57 GiB memory in use. Process 7 has 17179869184.00 GiB memory in use. Including "
      "non-PyTorch "
      "memory, this process has 784.00 MiB memory in use. Of the allocated memory 179.69 MiB is allocated by PyTorch, "
      "with "
      "24.00 MiB allocated in private pools (e.g., CUDA Graphs), and 12.31 MiB is reserved by PyTorch but "
      "unallocated.");
  ASSERT_EQ(m.others.size(), 1u);  // the second count is broken
  EXPECT_EQ(m.others[0].id, 81034);
  EXPECT_EQ(m.others[0].in_use, gib(30.57));
  EXPECT_EQ(m.private_pools, mib(24));
  EXPECT_EQ(m.device, 3);
  EXPECT_EQ(cause_of(m), OutOfMemoryCause::other_processes);
}

// PyTorch 2.3 in a container, which does not know its own process: no GPU's number either.
TEST(OutOfMemory, OfAContainerFindsItsOwnProcess) {
  const OutOfMemory m = read(
      "CUDA out of memory. Tried to allocate 224.00 MiB. GPU  has a total capacity of 44.34 GiB of which 160.81 MiB is "
      "free. "
      "Process 47694 has 44.17 GiB memory in use. Of the allocated memory 43.36 GiB is allocated by PyTorch, and 96.27 "
      "MiB "
      "is reserved by PyTorch but unallocated.");
  EXPECT_EQ(m.in_use, gib(44.17));
  EXPECT_TRUE(m.others.empty());
  EXPECT_FALSE(m.device);
  EXPECT_EQ(cause_of(m), OutOfMemoryCause::full);  // 96.27 MiB idle is little
}

// Little is idle where others hold most, and where nearly all is allocated: neither is fragmentation.
TEST(OutOfMemory, OfLittleIdleMemoryIsNotFragmentation) {
  const auto cause = [](const std::string& free, const std::string& in_use, const std::string& allocated,
                        const std::string& idle) {
    return cause_of(
        read("CUDA out of memory. Tried to allocate 24.00 MiB. GPU 0 has a total capacity of 80.00 GiB of "
             "which " +
             free + " is free. Including non-PyTorch memory, this process has " + in_use +
             " memory in use. Of the allocated memory " + allocated + " is allocated by PyTorch, and " + idle +
             " is reserved by PyTorch but unallocated."));
  };
  EXPECT_EQ(cause("16.88 MiB", "11.93 GiB", "11.24 GiB", "14.48 MiB"), OutOfMemoryCause::other_processes);
  EXPECT_EQ(cause("16.88 MiB", "79.90 GiB", "79.00 GiB", "34.48 MiB"), OutOfMemoryCause::full);
  EXPECT_EQ(cause("16.88 MiB", "79.90 GiB", "69.00 GiB", "10.00 GiB"), OutOfMemoryCause::fragmentation);
  EXPECT_EQ(cause("16.88 MiB", "69.90 GiB", "59.00 GiB", "10.00 GiB"), OutOfMemoryCause::fragmentation);
  EXPECT_EQ(cause("16.88 MiB", "69.90 GiB", "69.00 GiB", "14.48 MiB"), OutOfMemoryCause::other_processes);
}

TEST(OutOfMemory, WithinALogIsTheFirstAndMayBeBroken) {
  const OutOfMemory m = read(
      "step 7 loss 2.1\nTried to allocate a name\n[rank3]: CUDA out of memory. Tried to allocate\n  1.00 GiB. GPU 3 "
      "has a total\n"
      "  capacity of 79.10 GiB of which 512 bytes is free. Including non-PyTorch memory, this process has 79.09 GiB\n "
      "memory in "
      "use. Of the allocated memory 70.00 GiB is allocated by PyTorch, and 7.50 GiB is reserved by PyTorch but "
      "unallocated.\n"
      "[rank0]: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 10.76 GiB total capacity; 9.71 GiB already "
      "allocated; "
      "5.69 MiB free; 9.87 GiB reserved in total by PyTorch)\n");
  EXPECT_EQ(m.message_count, 2);
  EXPECT_EQ(m.device, 3);
  EXPECT_EQ(m.asked, gib(1));
  EXPECT_EQ(m.free, Bytes{512});
  EXPECT_EQ(cause_of(m), OutOfMemoryCause::fragmentation);
}

TEST(OutOfMemory, WhatIsNoneIsRefusedWithWhatIsExpected) {
  for (const char* const text :
       {"", "CUDA out of memory", "Tried to allocate 20.00 MiB",
        "CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; ",
        "Tried to allocate x MiB (GPU 0; 10.76 GiB total capacity; 9.71 GiB already allocated; 5.69 MiB free; 9.87 GiB "
        "reserved in total by PyTorch)",
        "Tried to allocate 1e99 GiB (GPU 0; 10.76 GiB total capacity; 9.71 GiB already allocated; 5.69 MiB free; 9.87 "
        "GiB "
        "reserved in total by PyTorch)"}) {
    const Result<OutOfMemory> message = read_out_of_memory(text, "train.log");
    ASSERT_FALSE(message) << text;
    EXPECT_EQ(message.error().code, Errc::malformed);
    EXPECT_EQ(message.error().where, "train.log");
    EXPECT_NE(message.error().help.find("Tried to allocate"), std::string::npos);
  }
}

}  // namespace
}  // namespace shard
