// Matrix products by cuBLASLt: each shape is prepared once, with the algorithm that it keeps.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <vector>

#include "executor/cuda/api/api.h"

namespace shard::cuda {

/// Of one device, current in the calling thread. What is prepared lives as long as this.
class Products {
 public:
  virtual ~Products() = default;
  [[nodiscard]] virtual Result<Product> prepare(const ProductShape& shape, Bytes workspace) = 0;
  [[nodiscard]] virtual Result<void> multiply(cudaStream_t stream, Product product,
                                              const ProductOperands& operands) = 0;
};

/// Opens the library and a handle. Errc::unavailable where it is not found.
[[nodiscard]] Result<std::unique_ptr<Products>> make_products();

}  // namespace shard::cuda
