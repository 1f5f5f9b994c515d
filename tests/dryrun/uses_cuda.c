/* A library as PyTorch's are: it imports functions of CUDA, one of which nobody has. */
extern int cudaMalloc(void** pointer, unsigned long bytes);
extern int cudaFree(void* pointer);
extern int cudaFrobnicate(int how);

/* What it would ask the driver for when it runs. */
const char* const asked_for = "cuMemMap";

int allocate_and_frobnicate(void) {
  void* pointer = 0;
  if (cudaMalloc(&pointer, 1 << 20) != 0 || pointer == 0) return 1;
  if (cudaFrobnicate(3) != 0 || cudaFrobnicate(4) != 0) return 2;
  return cudaFree(pointer);
}
