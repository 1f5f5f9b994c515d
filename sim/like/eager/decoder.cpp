// Parameters, blocks and the batch; transformers 5: integrations/sdpa_attention.py, cache_utils.py, masking_utils.py.
#include "sim/like/eager/decoder.h"

#include <algorithm>
#include <cassert>

#include "sim/like/eager/sharding.h"

namespace shard::like::eager {

void Decoder::create() {
  make_parameters();
  for (std::int64_t l = 0; l < model_.layers; ++l) names_.push_back(r_.tape().keep(block_prefix() + std::to_string(l)));
  tokens_ = named("input", Category::input, {options_.batch, options_.sequence}, Scalar::i64);
}

Tensor Decoder::layer(std::int64_t l, const Tensor& x) {
  const auto named = [this, l, run = options_.checkpoint ? with_arguments(l) : nullptr](const Tensor& input) {
    r_.tape().set_module(names_[static_cast<std::size_t>(l)], static_cast<std::int32_t>(l));
    return run ? run(input) : block(l, input);
  };
  return in_module(r_, {.name = "layer"}, x, [&](const Tensor& entered) {
    return options_.checkpoint ? checkpointed(entered, named) : named(entered);
  });
}

Tensor Decoder::named(std::string_view name, Category category, const Dims& sizes, Scalar scalar) {
  return model_tensor(r_, name, category, sizes, scalar);
}

Tensor Decoder::cached(const Tensor& x, Scalar of_keys) {
  if (!asks_for_cache() || !caches()) return x;
  constexpr std::size_t kOfLayer = 3;  // of a layer with a window: its length so far, keys, values
  if (model_.window > 0 && cache_.size() % kOfLayer == 0) cache_.push_back(r_.empty({}, Scalar::i64));
  Tensor copy = cat(r_, {x}, 2, of_keys);
  cache_.push_back(copy);
  return copy;
}

Tensor Decoder::attend(const Tensor& q, const Tensor& k, const Tensor& v) {
  Tensor y = attention(r_, q, k, v, /*dropped=*/model_.dropout > 0);
  y = contiguous(r_, transpose(r_, y, 1, 2));
  return reshape(r_, y, {options_.batch, options_.sequence, model_.heads * model_.head_dim});
}

void Decoder::look_for_packed_sequences() {
  const std::int64_t b = options_.batch, s = options_.sequence;
  r_.tape().begin_op("packed sequences");
  const Tensor before_first = r_.empty({b, 1}, Scalar::i64);
  Tensor prepended = r_.empty({b, s + 1}, Scalar::i64);
  const Tensor difference = r_.empty({b, s}, Scalar::i64);
  prepended = {};
  Tensor begins = r_.empty({b, s}, Scalar::boolean);
  const Tensor sum = r_.empty({b, s}, Scalar::i64);
  { const Tensor cast = r_.empty({b, s}, Scalar::i64); }
  begins = {};
  const Tensor none = r_.empty({b}, Scalar::boolean), all = r_.empty({}, Scalar::boolean);
}

void Decoder::make_parameters() {
  const bool wrapped = r_.sharding != nullptr && r_.sharding->wraps_placed_module();
  if (r_.sharding != nullptr && !wrapped) {
    r_.sharding->create(model_, [this, next = std::size_t{0}]() mutable {
      for (; next <= r_.parameters().size(); ++next) make_buffers_before(next);
    });
    return;
  }
  for (std::size_t p = 0; p < model_.parameters.size(); ++p) {
    make_buffers_before(p);
    Dims sizes;
    const Parameter& registering = model_.parameters[registered(p)];
    for (const std::int64_t s : registering.shape) sizes.push(s);
    Tensor t = named(registering.name, Category::parameter, sizes, options_.precision);
    t.set_parameter(static_cast<std::int32_t>(p));
    r_.parameters().push_back(t);
  }
  make_buffers_before(model_.parameters.size());
  if (wrapped) r_.sharding->create(model_, {});
}

std::size_t Decoder::place(std::string_view name) const {
  const auto found =
      std::find_if(model_.parameters.begin(), model_.parameters.end(), [&](const auto& p) { return p.name == name; });
  assert(found != model_.parameters.end());
  return static_cast<std::size_t>(found - model_.parameters.begin());
}

}  // namespace shard::like::eager
