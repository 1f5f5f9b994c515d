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

/* What a step of training gives a GPU: a kernel with a name, a product, a copy between streams that wait for each other. */
extern void __cudaRegisterFunction(void** module, const char* host, char* device, const char* name, int limit, void* a,
                                   void* b, void* c, void* d, int* e);
extern unsigned __cudaPushCallConfiguration(struct Size grid, struct Size block, unsigned long shared_bytes,
                                            void* stream);
extern int __cudaPopCallConfiguration(struct Size* grid, struct Size* block, unsigned long* shared_bytes, void* stream);
extern int cudaStreamCreate(void** stream);
extern int cudaEventCreate(void** event);
extern int cudaEventRecord(void* event, void* stream);
extern int cudaStreamWaitEvent(void* stream, void* event, unsigned flags);
extern int cudaMemcpyAsync(void* to, const void* from, unsigned long bytes, int kind, void* stream);
extern int cublasCreate_v2(void** handle);
extern int cublasSetStream_v2(void* handle, void* stream);
extern int cublasGemmEx(void* handle, int ta, int tb, int m, int n, int k, const void* alpha, const void* a, int a_type,
                        int lda, const void* b, int b_type, int ldb, const void* beta, void* c, int c_type, int ldc,
                        int computes, int algorithm);

int give_a_step(int size) {
  static char kernel;
  static void *handle, *side, *event, *memory;
  const struct Size grid = {256, 1, 1}, block = {128, 1, 1};
  struct Size got, got_block;
  unsigned long shared = 0;
  void* stream = &kernel;
  if (handle == 0) {
    if (cublasCreate_v2(&handle) != 0 || cudaStreamCreate(&side) != 0 || cudaEventCreate(&event) != 0) return 1;
    if (cudaMalloc(&memory, 1 << 24) != 0 || cublasSetStream_v2(handle, 0) != 0) return 2;
    __cudaRegisterFunction(0, &kernel, 0, "_ZN6my_own6kernelE", -1, 0, 0, 0, 0, 0);
  }
  const int bf16 = 14, fp32 = 68;
  if (cublasGemmEx(handle, 0, 0, size, size, size, 0, memory, bf16, size, memory, bf16, size, 0, memory, bf16, size, fp32,
                   0) != 0)
    return 3;
  if (cudaEventRecord(event, 0) != 0 || cudaStreamWaitEvent(side, event, 0) != 0) return 4;
  if (cudaMemcpyAsync(memory, (char*)memory + (1 << 20), 1 << 20, 3, side) != 0) return 5;
  /* As the compiler's stubs do for kernel<<<grid, block, 0, side>>>(). */
  if (__cudaPushCallConfiguration(grid, block, 0, side) != 0) return 6;
  if (__cudaPopCallConfiguration(&got, &got_block, &shared, &stream) != 0 || stream != side || got.x != 256) return 7;
  return cudaLaunchKernel(&kernel, got, got_block, 0, shared, stream);
}
