// The sizes that operators are called with, on any device.
#pragma once

#include <cstdint>

#include "executor/kernels/elements.h"
#include "executor/kernels/random_key.h"

namespace shard {

struct LinearShape {
  std::int64_t rows = 0;       ///< T
  std::int64_t in = 0;         ///< I
  std::int64_t out = 0;        ///< O
  bool weight_in_out = false;  ///< weight is [I,O] (gpt2's Conv1D) instead of [O,I]
};

struct NormShape {
  std::int64_t rows = 0;     ///< T
  std::int64_t columns = 0;  ///< C
  float weight_offset = 0;   ///< of an RMS norm: added to each weight
};

struct EmbeddingShape {
  std::int64_t tokens = 0;      ///< T
  std::int64_t vocabulary = 0;  ///< V: rows of the table
  std::int64_t columns = 0;     ///< C
  std::int64_t first = 0;       ///< the token of the table's first row; tokens without a row there are zero and skipped
};

struct PositionShape {
  std::int64_t batch = 0;      ///< B
  std::int64_t sequence = 0;   ///< S
  std::int64_t positions = 0;  ///< P >= first + S: rows of the table
  std::int64_t columns = 0;    ///< C
  std::int64_t first = 0;      ///< the row of position 0
};

struct RotaryShape {
  std::int64_t batch = 0;              ///< B
  std::int64_t sequence = 0;           ///< S; the position of token t is t % S
  std::int64_t heads = 0;              ///< H
  std::int64_t head_dim = 0;           ///< D, even
  float base = 10000.0F;               ///< theta
  std::int64_t turned = 0;             ///< R: the first elements of each head that turn, even; 0: D
  std::int64_t passed = 0;             ///< heads behind the first H, which do not turn
  float factor = 1.0F;                 ///< of sine and cosine
  const float* frequencies = nullptr;  ///< of the host, R/2 of them; null: theta^(-2i/R)
  [[nodiscard]] constexpr std::int64_t pairs() const { return (turned == 0 ? head_dim : turned) / 2; }
  /// From one token to the next.
  [[nodiscard]] constexpr std::int64_t row() const { return (heads + passed) * head_dim; }
};

/// Heads of a token by the key head that they belong to: its H/K queries, its key, its value.
struct GroupShape {
  std::int64_t rows = 0;      ///< T
  std::int64_t heads = 0;     ///< H
  std::int64_t kv_heads = 0;  ///< K
  std::int64_t head_dim = 0;  ///< D
  [[nodiscard]] constexpr std::int64_t all() const { return heads + 2 * kv_heads; }
  /// Which of all queries, keys and values the head is that is number `head` by groups.
  [[nodiscard]] constexpr std::int64_t place(std::int64_t head) const {
    const std::int64_t queries = heads / kv_heads;
    const std::int64_t group = head / (queries + 2);
    const std::int64_t in_group = head % (queries + 2);
    if (in_group < queries) return group * queries + in_group;
    return heads + (in_group - queries) * kv_heads + group;
  }
};

struct CrossEntropyShape {
  std::int64_t rows = 0;        ///< T
  std::int64_t vocabulary = 0;  ///< V
};

/// This rank's columns: those of tokens first, first + 1, ...; `padding` of them at the end belong to no token.
struct VocabularyPart {
  std::int64_t rows = 0;     ///< T
  std::int64_t columns = 0;  ///< of this rank, padding included
  std::int64_t first = 0;
  std::int64_t padding = 0;
};

struct ColumnParts {
  std::int64_t rows = 0;
  std::int64_t columns = 0;  ///< of one part
  std::int64_t parts = 0;
};

struct AttentionShape {
  std::int64_t batch = 0;     ///< B
  std::int64_t sequence = 0;  ///< S
  std::int64_t heads = 0;     ///< H query heads
  std::int64_t kv_heads = 0;  ///< K key and value heads; divides H; query head h reads key head h / (H / K)
  std::int64_t head_dim = 0;  ///< D
};

/// Heads of all tokens: element (token t, head h, d) is data[t * row_stride + h * D + d], t = b * S + s.
/// For packed qkv [T,3C]: q = {qkv, 3C}, k = {qkv + C, 3C}, v = {qkv + 2C, 3C}.
struct HeadsView {
  ConstElements data;
  std::int64_t row_stride = 0;
};
struct HeadsOut {
  Elements data;
  std::int64_t row_stride = 0;
};

/// Dropout of the probabilities: each becomes 0 with `probability`, else itself / (1 - probability). That of query i
/// and key j, for sequence b and head h, is 0 where element (b H + h) R + place(j) of the key's sequence in row i is
/// below probability x 2^32, R = S rounded up to 64: the mask knows no tile, thread or rank. B H R <= 2^34, S <= 2^24.
struct AttentionDropout {
  float probability = 0;        ///< 0 <= probability < 1; 0: nothing is dropped or drawn
  RandomKey key{};              ///< dropout_key(); row 0
  std::int64_t heads = 0;       ///< H of the whole model, of which the shape's are some
  std::int64_t first_head = 0;  ///< h of the shape's head 0
  /// The key of row i, and the first of its elements for sequence b and the shape's head h.
  [[nodiscard]] constexpr RandomKey row_key(std::int64_t i) const {
    return {key.seed, key.stream, key.index, static_cast<std::uint32_t>(i)};
  }
  [[nodiscard]] constexpr std::int64_t first_element(std::int64_t b, std::int64_t h, std::int64_t sequence) const {
    return (b * heads + first_head + h) * ((sequence + kBlock - 1) / kBlock * kBlock);
  }
  /// Of 64 keys the first 16 take the first words of 16 counters, the next the second ones, as vectors do best.
  static constexpr int kBlock = 64;
  [[nodiscard]] static constexpr std::int64_t place(std::int64_t j) {
    return j / kBlock * kBlock + j % 16 * 4 + j % kBlock / 16;
  }
};

}  // namespace shard
