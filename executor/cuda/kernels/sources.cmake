# The device's operators, which are compiled twice: by nvcc, and for the emulated device by the C++ compiler.
set(SHARDSCOPE_KERNELS_DIR ${CMAKE_CURRENT_LIST_DIR})
set(SHARDSCOPE_KERNEL_SOURCES
  activation.cu
  attention.cu
  attention_backward.cu
  columns.cu
  dropout.cu
  elementwise.cu
  embedding.cu
  gradient_facts.cu
  loss.cu
  norm.cu
  optimizer.cu
  reduce.cu
  rotary.cu
  table.cu
)
list(TRANSFORM SHARDSCOPE_KERNEL_SOURCES PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
set(SHARDSCOPE_KERNEL_HEADERS attention_shared.h attention_tiles.h block_sum.h column_sums.h device.h elementwise.h kernels.h log_sum.h packs.h)
