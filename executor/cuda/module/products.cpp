// Descriptors and algorithms of cuBLASLt.
#include "executor/cuda/module/products.h"

#include <cassert>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>

#include "executor/cuda/module/column_major.h"
#include "executor/cuda/module/cublas_lt.h"

namespace shard::cuda {
namespace {

/// A handle of cuBLASLt with the function that ends it.
template <class T>
using Owned = std::unique_ptr<std::remove_pointer_t<T>, cublasStatus_t (*)(T)>;

struct Prepared {
  ProductShape shape{};
  Bytes workspace{};
  Owned<cublasLtMatmulDesc_t> desc;
  Owned<cublasLtMatrixLayout_t> left;
  Owned<cublasLtMatrixLayout_t> right;
  Owned<cublasLtMatrixLayout_t> out;
  cublasLtMatmulAlgo_t algorithm{};
};

cudaDataType_t type_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32: return CUDA_R_32F;
    case Dtype::f16: return CUDA_R_16F;
    case Dtype::bf16: return CUDA_R_16BF;
    case Dtype::i32:
    case Dtype::i64: break;
  }
  assert(false && "products are of floating point");
  return CUDA_R_32F;
}

std::string text_of(const ProductShape& s) {
  return std::string("product [") + std::to_string(s.m) + "," + std::to_string(s.n) + "," + std::to_string(s.k) + "] " +
         to_string(s.dtype) + (s.transpose_a ? " A^T" : "") + (s.transpose_b ? " B^T" : "") +
         (s.accumulate ? " added" : "") + (s.bias ? " bias" : "");
}

[[maybe_unused]] bool are_aligned(const ProductOperands& operands, Bytes alignment) {
  for (const void* each :
       std::initializer_list<const void*>{operands.a, operands.b, operands.bias, operands.c, operands.workspace.data()})
    if (reinterpret_cast<std::uintptr_t>(each) % static_cast<std::uintptr_t>(alignment.count()) != 0) return false;
  return true;
}

class RealProducts final : public Products {
 public:
  explicit RealProducts(CublasLt lt) : lt_(std::move(lt)) {}
  RealProducts(const RealProducts&) = delete;
  RealProducts& operator=(const RealProducts&) = delete;
  ~RealProducts() override {
    prepared_.clear();
    if (handle_ != nullptr) lt_.destroy(handle_);
  }

  Result<void> start() { return checked(lt_.create(&handle_), "cublasLtCreate"); }

  Result<Product> prepare(const ProductShape& shape, Bytes workspace) override {
    for (const std::unique_ptr<Prepared>& each : prepared_)
      if (each->shape == shape && each->workspace == workspace) return reinterpret_cast<Product>(each.get());
    Prepared made{shape,
                  workspace,
                  {nullptr, lt_.desc_destroy},
                  {nullptr, lt_.layout_destroy},
                  {nullptr, lt_.layout_destroy},
                  {nullptr, lt_.layout_destroy}};
    if (const Result<void> described = describe(made); !described) return described.error();
    if (const Result<void> chosen = choose(made); !chosen) return chosen.error();
    prepared_.push_back(std::make_unique<Prepared>(std::move(made)));
    return reinterpret_cast<Product>(prepared_.back().get());
  }

  Result<void> multiply(cudaStream_t stream, Product product, const ProductOperands& operands) override {
    Prepared& p = *reinterpret_cast<Prepared*>(product);
    assert(static_cast<std::int64_t>(operands.workspace.size()) >= p.workspace.count());
    assert(p.shape.bias == (operands.bias != nullptr));
    assert(are_aligned(operands, p.shape.alignment));
    if (p.shape.bias) {
      const void* bias = operands.bias;
      if (const Result<void> set = set_desc(p, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias); !set) return set.error();
    }
    const float one = 1.0F;
    const float beta = p.shape.accumulate ? 1.0F : 0.0F;
    return checked(lt_.matmul(handle_, p.desc.get(), &one, operands.b, p.left.get(), operands.a, p.right.get(), &beta,
                              operands.c, p.out.get(), operands.c, p.out.get(), &p.algorithm, operands.workspace.data(),
                              static_cast<std::size_t>(p.workspace.count()), stream),
                   "cublasLtMatmul", text_of(p.shape));
  }

 private:
  Result<void> checked(cublasStatus_t status, const char* call, const std::string& where = "") const {
    if (status == CUBLAS_STATUS_SUCCESS) return {};
    return Error{
        .code = Errc::unavailable,
        .what = std::string(call) + ": " + lt_.get_status_string(status) + " (" + lt_.get_status_name(status) + ")",
        .where = where,
        .help = status == CUBLAS_STATUS_NOT_SUPPORTED ? "a larger workspace for products" : ""};
  }

