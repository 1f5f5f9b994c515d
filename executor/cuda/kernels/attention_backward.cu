// Causal attention, backward: probabilities are made again; keys' gradients by blocks of keys, queries' by blocks of
// queries, so that every sum has one owner and one order.
#include "executor/cuda/kernels/attention_tiles.h"

namespace shard::cuda {
namespace {

/// Shared memory of a block.
template <class Tiles>
struct Shared {
  float* own[2];     // what the block keeps, as [D][row]: q and dy, or k and v
  float* other;      // what it goes over, one after the other
  float* square[2];  // tiles of scores, or of sums
  std::uint16_t* kept;
  SHARD_DEVICE explicit Shared(const AttentionSizes& z) {
    float* next = shared<float>();
    for (float*& panel : own) {
      panel = next;
      next += Tiles::panel(z.width);
    }
    other = next;
    next += Tiles::panel(z.width);
    for (float*& tile : square) {
      tile = next;
      next += Tiles::kSquare;
    }
    kept = reinterpret_cast<std::uint16_t*>(next);
  }
};

/// A tile of scores: where its queries and keys begin, and how many there are.
struct Window {
  std::int64_t first = 0;
  std::int64_t first_key = 0;
  int rows = 0;
  int keys = 0;
};

/// Of a thread: 4 queries, 4 keys, and whether any of these keys is before any of these queries.
struct Place {
  int row = 0;
  int key = 0;
  bool sees = false;
  SHARD_DEVICE Place(const Window& w, int side)
      : row(static_cast<int>(threadIdx.x) / side * 4),
        key(static_cast<int>(threadIdx.x) % side * 4),
        sees(row < w.rows && key < w.keys && w.first_key + key <= w.first + row + 3) {}
};

/// Scores become probabilities, 0 behind the diagonal; `gradients` of what v is weighted with become theirs.
SHARD_DEVICE void soften(const AttentionSizes& z, const AttentionMask& mask, const std::uint16_t* kept, const Window& w,
                         const Place& at, const float (&lse)[4], float (&p)[4][4], float (&gradients)[4][4]) {
  for_4x4([&](int i, int j) {
    const std::int64_t key = w.first_key + at.key + j;
    const bool seen = at.row + i < w.rows && at.key + j < w.keys && key <= w.first + at.row + i;
    p[i][j] = seen ? exp_f32(p[i][j] * z.scale - lse[i]) : 0.0F;
    if (!seen)
      gradients[i][j] = 0.0F;
    else if (mask.threshold > 0)
      gradients[i][j] = is_kept(kept, at.row + i, key) ? gradients[i][j] * mask.factor : 0.0F;
  });
}

/// Of 4 queries, from the first row of a tile on: `values` of those that there are.
SHARD_DEVICE void load_four(const Window& w, const Place& at, const float* values, float (&four)[4]) {
  SHARD_UNROLL
  for (int i = 0; i < 4; ++i) four[i] = at.row + i < w.rows ? values[at.row + i] : 0.0F;
}

/// Products of q and k, and of dy and v, become what v is weighted with, and the gradients of the products of q and k.
/// `lse`, `delta`: from the first row of the tile on.
SHARD_DEVICE void differentiate(const AttentionSizes& z, const AttentionMask& mask, const std::uint16_t* kept,
                                const Window& w, const Place& at, const float* lse, const float* delta,
                                float (&p)[4][4], float (&ds)[4][4]) {
  float row_lse[4];
  float row_delta[4];
  load_four(w, at, lse, row_lse);
  load_four(w, at, delta, row_delta);
  soften(z, mask, kept, w, at, row_lse, p, ds);
  for_4x4([&](int i, int j) {
    ds[i][j] = p[i][j] * (ds[i][j] - row_delta[i]) * z.scale;
    if (mask.threshold > 0)
      p[i][j] = is_kept(kept, at.row + i, w.first_key + at.key + j) ? p[i][j] * mask.factor : 0.0F;
  });
}

/// A thread's part of a tile of scores: as [query][key].
template <class Tiles>
SHARD_DEVICE void store_square(const Place& at, const float (&values)[4][4], float* square) {
  SHARD_UNROLL
  for (int i = 0; i < 4; ++i)
    *reinterpret_cast<Four*>(square + (at.row + i) * Tiles::kStride + at.key) =
        Four{{values[i][0], values[i][1], values[i][2], values[i][3]}};
}
/// As [key][query].
template <class Tiles>
SHARD_DEVICE void store_square_across(const Place& at, const float (&values)[4][4], float* square) {
  SHARD_UNROLL
  for (int j = 0; j < 4; ++j)
    *reinterpret_cast<Four*>(square + (at.key + j) * Tiles::kStride + at.row) =
        Four{{values[0][j], values[1][j], values[2][j], values[3][j]}};
}

/// delta [B,H,S] = sum over keys of probability x its gradient.
template <class Tiles, class T>
SHARD_KERNEL attention_delta_kernel(AttentionSizes z, AttentionMask mask, const T* q, const T* k, const T* v,
                                    const float* lse, const T* dy, float* delta, const std::int64_t* step) {
  const Shared<Tiles> s(z);
  const std::int64_t all = z.batch * z.heads;
  const std::int64_t b = blockIdx.x % all / z.heads;
  const std::int64_t h = blockIdx.x % z.heads;
  const std::int64_t kv_head = h / (z.heads / z.kv_heads);
  Window w;
  w.first = (gridDim.x / all - 1 - blockIdx.x / all) * Tiles::kTile;  // the longest first
  w.rows = smaller(Tiles::kTile, z.sequence - w.first);
  const std::int64_t row_of_all = (b * z.heads + h) * z.sequence + w.first;
  load_across<Tiles>(z, q + (b * z.sequence + w.first) * z.q_stride + h * z.dim, z.q_stride, w.rows, s.own[0]);
  load_across<Tiles>(z, dy + (b * z.sequence + w.first) * z.y_stride + h * z.dim, z.y_stride, w.rows, s.own[1]);
  float sums[4] = {};
  for (; w.first_key < w.first + w.rows; w.first_key += Tiles::kTile) {
    w.keys = smaller(Tiles::kTile, z.sequence - w.first_key);
    const Place at(w, Tiles::kSide);
    const std::int64_t token = b * z.sequence + w.first_key;
    float p[4][4] = {};
    float dp[4][4] = {};
    load_across<Tiles>(z, k + token * z.k_stride + kv_head * z.dim, z.k_stride, w.keys, s.other);
    if (mask.threshold > 0) draw_mask<Tiles>(z, mask, step, b, h, w.first, w.first_key, w.rows, s.kept);
    __syncthreads();
    if (at.sees) multiply<Tiles>(z.dim, s.own[0] + at.row, s.other + at.key, p);
    __syncthreads();
    load_across<Tiles>(z, v + token * z.v_stride + kv_head * z.dim, z.v_stride, w.keys, s.other);
    __syncthreads();
    if (at.sees) {
      multiply<Tiles>(z.dim, s.own[1] + at.row, s.other + at.key, dp);
      float row_lse[4];
      load_four(w, at, lse + row_of_all, row_lse);
      soften(z, mask, s.kept, w, at, row_lse, p, dp);
      for_4x4([&](int i, int j) { sums[i] = sums[i] + p[i][j] * dp[i][j]; });
    }
    __syncthreads();
  }
  const Place at(w, Tiles::kSide);
  SHARD_UNROLL
  for (int i = 0; i < 4; ++i) s.square[0][at.key / 4 * Tiles::kTile + at.row + i] = sums[i];
  __syncthreads();
  const int row = static_cast<int>(threadIdx.x);
  if (row >= w.rows) return;
  float sum = 0.0F;
  for (int part = 0; part < Tiles::kSide; ++part) sum = sum + s.square[0][part * Tiles::kTile + row];
  delta[row_of_all + row] = sum;
}

/// dk and dv of a tile of keys, summed over the query heads of its key head, and over tiles of queries, in order.
template <class Tiles, class T>
SHARD_KERNEL attention_keys_kernel(AttentionSizes z, AttentionMask mask, const T* q, const T* k, const T* v,
                                   const float* lse, const T* dy, const float* delta, T* dk, T* dv,
                                   const std::int64_t* step) {
  const Shared<Tiles> s(z);
  const std::int64_t all = z.batch * z.kv_heads;
  const std::int64_t b = blockIdx.x % all / z.kv_heads;
  const std::int64_t kv_head = blockIdx.x % z.kv_heads;
  const std::int64_t group = z.heads / z.kv_heads;
  Window w;
  w.first_key = blockIdx.x / all * Tiles::kTile;  // the first keys are seen by the most queries
  w.keys = smaller(Tiles::kTile, z.sequence - w.first_key);
  const std::int64_t token = b * z.sequence + w.first_key;
  load_across<Tiles>(z, k + token * z.k_stride + kv_head * z.dim, z.k_stride, w.keys, s.own[0]);
  load_across<Tiles>(z, v + token * z.v_stride + kv_head * z.dim, z.v_stride, w.keys, s.own[1]);
  const int own_key = static_cast<int>(threadIdx.x) / Tiles::kSide * 4;  // of the sums
  const int column = static_cast<int>(threadIdx.x) % Tiles::kSide * 4;
  float dk_sums[Tiles::kGroups][4][4] = {};
  float dv_sums[Tiles::kGroups][4][4] = {};
  for (std::int64_t h = kv_head * group; h < (kv_head + 1) * group; ++h)
    for (w.first = w.first_key; w.first < z.sequence; w.first += Tiles::kTile) {
      w.rows = smaller(Tiles::kTile, z.sequence - w.first);
      const Place at(w, Tiles::kSide);
      const T* q_rows = q + (b * z.sequence + w.first) * z.q_stride + h * z.dim;
      const T* dy_rows = dy + (b * z.sequence + w.first) * z.y_stride + h * z.dim;
      const std::int64_t row_of_all = (b * z.heads + h) * z.sequence + w.first;
      float p[4][4] = {};
      float ds[4][4] = {};
      load_across<Tiles>(z, q_rows, z.q_stride, w.rows, s.other);
      if (mask.threshold > 0) draw_mask<Tiles>(z, mask, step, b, h, w.first, w.first_key, w.rows, s.kept);
      __syncthreads();
      if (at.sees) multiply<Tiles>(z.dim, s.other + at.row, s.own[0] + at.key, p);
      __syncthreads();
      load_across<Tiles>(z, dy_rows, z.y_stride, w.rows, s.other);
      __syncthreads();
      if (at.sees) {
        multiply<Tiles>(z.dim, s.other + at.row, s.own[1] + at.key, ds);
        differentiate(z, mask, s.kept, w, at, lse + row_of_all, delta + row_of_all, p, ds);
        store_square<Tiles>(at, p, s.square[0]);
        store_square<Tiles>(at, ds, s.square[1]);
      }
      __syncthreads();
      // Before the diagonal no query sees this thread's keys.
      const int begin = w.first == w.first_key ? own_key : 0;
      load_along<Tiles>(z, dy_rows, z.y_stride, w.rows, s.other);
      __syncthreads();
      if (own_key < w.keys) multiply_add<Tiles>(z, begin, w.rows, s.square[0] + own_key, s.other, column, dv_sums);
      __syncthreads();
      load_along<Tiles>(z, q_rows, z.q_stride, w.rows, s.other);
      __syncthreads();
      if (own_key < w.keys) multiply_add<Tiles>(z, begin, w.rows, s.square[1] + own_key, s.other, column, dk_sums);
      __syncthreads();
    }
  const float ones[4] = {1.0F, 1.0F, 1.0F, 1.0F};
  store_rows<Tiles>(z, dk_sums, ones, own_key, column, w.keys, dk + token * z.dk_stride + kv_head * z.dim, z.dk_stride);
  store_rows<Tiles>(z, dv_sums, ones, own_key, column, w.keys, dv + token * z.dv_stride + kv_head * z.dim, z.dv_stride);
}

/// dq of a tile of queries, summed over tiles of keys in order.
template <class Tiles, class T>
SHARD_KERNEL attention_queries_kernel(AttentionSizes z, AttentionMask mask, const T* q, const T* k, const T* v,
                                      const float* lse, const T* dy, const float* delta, T* dq,
                                      const std::int64_t* step) {
  const Shared<Tiles> s(z);
  const std::int64_t all = z.batch * z.heads;
  const std::int64_t b = blockIdx.x % all / z.heads;
  const std::int64_t h = blockIdx.x % z.heads;
  const std::int64_t kv_head = h / (z.heads / z.kv_heads);
  Window w;
  w.first = (gridDim.x / all - 1 - blockIdx.x / all) * Tiles::kTile;
  w.rows = smaller(Tiles::kTile, z.sequence - w.first);
  const std::int64_t own_token = b * z.sequence + w.first;
  const std::int64_t row_of_all = (b * z.heads + h) * z.sequence + w.first;
  load_across<Tiles>(z, q + own_token * z.q_stride + h * z.dim, z.q_stride, w.rows, s.own[0]);
  load_across<Tiles>(z, dy + own_token * z.y_stride + h * z.dim, z.y_stride, w.rows, s.own[1]);
  const int own_row = static_cast<int>(threadIdx.x) / Tiles::kSide * 4;  // of the sums
  const int column = static_cast<int>(threadIdx.x) % Tiles::kSide * 4;
  float sums[Tiles::kGroups][4][4] = {};
  for (; w.first_key < w.first + w.rows; w.first_key += Tiles::kTile) {
    w.keys = smaller(Tiles::kTile, z.sequence - w.first_key);
    const Place at(w, Tiles::kSide);
    const T* k_rows = k + (b * z.sequence + w.first_key) * z.k_stride + kv_head * z.dim;
    const T* v_rows = v + (b * z.sequence + w.first_key) * z.v_stride + kv_head * z.dim;
    float p[4][4] = {};
    float ds[4][4] = {};
    load_across<Tiles>(z, k_rows, z.k_stride, w.keys, s.other);
    if (mask.threshold > 0) draw_mask<Tiles>(z, mask, step, b, h, w.first, w.first_key, w.rows, s.kept);
    __syncthreads();
    if (at.sees) multiply<Tiles>(z.dim, s.own[0] + at.row, s.other + at.key, p);
    __syncthreads();
    load_across<Tiles>(z, v_rows, z.v_stride, w.keys, s.other);
    __syncthreads();
    if (at.sees) {
      multiply<Tiles>(z.dim, s.own[1] + at.row, s.other + at.key, ds);
      differentiate(z, mask, s.kept, w, at, lse + row_of_all, delta + row_of_all, p, ds);
      store_square_across<Tiles>(at, ds, s.square[0]);
    }
    __syncthreads();
    load_along<Tiles>(z, k_rows, z.k_stride, w.keys, s.other);
    __syncthreads();
    const int end = smaller(w.keys, w.first + own_row + 4 - w.first_key);
    if (own_row < w.rows) multiply_add<Tiles>(z, 0, end, s.square[0] + own_row, s.other, column, sums);
    __syncthreads();
  }
  const float ones[4] = {1.0F, 1.0F, 1.0F, 1.0F};
  store_rows<Tiles>(z, sums, ones, own_row, column, w.rows, dq + own_token * z.dq_stride + h * z.dim, z.dq_stride);
}

}  // namespace

void attention_backward(Stream stream, const AttentionShape& shape, HeadsView q, HeadsView k, HeadsView v,
                        const float* lse, HeadsView dy, HeadsOut dq, HeadsOut dk, HeadsOut dv, std::byte* workspace,
                        const AttentionDropout& drop, const MaskSource& source, const std::int64_t* step) {
  if (shape.batch * shape.sequence * shape.heads <= 0) return;
  AttentionSizes z = attention_sizes(shape);
  z.q_stride = q.row_stride;
  z.k_stride = k.row_stride;
  z.v_stride = v.row_stride;
  z.y_stride = dy.row_stride;
  z.dq_stride = dq.row_stride;
  z.dk_stride = dk.row_stride;
  z.dv_stride = dv.row_stride;
  const AttentionMask mask = attention_mask(drop, source);
  auto* const delta = reinterpret_cast<float*>(workspace);
  with_type(q.data.dtype(), [&]<class T>(T) {
    with_tiling(shape, [&]<class Tiles>(Tiles) {
      const std::int64_t tiles = (shape.sequence + Tiles::kTile - 1) / Tiles::kTile;
      const Launch by_queries{.blocks_x = static_cast<std::uint32_t>(tiles * shape.batch * shape.heads),
                              .threads = Tiles::kThreads,
                              .shared_bytes = static_cast<std::uint32_t>(attention_backward_shared(shape))};
      Launch by_keys = by_queries;
      by_keys.blocks_x = static_cast<std::uint32_t>(tiles * shape.batch * shape.kv_heads);
      const T* const q_at = q.data.as<T>();
      const T* const k_at = k.data.as<T>();
      const T* const v_at = v.data.as<T>();
      const T* const dy_at = dy.data.as<T>();
      launch(stream, by_queries, attention_delta_kernel<Tiles, T>, z, mask, q_at, k_at, v_at, lse, dy_at, delta, step);
      launch(stream, by_keys, attention_keys_kernel<Tiles, T>, z, mask, q_at, k_at, v_at, lse, dy_at, delta,
             dk.data.as<T>(), dv.data.as<T>(), step);
      launch(stream, by_queries, attention_queries_kernel<Tiles, T>, z, mask, q_at, k_at, v_at, lse, dy_at, delta,
             dq.data.as<T>(), step);
    });
  });
}

}  // namespace shard::cuda
