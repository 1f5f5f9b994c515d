// Parameters into chunks: which parameter is where in which chunk, what is padding, and which part of a chunk a rank
// owns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/chunk/next_fit.h"
#include "sim/model/parameters.h"
#include "traces/base/units.h"

namespace shard {

/// A parameter's place: elements [offset, offset + elems) of its chunk. `parameter` is its index in the list.
struct PlacedParameter {
  std::size_t parameter = 0;
  Elems offset;
  Elems elems;
  friend bool operator==(const PlacedParameter&, const PlacedParameter&) = default;
};

/// Consecutive parameters, back to back from offset 0; elements [used, elems) are padding.
struct Chunk {
  Elems elems;
  Elems used;
  std::size_t first_parameter = 0;
  std::vector<PlacedParameter> parameters;  ///< never empty
  friend bool operator==(const Chunk&, const Chunk&) = default;
};

/// Every parameter in exactly one chunk, in order.
struct ChunkLayout {
  std::vector<Chunk> chunks;
  Elems waste;  ///< padding of all chunks together
};

/// Elements [begin, end) of a chunk.
struct ElemRange {
  Elems begin;
  Elems end;
  friend bool operator==(const ElemRange&, const ElemRange&) = default;
};

/// Next-fit into chunks of `chunk_elems` >= 1 (see NextFit). With Oversize::round_up and `chunk_elems` a multiple of
/// `world_size`, every chunk is one too and can be sharded; other arguments describe layouts of other systems.
/// sizes: at least one, each at least 1.
[[nodiscard]] ChunkLayout layout_uniform(std::span<const Elems> sizes, Elems chunk_elems, std::int64_t world_size,
                                         Oversize oversize = Oversize::round_up);
[[nodiscard]] ChunkLayout layout_uniform(const ParameterList& parameters, Elems chunk_elems, std::int64_t world_size,
                                         Oversize oversize = Oversize::round_up);

/// Chunks that begin at the given parameters, each as large as its content rounded up to a multiple of `world_size`.
/// chunk_starts: strictly ascending, the first is 0.
[[nodiscard]] ChunkLayout layout_variable(std::span<const Elems> sizes, std::span<const std::size_t> chunk_starts,
                                          std::int64_t world_size);
[[nodiscard]] ChunkLayout layout_variable(const ParameterList& parameters, std::span<const std::size_t> chunk_starts,
                                          std::int64_t world_size);

/// What rank `rank` of `world_size` owns of a chunk of C elements, C a multiple of N = world_size:
/// [rank * C/N, (rank + 1) * C/N).
[[nodiscard]] ElemRange shard_range(Elems chunk_elems, std::int64_t rank, std::int64_t world_size);

/// The sizes alone, in order.
[[nodiscard]] std::vector<Elems> sizes_of(const ParameterList& parameters);

}  // namespace shard
