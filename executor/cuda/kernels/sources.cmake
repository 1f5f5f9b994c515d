# The device's operators, which are compiled twice: by nvcc, and for the emulated device by the C++ compiler.
set(SHARDSCOPE_KERNELS_DIR ${CMAKE_CURRENT_LIST_DIR})
set(SHARDSCOPE_KERNEL_SOURCES
  columns.cu
  elementwise.cu
  embedding.cu
  norm.cu
  rotary.cu
)
list(TRANSFORM SHARDSCOPE_KERNEL_SOURCES PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
set(SHARDSCOPE_KERNEL_HEADERS block_sum.h column_sums.h device.h kernels.h packs.h)
