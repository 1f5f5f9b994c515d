// Optimizers: the step is counted first; then one pass that reads and writes each buffer once.
#include "executor/cuda/kernels/device.h"
#include "executor/cuda/kernels/kernels.h"
#include "executor/cuda/kernels/packs.h"
#include "executor/kernels/optimizer_math.h"

namespace shard::cuda {
namespace {

SHARD_KERNEL count_kernel(const plan::ControlBlock* control, std::int32_t* count) {
  if (control == nullptr || control->skip == 0) *count = *count + 1;
}

/// What is done to elements, for all parameters of one kind of optimizer.
struct Adam {
  using Factors = AdamFactors;
  static constexpr bool kMoments = true;
  SHARD_DEVICE static Factors factors(const OptimizerScalars& scalars, std::int32_t step, float multiplier) {
    return adam_factors(scalars, step, multiplier);
  }
  SHARD_DEVICE static void apply(const Factors& f, float g, float& p, float& m, float& v) {
    adam_element(f, g, p, m, v);
  }
};
struct AdamW {
  using Factors = AdamFactors;
  static constexpr bool kMoments = true;
  SHARD_DEVICE static Factors factors(const OptimizerScalars& scalars, std::int32_t step, float multiplier) {
    return adamw_factors(scalars, step, multiplier);
  }
  SHARD_DEVICE static void apply(const Factors& f, float g, float& p, float& m, float& v) {
    adamw_element(f, g, p, m, v);
  }
};
struct Sgd {
  using Factors = SgdFactors;
  static constexpr bool kMoments = false;
  SHARD_DEVICE static Factors factors(const OptimizerScalars& scalars, std::int32_t, float multiplier) {
    return sgd_factors(scalars, multiplier);
  }
  SHARD_DEVICE static void apply(const Factors& f, float g, float& p, float&, float&) { p = sgd_element(f, g, p); }
};

/// `m` and `v` are not touched without moments.
template <class Rule, class G>
SHARD_KERNEL step_kernel(const OptimizerScalars* scalars, const std::int32_t* count, const plan::ControlBlock* control,
                         float factor, bool decays, std::int64_t n, bool aligned, const G* g, float* p, float* m,
                         float* v) {
  if (control != nullptr && control->skip != 0) return;
  auto* const factors = shared<typename Rule::Factors>();
  if (threadIdx.x == 0) {
    OptimizerScalars own = *scalars;
    if (!decays) own.weight_decay = 0;
    *factors = Rule::factors(own, *count, control == nullptr ? factor : factor * control->multiplier);
  }
  __syncthreads();
  const typename Rule::Factors f = *factors;
  for (std::int64_t i = kPack * first_element(); i < n; i += kPack * element_stride()) {
    float gradient[kPack];
    float parameter[kPack];
    float first[kPack] = {};
    float second[kPack] = {};
    load_pack(g + i, n - i, aligned, gradient);
    load_pack(p + i, n - i, aligned, parameter);
    if constexpr (Rule::kMoments) {
      load_pack(m + i, n - i, aligned, first);
      load_pack(v + i, n - i, aligned, second);
    }
    for (int k = 0; k < kPack; ++k) Rule::apply(f, gradient[k], parameter[k], first[k], second[k]);
    store_pack(parameter, n - i, aligned, p + i);
    if constexpr (Rule::kMoments) {
      store_pack(first, n - i, aligned, m + i);
      store_pack(second, n - i, aligned, v + i);
    }
  }
}

template <class Rule>
void step(Stream stream, const StepState& state, std::int64_t n, ConstElements gradient, float* p, float* m, float* v) {
  launch(stream, {}, count_kernel, state.control, state.count);
  if (n <= 0) return;
  with_type(gradient.dtype(), [&]<class G>(G) {
    const G* const g = gradient.as<G>();
    launch(stream,
           {.blocks_x = blocks_for(packs_of(n)),
            .threads = kThreads,
            .shared_bytes = static_cast<std::uint32_t>(sizeof(typename Rule::Factors))},
           step_kernel<Rule, G>, state.scalars, state.count, state.control, state.factor, state.decays, n,
           aligned_packs(g, p, m, v), g, p, m, v);
  });
}

}  // namespace

void adam(Stream stream, const StepState& state, std::int64_t n, ConstElements gradient, float* parameter,
          float* first_moment, float* second_moment) {
  step<Adam>(stream, state, n, gradient, parameter, first_moment, second_moment);
}

void adamw(Stream stream, const StepState& state, std::int64_t n, ConstElements gradient, float* parameter,
           float* first_moment, float* second_moment) {
  step<AdamW>(stream, state, n, gradient, parameter, first_moment, second_moment);
}

void sgd(Stream stream, const StepState& state, std::int64_t n, ConstElements gradient, float* parameter) {
  step<Sgd>(stream, state, n, gradient, parameter, nullptr, nullptr);
}

}  // namespace shard::cuda
