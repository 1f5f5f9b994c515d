// transformers 5: what blocks are called with beside their input: positions, masks (masking_utils.py), rotary tables,
// biases of attention by distance.
#include <bit>

#include "sim/like/eager/lowering.h"

namespace shard::like::eager {

void LoweredDecoder::make_inputs() {
  r_.tape().set_module(r_.tape().keep(own_part()), -1);
  Arguments& first = arguments_of_kind_[0];
  switch (row_.inputs) {
    case Inputs::none: return;
    case Inputs::ids:
    case Inputs::ids_masked:
    case Inputs::mask_last: first.ids = positions(); break;
    case Inputs::ones: {
      const Tensor seen = positions_of_ones();
      positions_ = embedding(r_, weight(*lowered_.before.find(model::OperatorKind::add_position)), seen);
      break;
    }
    case Inputs::bloom_alibi: first.alibi = bloom_alibi(); break;
    case Inputs::mpt_alibi: first.alibi = mpt_alibi(); break;
  }
  if (row_.inputs != Inputs::mask_last) make_masks();
  if (row_.rotation != Rotation::none && first.ids && !turns_pairs()) {
    if (has_kind(0)) rotary_tables(first);
    if (row_.rotary_of_kinds && has_kind(1)) rotary_tables(arguments_of_kind_[1]);
  }
  if (row_.kinds_of_layers) {
    Arguments& second = arguments_of_kind_[1];
    second.ids = first.ids;
    if (!row_.rotary_of_kinds) {
      second.cosine = first.cosine;
      second.sine = first.sine;
    }
  }
}

/// create_causal_mask, and create_sliding_window_causal_mask: none for sdpa.
void LoweredDecoder::make_masks() {
  const bool by_ids = row_.inputs == Inputs::ids || row_.inputs == Inputs::mask_last;
  for (std::size_t kind = 0; kind < (row_.kinds_of_layers ? 2U : 1U); ++kind) {
    if (by_ids && !asks_for_cache()) look_for_packed_sequences();
    if (options_.attention == Attention::eager || row_.inputs == Inputs::ids_masked)
      arguments_of_kind_[kind].mask = causal_mask(kind == 1);
  }
}

Tensor LoweredDecoder::causal_mask(bool within_window) {
  const std::int64_t b = options_.batch, s = options_.sequence;
  r_.tape().begin_op("causal mask");
  Tensor allowed;
  {
    const Tensor batch = r_.empty({b}, Scalar::i64), one_head = r_.empty({1}, Scalar::i64);
    Tensors ranges;
    for (int i = 0; i < 2; ++i) {
      const Tensor range = r_.empty({s}, Scalar::i64);
      ranges.push_back(r_.empty({s}, Scalar::i64));
    }
    const auto booleans = [&] { return r_.empty({1, 1, s, s}, Scalar::boolean); };
    if (within_window) {
      allowed = r_.empty({}, Scalar::boolean);
      Tensor first_seen = r_.empty({s}, Scalar::i64);
      for (int i = 0; i < 2; ++i) {
        const Tensor mask = booleans();
        first_seen = {};
        allowed = booleans();
      }
    } else {
      allowed = booleans();
    }
  }
  if (row_.inputs == Inputs::ids_masked) return allowed;
  Tensor mask;
  {
    const Tensor zero = r_.empty({}, options_.precision), least = r_.empty({}, options_.precision);
    mask = r_.empty({b, 1, s, s}, options_.precision);
  }
  allowed = {};
  if (row_.inputs == Inputs::mpt_alibi) mask = r_.empty({b, 1, s, s}, Scalar::boolean);
  return mask;
}

/// The mask of ones and the positions that are counted from it live as long as forward(); the result is what the
/// embedding is asked for.
Tensor LoweredDecoder::positions_of_ones() {
  const Dims sizes{options_.batch, options_.sequence};
  r_.tape().begin_op("positions");
  names_of_forward_.push_back(r_.empty(sizes, Scalar::f32));
  Tensor ids = r_.empty(sizes, Scalar::f32);
  {
    Tensor counted = r_.empty(sizes, Scalar::f32);
    counted = r_.empty(sizes, Scalar::f32);
    ids = r_.empty(sizes, Scalar::i64);
  }
  arguments_of_kind_[0].ids = ids;
  return r_.empty(sizes, Scalar::i64);
}

void LoweredDecoder::rotary_tables(Arguments& arguments) {
  (void)in_module(r_, {.name = "rotary_emb", .positional = false}, arguments_of_kind_[0].ids, [&](const Tensor& ids) {
    fill_rotary_tables(arguments);
    return ids;
  });
}

void LoweredDecoder::fill_rotary_tables(Arguments& arguments) {
  const std::int64_t s = options_.sequence, d = rotary_columns();
  r_.tape().set_module(r_.tape().keep(std::string(own_part()) + ".rotary_emb"), -1);
  r_.tape().begin_op("rotary tables");
  Tensor numbers = r_.empty({1, s, 1}, Scalar::f32);
  const Tensor freqs = r_.empty({1, s, d / 2}, Scalar::f32);
  numbers = {};
  const Tensor both = r_.empty({1, s, d}, Scalar::f32);
  const auto table = [&] {
    const Tensor plain = r_.empty({1, s, d}, Scalar::f32);
    return r_.empty({1, s, d}, Scalar::f32);
  };
  const Tensor cosine = table(), sine = table();
  const Tensor cosine_cast = to(r_, cosine, options_.precision), sine_cast = to(r_, sine, options_.precision);
  arguments.cosine = cosine_cast.view({1, 1, s, d}, {s * d, s * d, d, 1});
  arguments.sine = sine_cast.view({1, 1, s, d}, {s * d, s * d, d, 1});
}

/// _get_alibi_slopes, and what is made of them.
Tensor LoweredDecoder::bloom_alibi() {
  const std::int64_t b = options_.batch, s = options_.sequence, h = model_.heads;
  const auto power = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(h)));
  r_.tape().begin_op("alibi");
  Tensor slopes;
  {
    const Tensor base = r_.empty({}, Scalar::f32), powers = r_.empty({power, 1}, Scalar::f32);
    slopes = r_.empty({power}, Scalar::f32);
    if (power != h) {
      const std::int64_t rest = std::min(power, h - power);
      const Tensor extra_base = r_.empty({}, Scalar::f32), extra_powers = r_.empty({rest}, Scalar::f32);
      const Tensor extra = r_.empty({rest}, Scalar::f32);
      slopes = r_.empty({h}, Scalar::f32);
    }
  }
  names_of_forward_.push_back(slopes);
  Tensor alibi;
  {
    const Tensor range = r_.empty({s}, Scalar::i64);
    alibi = r_.empty({h, 1, s}, Scalar::f32);
  }
  {
    const Tensor wide = r_.empty({b * h, 1, s}, Scalar::f32);
    alibi = to(r_, wide, options_.precision);
  }
  return alibi;
}

/// build_mpt_alibi_tensor, of the longest sequence.
Tensor LoweredDecoder::mpt_alibi() {
  const std::int64_t most = model_.max_sequence, h = model_.heads;
  const auto power = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(h)));
  r_.tape().begin_op("alibi");
  const Tensor distances = r_.empty({most}, Scalar::f32);
  Tensor base;
  {
    const Tensor numbers = r_.empty({power}, Scalar::i64);
    base = r_.empty({power}, Scalar::f32);
  }
  base = r_.empty({power}, Scalar::f32);
  Tensor slopes;
  {
    const Tensor powers = r_.empty({power}, Scalar::f32);
    { const Tensor two = r_.empty({1}, Scalar::i64); }
    const Tensor reciprocal = r_.empty({power}, Scalar::f32);
    slopes = r_.empty({power}, Scalar::f32);
  }
  if (power != h) slopes = r_.empty({power}, Scalar::f32);
  return r_.empty({h, 1, most}, Scalar::f32);
}

}  // namespace shard::like::eager
