// Builds chunk layouts.
#include "sim/chunk/layout.h"

#include <cassert>
#include <utility>

namespace shard {
namespace {

Chunk make_chunk(std::span<const Elems> sizes, std::size_t first, std::size_t last, Elems elems) {
  Chunk chunk{elems, Elems{0}, first, {}};
  chunk.parameters.reserve(last - first);
  for (std::size_t index = first; index < last; ++index) {
    chunk.parameters.push_back({index, chunk.used, sizes[index]});
    chunk.used += sizes[index];
  }
  assert(chunk.used <= chunk.elems);
  return chunk;
}

void append(ChunkLayout& layout, Chunk chunk) {
  layout.waste += chunk.elems - chunk.used;
  layout.chunks.push_back(std::move(chunk));
}

}  // namespace

ChunkLayout layout_uniform(std::span<const Elems> sizes, Elems chunk_elems, std::int64_t world_size,
                           Oversize oversize) {
  assert(chunk_elems.count() >= 1);
  std::vector<std::int64_t> counts;
  counts.reserve(sizes.size());
  for (const Elems size : sizes) counts.push_back(size.count());
  const NextFit fit(std::move(counts), world_size, oversize);
  ChunkLayout layout;
  fit.for_each_chunk(chunk_elems.count(), [&](std::size_t first, std::size_t last, std::int64_t elems) {
    append(layout, make_chunk(sizes, first, last, Elems{elems}));
  });
  return layout;
}

ChunkLayout layout_uniform(const ParameterList& parameters, Elems chunk_elems, std::int64_t world_size,
                           Oversize oversize) {
  return layout_uniform(sizes_of(parameters), chunk_elems, world_size, oversize);
}

ChunkLayout layout_variable(std::span<const Elems> sizes, std::span<const std::size_t> chunk_starts,
                            std::int64_t world_size) {
  assert(!chunk_starts.empty() && chunk_starts.front() == 0 && world_size >= 1);
  ChunkLayout layout;
  for (std::size_t index = 0; index < chunk_starts.size(); ++index) {
    const std::size_t first = chunk_starts[index];
    const std::size_t last = index + 1 < chunk_starts.size() ? chunk_starts[index + 1] : sizes.size();
    assert(first < last && last <= sizes.size());
    Elems used;
    for (const Elems size : sizes.subspan(first, last - first)) used += size;
    append(layout, make_chunk(sizes, first, last, round_up(used, world_size)));
  }
  return layout;
}

ChunkLayout layout_variable(const ParameterList& parameters, std::span<const std::size_t> chunk_starts,
                            std::int64_t world_size) {
  return layout_variable(sizes_of(parameters), chunk_starts, world_size);
}

ElemRange shard_range(Elems chunk_elems, std::int64_t rank, std::int64_t world_size) {
  assert(world_size >= 1 && rank >= 0 && rank < world_size && chunk_elems.count() % world_size == 0);
  const std::int64_t shard = chunk_elems.count() / world_size;
  return {Elems{rank * shard}, Elems{(rank + 1) * shard}};
}

std::vector<Elems> sizes_of(const ParameterList& parameters) {
  std::vector<Elems> sizes;
  sizes.reserve(parameters.size());
  for (const Parameter& parameter : parameters) sizes.push_back(parameter.elems);
  return sizes;
}

}  // namespace shard
