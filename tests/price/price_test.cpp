// Does each kind of kernel get its law, with the sizes that its operator says?
#include "sim/price/price.h"

#include <gtest/gtest.h>

#include "sim/cluster/read_cluster.h"
#include "sim/cost/laws/attention.h"
#include "sim/cost/laws/moved.h"
#include "sim/cost/laws/product.h"
#include "sim/price/tensors.h"

namespace shard::price {
namespace {

using Sizes = std::vector<std::int64_t>;

Tensor tensor(Sizes sizes, std::string type = "c10::BFloat16", std::int32_t argument = 0) {
  return {.sizes = std::move(sizes), .strides = {}, .type = std::move(type), .argument = argument};
}
KernelCall call_of(std::string_view name, const Operator* op) {
  KernelCall call;
  call.name = name;
  call.op = op;
  call.grid = {1 << 20, 1, 1};
  call.block = {128, 1, 1};
  return call;
}

/// An A100, on which a kernel takes what its law says.
class Price : public ::testing::Test {
 protected:
  Price() : card_(*cluster::read_cluster("a100-80gb-x8")) {}

  void expect_moved(const KernelCall& call, double bytes, bool reduces, std::string_view law) {
    const std::optional<Priced> priced = price(call, card_);
    ASSERT_TRUE(priced) << call.name;
    EXPECT_EQ(priced->law, law) << call.name;
    EXPECT_DOUBLE_EQ(priced->time.count(), cost::moved_time(bytes, card_, reduces).count()) << call.name;
  }

