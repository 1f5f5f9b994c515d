// Exact sums of squares, and what is not finite: integers only, a piece of elements to a block.
#include <bit>

#include "executor/cuda/kernels/device.h"
#include "executor/cuda/kernels/kernels.h"

namespace shard::cuda {
namespace {

constexpr int kLimbs = GradientFacts::kLimbs;
/// Elements of a block. A block adds less than 2^32 to a limb, as the header of the facts promises of so many.
constexpr std::int64_t kPiece = 16384;
constexpr std::uint64_t kDigit = 0xFFFFFFFFU;
constexpr std::uint32_t kNotFinite = 255;  // the exponent of infinity and NaN

using Word = unsigned long long;  // what CUDA's atomics take

/// What a block has found; its shared memory.
struct Piece {
  Word limbs[kLimbs];
  Word nonfinite;
  long long first_nonfinite;
};

/// Squares of neighbouring exponents on their way to the limbs: sum over w of digits[w] 2^(32 (limb + w) - 298). Most
/// gradients of a tensor share a window of two limbs, 32 exponents.
struct SquareWindow {
  int limb = 0;
  Word digits[4] = {};
};

SHARD_DEVICE void flush(const SquareWindow& window, Piece& piece) {
  for (int w = 0; w < 4; ++w)
    if (window.digits[w] != 0) atomicAdd(&piece.limbs[window.limb + w], window.digits[w]);
}

SHARD_DEVICE void add_square(std::uint32_t bits, SquareWindow& window, Piece& piece) {
  const std::uint32_t exponent = bits >> 23;
  const std::uint64_t whole = (bits & 0x7FFFFFU) | (exponent != 0 ? 0x800000U : 0U);
  if (whole == 0) return;
  // A float is whole 2^(max(exponent, 1) - 150); the smallest square is at position 0.
  const std::uint32_t position = 2 * (exponent != 0 ? exponent - 1 : 0);
  const int limb = static_cast<int>(position / 32);
  if (limb < window.limb || limb > window.limb + 1) {
    flush(window, piece);
    window = {};
    // The exponents beside it are as likely below as above.
    window.limb = limb > 0 && position % 32 < 16 ? limb - 1 : limb;
  }
  const std::uint64_t square = whole * whole;
  const std::uint32_t shift = position % 32;
  const std::uint64_t low = (square & kDigit) << shift;
  const std::uint64_t high = (square >> 32) << shift;
  const Word first = low & kDigit;
  const Word second = (low >> 32) + (high & kDigit);
  const Word third = high >> 32;
  const bool upper = limb != window.limb;
  window.digits[0] += upper ? 0 : first;
  window.digits[1] += upper ? first : second;
  window.digits[2] += upper ? second : third;
  window.digits[3] += upper ? third : 0;
}

/// Adds a block's limbs, every one but the last below 2^32, to those of all.
SHARD_DEVICE void add_limbs(Piece& piece, GradientFacts* facts) {
  Word carried = 0;
  for (int i = 0; i < kLimbs; ++i) {
    const Word limb = piece.limbs[i] + carried;
    const Word kept = i + 1 < kLimbs ? limb & kDigit : limb;
    carried = limb >> 32;
    if (kept != 0) atomicAdd(reinterpret_cast<Word*>(&facts->limbs[i]), kept);
  }
}

template <class T, bool kSquares>
SHARD_KERNEL facts_kernel(std::int64_t n, const T* x, std::int64_t first_key, GradientFacts* facts) {
  Piece& piece = *shared<Piece>();
  for (int i = static_cast<int>(threadIdx.x); i < kLimbs; i += static_cast<int>(blockDim.x)) piece.limbs[i] = 0;
  if (threadIdx.x == 0) {
    piece.nonfinite = 0;
    piece.first_nonfinite = GradientFacts::kNone;
  }
  __syncthreads();
  SquareWindow window;
  Word nonfinite = 0;
  std::int64_t first_nonfinite = GradientFacts::kNone;
  const std::int64_t begin = blockIdx.x * kPiece;
  const std::int64_t end = begin + kPiece < n ? begin + kPiece : n;
  for (std::int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(to_f32(x[i])) & 0x7FFFFFFFU;
    if (bits >> 23 == kNotFinite) {
      if (nonfinite == 0) first_nonfinite = first_key + i;
      ++nonfinite;
    } else if constexpr (kSquares) {
      add_square(bits, window, piece);
    }
  }
  if constexpr (kSquares) flush(window, piece);
  if (nonfinite != 0) {
    atomicAdd(&piece.nonfinite, nonfinite);
    atomicMin(&piece.first_nonfinite, static_cast<long long>(first_nonfinite));
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  if constexpr (kSquares) add_limbs(piece, facts);
  if (piece.nonfinite == 0) return;
  atomicAdd(reinterpret_cast<Word*>(&facts->nonfinite), piece.nonfinite);
  atomicMin(reinterpret_cast<long long*>(&facts->first_nonfinite), piece.first_nonfinite);
}

template <bool kSquares>
void add_facts(Stream stream, std::int64_t n, ConstElements x, std::int64_t first_key, GradientFacts* facts) {
  if (n <= 0) return;
  with_type(x.dtype(), [&]<class T>(T) {
    launch(stream,
           {.blocks_x = static_cast<std::uint32_t>((n + kPiece - 1) / kPiece),
            .threads = kThreads,
            .shared_bytes = static_cast<std::uint32_t>(sizeof(Piece))},
           facts_kernel<T, kSquares>, n, x.as<T>(), first_key, facts);
  });
}

}  // namespace

void square_sum_add(Stream stream, std::int64_t n, ConstElements x, std::int64_t first_key, GradientFacts* facts) {
  add_facts<true>(stream, n, x, first_key, facts);
}

void nonfinite_add(Stream stream, std::int64_t n, ConstElements x, std::int64_t first_key, GradientFacts* facts) {
  add_facts<false>(stream, n, x, first_key, facts);
}

}  // namespace shard::cuda
