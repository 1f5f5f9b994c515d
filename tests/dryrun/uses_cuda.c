/* A library as PyTorch's are: it imports functions of CUDA, one of which nobody has. */
extern int cudaMalloc(void** pointer, unsigned long bytes);
extern int cudaFree(void* pointer);
extern int cudaFrobnicate(int how);

struct Size {
  unsigned x, y, z;
};
extern int cudaLaunchKernel(const void* kernel, struct Size grid, struct Size block, void** arguments,
                            unsigned long shared_bytes, void* stream);

/* What it would ask the driver for when it runs. */
const char* const asked_for = "cuMemMap";

int allocate_and_frobnicate(void) {
  void* pointer = 0;
  if (cudaMalloc(&pointer, 1 << 20) != 0 || pointer == 0) return 1;
  if (cudaFrobnicate(3) != 0 || cudaFrobnicate(4) != 0) return 2;
  return cudaFree(pointer);
}

/* A list of arguments has no end that anybody says: behind it stands whatever stood there. */
int launch_with_odd_arguments(void) {
  const struct Size one = {1, 1, 1};
  int count = 7;
  void* odd[6] = {&count, (void*)-2L, (void*)-9L, (void*)1, 0, (void*)(1L << 47)};
  for (int from = 0; from < 6; ++from)
    if (cudaLaunchKernel(&count, one, one, odd + from, 0, 0) != 0) return 1;
  return 0;
}