  cluster::Cluster card_;
};

constexpr const char* kAdd =
    "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEESt5arrayIPcLm3EEEEviT0_T1_";

TEST_F(Price, LoopsMoveTheirOperatorsTensors) {
  const double n = 1 << 20;
  const Operator add{"aten::add", {tensor({1024, 1024}), tensor({1024, 1024}, "c10::BFloat16", 1)}, {}};
  expect_moved(call_of(kAdd, &add), 3 * n * 2, false, "elementwise");
  // A row for all rows, and a result in the wider of two types.
  const Operator broadcast{"aten::mul", {tensor({1024, 1024}), tensor({1024}, "float", 1)}, {}};
  expect_moved(call_of(kAdd, &broadcast), n * 2 + 1024 * 4 + n * 4, false, "elementwise");
  const Operator in_place{"aten::add_", {tensor({1024, 1024}), tensor({1024, 1024}, "c10::BFloat16", 1)}, {}};
  expect_moved(call_of(kAdd, &in_place), 3 * n * 2, false, "elementwise");
  const Operator cast{"aten::copy_", {tensor({1024, 1024}), tensor({1024, 1024}, "float", 1)}, {}};
  expect_moved(call_of(kAdd, &cast), n * 2 + n * 4, false, "elementwise");
  const Operator compares{"aten::eq", {tensor({1024, 1024}), tensor({1024, 1024}, "c10::BFloat16", 1)}, {}};
  expect_moved(call_of(kAdd, &compares), 2 * n * 2 + n, false, "elementwise");
}

TEST_F(Price, NamesMayBeMangledOrNot) {
  KernelCall mangled, demangled;
  mangled.name = kAdd;
  demangled.name =
      "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >"
      "(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)";
  mangled.grid = demangled.grid = {100, 1, 1};
  mangled.block = demangled.block = {128, 1, 1};
  for (const KernelCall& call : {mangled, demangled}) {
    const std::optional<Loop> loop = loop_of(call);
    ASSERT_TRUE(loop) << call.name;
    EXPECT_EQ(loop->elements, 100 * 128 * 4);
    EXPECT_EQ(loop->tensors, 3);
  }
  KernelCall old = demangled;
  old.name =
      "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>, at::detail::Array<char*, "
      "2> >(int)";
  EXPECT_EQ(loop_of(old)->tensors, 2);
}

TEST_F(Price, ProductsAreWhatTheLibraryWasCalledWith) {
  KernelCall call;
  call.name = "cublasGemmEx";
  call.product = ProductCall{.m = 4096, .n = 8192, .k = 1024};
  const std::optional<Priced> priced = price(call, card_);
  ASSERT_TRUE(priced);
  EXPECT_EQ(priced->law, "products");
  EXPECT_EQ(priced->time, kColdOperands + cost::product_time({.m = 4096, .n = 8192, .k = 1024},
                                                             card_.kernel_laws->sustained(), card_));
}

TEST_F(Price, ProductsOfOperatorsAreTheSame) {
  const Operator mm{
      "aten::addmm",
      {tensor({4096}), tensor({8192, 1024}, "c10::BFloat16", 1), tensor({1024, 4096}, "c10::BFloat16", 2)},
      {}};
  const Operator bmm{"aten::bmm", {tensor({16, 128, 64}), tensor({16, 64, 256}, "c10::BFloat16", 1)}, {}};
  const Operator linear{"aten::linear", {tensor({8, 128, 512}), tensor({2048, 512}, "c10::BFloat16", 1)}, {}};
  const auto expect_same = [&](const Operator& op, const ProductCall& told) {
    KernelCall direct;
    direct.product = told;
    EXPECT_EQ(price(call_of("ampere_bf16_s16816gemm_bf16_128x64", &op), card_)->time, price(direct, card_)->time)
        << op.name;
  };
  expect_same(mm, {.m = 8192, .n = 4096, .k = 1024});
  expect_same(bmm, {.m = 128, .n = 256, .k = 64, .batch = 16});
  expect_same(linear, {.m = 1024, .n = 2048, .k = 512});
}

TEST_F(Price, WithoutTensorCoresProductsTakeMuchLonger) {
  KernelCall fast, slow;
  fast.product = ProductCall{.m = 4096, .n = 4096, .k = 4096, .operand_bytes = 4, .result_bytes = 4};
  slow.product = fast.product;
  slow.product->tensor_cores = false;
  EXPECT_GT(price(slow, card_)->time.count(), 4 * price(fast, card_)->time.count());
  const double flops = 2.0 * 4096 * 4096 * 4096;
  EXPECT_GT(price(slow, card_)->time.count(), flops / card_.peak_fp32.count());
}

TEST_F(Price, AttentionIsItsMainKernelAndSmallOnesBesideIt) {
  Operator op{"aten::_flash_attention_backward",
              {tensor({2, 2048, 32, 128}), tensor({2, 2048, 32, 128}, "c10::BFloat16", 1),
               tensor({2, 2048, 8, 128}, "c10::BFloat16", 2), tensor({2, 2048, 8, 128}, "c10::BFloat16", 3)},
              std::vector<std::string>(14)};
  op.values[11] = "True";
  const cost::AttentionShape shape{
      .batch = 2, .heads = 32, .queries = 2048, .keys = 2048, .head_size = 128, .causal = true, .backward = true};
  const KernelCall main =
      call_of("void flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<128>>", &op);
  EXPECT_EQ(price(main, card_)->time, cost::attention_time(shape, cluster::AttentionKernel::flash_2, card_));
  op.values[11] = "False";
  EXPECT_GT(price(main, card_)->time.count(),
            1.5 * cost::attention_time(shape, cluster::AttentionKernel::flash_2, card_).count());
  EXPECT_LT(price(call_of("void flash_bwd_dot_do_o_kernel<true>", &op), card_)->time, price(main, card_)->time);
}

TEST_F(Price, NormsReduceAndTheirWeightsAreAKernelOfTheirOwn) {
  const double n = 8192 * 1024 * 4.0;
  const Operator forward{"aten::native_layer_norm", {tensor({8192, 1024}, "float")}, {}};
  expect_moved(call_of("vectorized_layer_norm_kernel", &forward), 2 * n, true, "reductions and norms");
  const Operator backward{"aten::native_layer_norm_backward", {tensor({8192, 1024}, "float")}, {}};
  expect_moved(call_of("layer_norm_grad_input_kernel_vectorized", &backward), 3 * n, true, "reductions and norms");
  expect_moved(call_of("GammaBetaBackwardCUDAKernelTemplate", &backward), 2 * n, true, "reductions and norms");
}

TEST_F(Price, ListsAreTheirBlocksWhereTheProfilerDoesNotSayThem) {
  // Fused Adam of 320 whole chunks: it reads four lists and writes three.
  const Operator adam{"aten::_fused_adamw_", {}, {}};
  KernelCall call = call_of(
      "multi_tensor_apply_kernelINS1_32FusedOptimizerTensorListMetadataILi4EEENS1_20FusedAdamMathFunctorIfLi4E", &adam);
  call.grid = {320, 1, 1};
  expect_moved(call, 320.0 * 65536 * 4 * 7, false, "optimizers");
}

TEST_F(Price, ConvolutionsAreProductsAndFewColoursHaveNoLaw) {
  Operator op{"aten::cudnn_convolution",
              {tensor({32, 64, 56, 56}, "float"), tensor({128, 64, 3, 3}, "float", 1)},
              {"", "", "[1, 1]", "[2, 2]", "[1, 1]", "1", "False", "False", "True"}};
  const std::optional<Priced> priced = price(call_of("cudnnBackendExecute", &op), card_);
  ASSERT_TRUE(priced);
  EXPECT_EQ(priced->law, "convolutions");
  const double flops = 2.0 * 32 * 28 * 28 * 128 * 64 * 9;
  EXPECT_GT(priced->time.count(), flops / card_.peak_tf32->count());
  op.inputs = {tensor({32, 3, 224, 224}, "float"), tensor({64, 3, 7, 7}, "float", 1)};
  EXPECT_FALSE(price(call_of("cudnnBackendExecute", &op), card_)) << "no law is not zero";
}

TEST_F(Price, WhatNobodyKnowsHasNoLaw) {
  EXPECT_FALSE(price(call_of("my_own_kernel", nullptr), card_));
  const Operator mine{"mylib::attention", {tensor({2, 2})}, {}};
  EXPECT_FALSE(price(call_of("my_own_kernel", &mine), card_));
  const Operator cat{"aten::cat", {}, {}};  // a list that is too long for the profiler
  EXPECT_FALSE(price(call_of("CatArrayBatchedCopy", &cat), card_));
}

}  // namespace
}  // namespace shard::price
