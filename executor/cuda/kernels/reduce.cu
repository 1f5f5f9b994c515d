// Sums over the members of a group that share the device, along the one tree; and the mark of how far a stream has got.
#include <cassert>
#include <type_traits>

#include "executor/cuda/kernels/device.h"
#include "executor/cuda/kernels/kernels.h"

namespace shard::cuda {
namespace {

constexpr int kLevels = 7;  // of a tree over kMostMembers leaves, these included
static_assert(kMostMembers == 1 << (kLevels - 1));

// What a node holds: a 16-bit float as the fp32 of the same value.
template <class T>
SHARD_DEVICE float node_of(T leaf) {
  return to_f32(leaf);
}
SHARD_DEVICE std::uint64_t node_of(std::uint64_t leaf) {
  return leaf;
}
template <class T>
SHARD_DEVICE float node_sum(float a, float b) {
  return rounded<T>(a + b);
}
template <class T>
SHARD_DEVICE std::uint64_t node_sum(std::uint64_t a, std::uint64_t b) {
  return a + b;
}
template <class T>
SHARD_DEVICE T stored(float root) {
  return from_f32<T>(root);
}
template <class T>
SHARD_DEVICE T stored(std::uint64_t root) {
  return root;
}

/// kMembers: of so many, whose partial sums stay in registers; 0: of any number.
template <class T, int kMembers>
SHARD_KERNEL tree_sum_kernel(std::int32_t any_members, MemberPointers in, std::int64_t n, T* out) {
  using Node = decltype(node_of(T{}));
  const int members = kMembers > 0 ? kMembers : any_members;
  for (std::int64_t i = first_element(); i < n; i += element_stride()) {
    // A number in binary counts the leaves: where its bit l is set, nodes[l] is the sum over 2^l of them.
    Node nodes[kLevels];
    for (int m = 0; m < members; ++m) {
      Node sum = node_of(reinterpret_cast<const T*>(in.member[static_cast<std::size_t>(m)])[i]);
      int level = 0;
      for (; (m >> level & 1) != 0; ++level) sum = node_sum<T>(nodes[level], sum);
      nodes[level] = sum;
    }
    // The odd ones out were carried up: the smaller trees are the right ones.
    int level = 0;
    while ((members >> level & 1) == 0) ++level;
    Node sum = nodes[level];
    for (++level; level < kLevels; ++level)
      if ((members >> level & 1) != 0) sum = node_sum<T>(nodes[level], sum);
    out[i] = stored<T>(sum);
  }
}

template <class T>
void sum_members(Stream stream, std::int32_t members, const MemberPointers& in, std::int64_t n, std::byte* out) {
  const Launch sizes{.blocks_x = blocks_for(n), .threads = kThreads};
  auto* const to = reinterpret_cast<T*>(out);
  switch (members) {
    case 2: return launch(stream, sizes, tree_sum_kernel<T, 2>, members, in, n, to);
    case 4: return launch(stream, sizes, tree_sum_kernel<T, 4>, members, in, n, to);
    case 8: return launch(stream, sizes, tree_sum_kernel<T, 8>, members, in, n, to);
    default: return launch(stream, sizes, tree_sum_kernel<T, 0>, members, in, n, to);
  }
}

SHARD_KERNEL mark_kernel(std::int32_t* word, std::int32_t value) {
  *static_cast<volatile std::int32_t*>(word) = value;
}

}  // namespace

void tree_sum(Stream stream, std::int32_t members, const MemberPointers& in, std::int64_t n, Dtype dtype,
              std::byte* out) {
  assert(members >= 1 && members <= kMostMembers);
  if (n <= 0) return;
  switch (dtype) {
    case Dtype::f32: return sum_members<float>(stream, members, in, n, out);
    case Dtype::bf16: return sum_members<Bf16>(stream, members, in, n, out);
    case Dtype::f16: return sum_members<F16>(stream, members, in, n, out);
    case Dtype::i64: return sum_members<std::uint64_t>(stream, members, in, n, out);
    case Dtype::i32: break;
  }
  assert(false && "not a summable type");
}

void mark(Stream stream, std::int32_t* word, std::int32_t value) {
  launch(stream, {}, mark_kernel, word, value);
}

}  // namespace shard::cuda
