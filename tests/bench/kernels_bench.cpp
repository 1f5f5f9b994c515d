// How fast the CPU operators run: products beside the library's own call, the rest in bytes per second beside a copy.
//   kernels_bench                                     all, with 1 and 2 threads
//   kernels_bench --benchmark_filter='gpt2'           the shapes of gpt2 124M, 4 x 64 tokens
#include <benchmark/benchmark.h>
#include <dnnl.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "executor/cpu/kernels/activation.h"
#include "executor/cpu/kernels/attention.h"
#include "executor/cpu/kernels/dropout.h"
#include "executor/cpu/kernels/elementwise.h"
#include "executor/cpu/kernels/embedding.h"
#include "executor/cpu/kernels/gemm.h"
#include "executor/cpu/kernels/init.h"
#include "executor/cpu/kernels/linear.h"
#include "executor/cpu/kernels/loss.h"
#include "executor/cpu/kernels/norm.h"
#include "executor/cpu/kernels/optimizer.h"
#include "sim/target/workspace.h"

extern "C" void omp_set_num_threads(int);

namespace {

using namespace shard::cpu;
using benchmark::Counter;

std::vector<float> values(std::int64_t n) {
  ThreadPool pool(1);
  std::vector<float> v(static_cast<std::size_t>(n));
  random_normal(pool, {1, RandomStream::samples, 0}, 0, n, 1.0F, v.data());
  return v;
}

struct Product {
  std::int64_t m, n, k;
  bool a_transposed, b_transposed;
};

void report_flops(benchmark::State& state, const Product& p) {
  state.counters["GFLOP/s"] =
      Counter(2e-9 * static_cast<double>(p.m * p.n * p.k), Counter::kIsIterationInvariantRate, Counter::kIs1000);
}

// `library`: one call with the library's own threads; otherwise ours.
void product(benchmark::State& state, const Product& p, bool library, int threads) {
  const std::vector<float> a = values(p.m * p.k);
  const std::vector<float> b = values(p.k * p.n);
  std::vector<float> c(static_cast<std::size_t>(p.m * p.n));
  const std::int64_t lda = p.a_transposed ? p.m : p.k;
  const std::int64_t ldb = p.b_transposed ? p.k : p.n;
  ThreadPool pool(library ? 1 : threads);
  if (library) omp_set_num_threads(threads);
  for (auto _ : state) {
    if (library) {
      dnnl_sgemm(p.a_transposed ? 'T' : 'N', p.b_transposed ? 'T' : 'N', p.m, p.n, p.k, 1.0F, a.data(), lda, b.data(),
                 ldb, 0.0F, c.data(), p.n);
    } else {
      gemm(pool, p.m, p.n, p.k, {a.data(), lda, p.a_transposed}, {b.data(), ldb, p.b_transposed}, c.data(), p.n,
           Store::write);
    }
    benchmark::ClobberMemory();
  }
  if (library) omp_set_num_threads(1);
  report_flops(state, p);
}

// `body` runs one call; `bytes` is what it has to move.
template <class Body>
void stream(benchmark::State& state, int threads, double bytes, const Body& body) {
  ThreadPool pool(threads);
  for (auto _ : state) {
    body(pool);
    benchmark::ClobberMemory();
  }
  state.counters["GB/s"] = Counter(1e-9 * bytes, Counter::kIsIterationInvariantRate, Counter::kIs1000);
}

template <class Body>
void add(const std::string& name, const Body& body) {
  for (const int threads : {1, 2}) {
    benchmark::RegisterBenchmark((name + "/threads:" + std::to_string(threads)).c_str(),
                                 [body, threads](benchmark::State& state) { body(state, threads); })
        ->UseRealTime()
        ->Unit(benchmark::kMicrosecond);
  }
}

void add_products() {
  struct Named {
    const char* name;
    std::int64_t t, in, out;
    bool in_out;
  };
  const Named layers[] = {{"gpt2_qkv", 256, 768, 2304, true},       {"gpt2_proj", 256, 768, 768, true},
                          {"gpt2_fc", 256, 768, 3072, true},        {"gpt2_fc_proj", 256, 3072, 768, true},
                          {"gpt2_lm_head", 256, 768, 50257, false}, {"mlp_2000", 20, 2000, 2000, false},
                          {"nano_fc", 1024, 128, 512, true}};
  for (const Named& l : layers) {
    const Product forward{l.t, l.out, l.in, false, !l.in_out};
    const Product input{l.t, l.in, l.out, false, l.in_out};
    const Product weight = l.in_out ? Product{l.in, l.out, l.t, true, false} : Product{l.out, l.in, l.t, true, false};
    for (const auto& [pass, p] : {std::pair{"forward", forward}, {"input", input}, {"weight", weight}}) {
      for (const bool library : {false, true}) {
        add(std::string("gemm/") + l.name + "/" + pass + (library ? "/library" : "/ours"),
            [p = p, library](benchmark::State& state, int threads) { product(state, p, library, threads); });
      }
    }
  }
}

void add_streams() {
  constexpr std::int64_t kLarge = 32 << 20;
  constexpr double kLargeBytes = 4.0 * kLarge;
  add("copy/32Mi", [](benchmark::State& state, int threads) {
    const std::vector<float> a = values(kLarge);
    std::vector<float> b(kLarge);
    stream(state, threads, 2 * kLargeBytes, [&](ThreadPool& pool) { convert_copy(pool, kLarge, a.data(), b.data()); });
  });
  add("add_into/32Mi", [](benchmark::State& state, int threads) {
    const std::vector<float> a = values(kLarge);
    std::vector<float> b(kLarge);
    stream(state, threads, 3 * kLargeBytes, [&](ThreadPool& pool) { add_into(pool, kLarge, a.data(), b.data()); });
  });
  add("adamw/32Mi", [](benchmark::State& state, int threads) {
    const std::vector<float> g = values(kLarge);
    std::vector<float> p = g, m(kLarge), v(kLarge);
    const OptimizerScalars scalars;
    const std::int32_t step = 10;
    stream(state, threads, 7 * kLargeBytes,
           [&](ThreadPool& pool) { adamw(pool, scalars, &step, kLarge, g.data(), p.data(), m.data(), v.data()); });
  });
  add("random_normal/32Mi", [](benchmark::State& state, int threads) {
    std::vector<float> a(kLarge);
    stream(state, threads, kLargeBytes, [&](ThreadPool& pool) {
      random_normal(pool, {1, RandomStream::parameter, 0}, 0, kLarge, 0.02F, a.data());
    });
  });
}

// Of gpt2, four sequences of 64.
constexpr std::int64_t kTokens = 256;
constexpr std::int64_t kHidden = 768;
constexpr std::int64_t kVocabulary = 50257;
constexpr double kBytes = 4.0 * kTokens * kHidden;

void add_elementwise() {
  add("layer_norm_forward/gpt2", [](benchmark::State& state, int threads) {
    const std::vector<float> x = values(kTokens * kHidden), w = values(kHidden);
    std::vector<float> y(x.size()), mean(kTokens), rstd(kTokens);
    stream(state, threads, 2 * kBytes, [&](ThreadPool& pool) {
      layer_norm_forward(pool, {kTokens, kHidden}, 1e-5F, x.data(), w.data(), w.data(), y.data(), mean.data(),
                         rstd.data());
    });
  });
  add("layer_norm_backward/gpt2", [](benchmark::State& state, int threads) {
    const std::vector<float> x = values(kTokens * kHidden), w = values(kHidden), s(kTokens, 1.0F);
    std::vector<float> dx(x.size()), dw(kHidden), db(kHidden);
    stream(state, threads, 3 * kBytes, [&](ThreadPool& pool) {
      layer_norm_backward(pool, {kTokens, kHidden}, x.data(), w.data(), s.data(), s.data(), x.data(), dx.data(),
                          Store::write, dw.data(), db.data());
    });
  });
  add("gelu_forward/gpt2", [](benchmark::State& state, int threads) {
    const std::vector<float> x = values(4 * kTokens * kHidden);
    std::vector<float> y(x.size());
    stream(state, threads, 8 * kBytes,
           [&](ThreadPool& pool) { gelu_forward(pool, 4 * kTokens * kHidden, x.data(), y.data()); });
  });
  add("gelu_backward/gpt2", [](benchmark::State& state, int threads) {
    const std::vector<float> x = values(4 * kTokens * kHidden);
    std::vector<float> d(x.size());
    stream(state, threads, 12 * kBytes,
           [&](ThreadPool& pool) { gelu_backward(pool, 4 * kTokens * kHidden, x.data(), x.data(), d.data()); });
  });
  add("bias_gradient/gpt2", [](benchmark::State& state, int threads) {
    // A product with one input feature: the sum over rows is what takes the time.
    const std::vector<float> dy = values(4 * kTokens * kHidden), x = values(kTokens);
    std::vector<float> dw(4 * kHidden), db(4 * kHidden);
    stream(state, threads, 4 * kBytes, [&](ThreadPool& pool) {
      linear_backward_weight(pool, {kTokens, 1, 4 * kHidden, true}, x.data(), dy.data(), dw.data(), db.data(),
                             Store::write);
    });
  });
}

void add_attention() {
  for (const auto& [sequence, probability] :
       {std::pair<std::int64_t, float>{64, 0.0F}, {64, 0.1F}, {1024, 0.0F}, {1024, 0.1F}}) {
    const std::string name = std::to_string(sequence) + (probability > 0 ? "_dropout" : "");
    const AttentionDropout dropout{.probability = probability, .key = dropout_key(1, 2, 3), .heads = 12};
    const AttentionShape shape{kTokens / std::min(sequence, kTokens), sequence, 12, 12, 64};
    const std::int64_t tokens = shape.batch * sequence;
    add("attention_forward/gpt2_" + name, [=](benchmark::State& state, int threads) {
      const std::vector<float> qkv = values(tokens * 3 * kHidden);
      std::vector<float> y(static_cast<std::size_t>(tokens * kHidden)), lse(static_cast<std::size_t>(tokens * 12));
      std::vector<std::byte> workspace(
          static_cast<std::size_t>(shard::plan::attention_forward_workspace(sequence, threads).count()));
      const auto head = [&](std::int64_t i) { return HeadsView{qkv.data() + i * kHidden, 3 * kHidden}; };
      stream(state, threads, 16.0 * static_cast<double>(tokens * kHidden), [&](ThreadPool& pool) {
        attention_forward(pool, shape, head(0), head(1), head(2), {y.data(), kHidden}, lse.data(), workspace, dropout);
      });
    });
    add("attention_backward/gpt2_" + name, [=](benchmark::State& state, int threads) {
      const std::vector<float> qkv = values(tokens * 3 * kHidden), dy = values(tokens * kHidden);
      const std::vector<float> lse(static_cast<std::size_t>(tokens * 12), 5.0F);
      std::vector<float> d(qkv.size());
      std::vector<std::byte> workspace(
          static_cast<std::size_t>(shard::plan::attention_backward_workspace(sequence, threads).count()));
      const auto head = [&](std::int64_t i) { return HeadsView{qkv.data() + i * kHidden, 3 * kHidden}; };
      const auto out = [&](std::int64_t i) { return HeadsOut{d.data() + i * kHidden, 3 * kHidden}; };
      stream(state, threads, 28.0 * static_cast<double>(tokens * kHidden), [&](ThreadPool& pool) {
        attention_backward(pool, shape, head(0), head(1), head(2), lse.data(), {dy.data(), kHidden}, out(0), out(1),
                           out(2), workspace, dropout);
      });
    });
  }
}

void add_vocabulary() {
  add("cross_entropy_forward/gpt2", [](benchmark::State& state, int threads) {
    const std::vector<float> logits = values(kTokens * kVocabulary);
    const std::vector<std::int32_t> targets(kTokens, 7);
    float loss = 0;
    std::vector<float> lse(kTokens);
    stream(state, threads, 4.0 * kTokens * kVocabulary, [&](ThreadPool& pool) {
      cross_entropy_forward(pool, {kTokens, kVocabulary}, logits.data(), targets.data(), &loss, lse.data());
    });
  });
  add("cross_entropy_backward/gpt2", [](benchmark::State& state, int threads) {
    const std::vector<float> logits = values(kTokens * kVocabulary), lse(kTokens, 11.0F);
    const std::vector<std::int32_t> targets(kTokens, 7);
    std::vector<float> d(logits.size());
    stream(state, threads, 8.0 * kTokens * kVocabulary, [&](ThreadPool& pool) {
      cross_entropy_backward(pool, {kTokens, kVocabulary}, logits.data(), targets.data(), lse.data(), 1.0F, d.data());
    });
  });
  add("embedding_backward_tied/gpt2", [](benchmark::State& state, int threads) {
    const std::vector<float> dy = values(kTokens * kHidden);
    std::vector<std::int32_t> tokens(kTokens);
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::int32_t>(i * 7919 % kVocabulary);
    std::vector<float> d(static_cast<std::size_t>(kVocabulary * kHidden));
    stream(state, threads, 3 * kBytes, [&](ThreadPool& pool) {
      embedding_backward(pool, {kTokens, kVocabulary, kHidden}, dy.data(), tokens.data(), d.data(), Store::add);
    });
  });
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  add_products();
  add_streams();
  add_elementwise();
  add_attention();
  add_vocabulary();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