  template <class T>
  Result<void> set_desc(Prepared& p, cublasLtMatmulDescAttributes_t attribute, const T& value) {
    return checked(lt_.desc_set(p.desc.get(), attribute, &value, sizeof value), "cublasLtMatmulDescSetAttribute",
                   text_of(p.shape));
  }

  Result<void> lay_out(Owned<cublasLtMatrixLayout_t>& to, const ColumnMajor::Matrix& matrix, const ProductShape& s) {
    cublasLtMatrixLayout_t made = nullptr;
    const Result<void> done =
        checked(lt_.layout_create(&made, type_of(s.dtype), static_cast<std::uint64_t>(matrix.rows),
                                  static_cast<std::uint64_t>(matrix.columns), matrix.stride),
                "cublasLtMatrixLayoutCreate", text_of(s));
    to.reset(made);
    return done;
  }

  Result<void> describe(Prepared& p) {
    const ProductShape& s = p.shape;
    assert(s.m > 0 && s.n > 0 && s.k > 0);
    const bool tf32 = s.dtype == Dtype::f32 && s.tensor_float;
    cublasLtMatmulDesc_t desc = nullptr;
    const cublasStatus_t status =
        lt_.desc_create(&desc, tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F);
    p.desc.reset(desc);
    if (const Result<void> made = checked(status, "cublasLtMatmulDescCreate", text_of(s)); !made) return made.error();
    const ColumnMajor as = column_major(s);
    const cublasOperation_t left = as.left.transpose ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t right = as.right.transpose ? CUBLAS_OP_T : CUBLAS_OP_N;
    Result<void> done = set_desc(p, CUBLASLT_MATMUL_DESC_TRANSA, left);
    if (done) done = set_desc(p, CUBLASLT_MATMUL_DESC_TRANSB, right);
    if (done && s.bias) done = set_desc(p, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    if (done) done = lay_out(p.left, as.left, s);
    if (done) done = lay_out(p.right, as.right, s);
    if (done) done = lay_out(p.out, as.out, s);
    return done;
  }

  /// The first that the library proposes for operands that are aligned as the shape says. Of algorithms that cut the
  /// sum in parts, those alone that keep the parts in fp32 in the workspace: others round them, or add them in the
  /// order in which they come.
  Result<void> choose(Prepared& p) {
    const auto alignment = static_cast<std::uint32_t>(p.shape.alignment.count());
    const std::string what = text_of(p.shape);
    // The library reads from the bias' address how it is aligned.
    if (p.shape.bias) {
      const auto bias = static_cast<std::uintptr_t>(alignment);
      if (const Result<void> set = set_desc(p, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias); !set) return set.error();
    }
    cublasLtMatmulPreference_t made = nullptr;
    const cublasStatus_t status = lt_.preference_create(&made);
    const Owned<cublasLtMatmulPreference_t> preference(made, lt_.preference_destroy);
    Result<void> done = checked(status, "cublasLtMatmulPreferenceCreate", what);
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
      if (done)
        done = checked(lt_.preference_set(made, attribute, &value, sizeof value),
                       "cublasLtMatmulPreferenceSetAttribute", what);
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<std::uint64_t>(p.workspace.count()));
    prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
           static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment);
    if (!done) return done;
    cublasLtMatmulHeuristicResult_t proposed{};
    int count = 0;
    done = checked(lt_.get_heuristic(handle_, p.desc.get(), p.left.get(), p.right.get(), p.out.get(), p.out.get(), made,
                                     1, &proposed, &count),
                   "cublasLtMatmulAlgoGetHeuristic", what);
    if (done && count == 0) done = checked(CUBLAS_STATUS_NOT_SUPPORTED, "cublasLtMatmulAlgoGetHeuristic", what);
    if (done) done = checked(proposed.state, "cublasLtMatmulAlgoGetHeuristic", what);
    p.algorithm = proposed.algo;
    return done;
  }

  CublasLt lt_;
  cublasLtHandle_t handle_ = nullptr;
  std::vector<std::unique_ptr<Prepared>> prepared_;
};

}  // namespace

Result<std::unique_ptr<Products>> make_products() {
  Result<CublasLt> lt = load_cublas_lt();
  if (!lt) return lt.error();
  auto products = std::make_unique<RealProducts>(std::move(*lt));
  if (const Result<void> started = products->start(); !started) return started.error();
  return std::unique_ptr<Products>(std::move(products));
}

}  // namespace shard::cuda
