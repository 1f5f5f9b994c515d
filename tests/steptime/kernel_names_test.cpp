// Is a kernel's name one name, whoever spelled it?
#include "profiler/steptime/kernel_names.h"

#include <gtest/gtest.h>

namespace shard::steptime {
namespace {

/// Of `at::native::fill<float, (int)4>(int, float)`, say.
TEST(KernelNames, OfTheCompilerAreThoseOfTheProfiler) {
  EXPECT_EQ(bare_name("_ZN2at6native4fillILi4EfLb1EEEvif"), "at::native::fill<4,float,1>");
  EXPECT_EQ(bare_name("void at::native::fill<4, float, true>(int, float)"), "at::native::fill<4,float,1>");
  EXPECT_EQ(bare_name("void at::native::fill<(int)4, float, (bool)1>(T1, T2)"), "at::native::fill<4,float,1>");
}

TEST(KernelNames, LambdasAndWhatHasNoNameHaveOneForm) {
  const std::string of_pytorch =
      "void at::native::loop<2, at::native::gpu_kernel_impl<add<float> >(at::TensorIteratorBase&, add<float> "
      "const&)::{lambda(int)#1}, (anonymous namespace)::Array<char*, 3ul> >(int, char*)";
  const std::string of_nsys =
      "void at::native::loop<(int)2, at::native::gpu_kernel_impl<add<float>>(at::TensorIteratorBase &, const T1 "
      "&)::[lambda(int) (instance 1)], <unnamed>::Array<char *, (unsigned long)3>>(int, T3)";
  EXPECT_EQ(bare_name(of_pytorch), bare_name(of_nsys));
  EXPECT_EQ(without_template(bare_name(of_nsys)), "at::native::loop");
}

TEST(KernelNames, KernelsThatDifferStayApart) {
  EXPECT_NE(bare_name("void f<2>(int)"), bare_name("void f<4>(int)"));
  EXPECT_NE(bare_name("triton_poi_fused_add_0"), bare_name("triton_poi_fused_add_1"));
  EXPECT_NE(bare_name("f<a::{lambda(int)#1}>"), bare_name("f<a::{lambda(int)#2}>"));
  EXPECT_EQ(bare_name("gemm_4ul_x"), "gemm_4ul_x");
}

TEST(KernelNames, OfAnyTextIsSome) {
  for (const char* text : {"", "(", ")", "((", "f)", "_Z", "_Zx", "<unnamed>", "[lambda", "(instance", "4ul", "f()::"})
    (void)bare_name(text);
  EXPECT_EQ(bare_name(""), "");
}

}  // namespace
}  // namespace shard::steptime
