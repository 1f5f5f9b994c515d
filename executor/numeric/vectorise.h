// How loops get vector code whose bits depend on nothing but their input: clones per instruction set, plain IEEE steps.
#pragma once

// Elementwise loops are written as plain scalar code and vectorised by the compiler. Every operation in them is an IEEE
// or integer operation (no contraction, no reassociation, no library call), so vector body, tail and any instruction
// set agree to the bit.
//
// SHARD_CLONES compiles a function three times; the loader picks one. Not under sanitizers (their runtime is not up
// when the loader asks) nor with clang 14 (no such attribute for C++). A build may bring its own: tests compile for one
// instruction set after the other and compare bits.
#if defined(SHARD_CLONES)
#elif defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define SHARD_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define SHARD_CLONES
#endif
// SHARD_BOTH: what a device's kernels call too.
#if defined(__CUDACC__)
#define SHARD_BOTH __host__ __device__
#else
#define SHARD_BOTH
#endif
#define SHARD_INLINE SHARD_BOTH inline __attribute__((always_inline))
#define SHARD_LAMBDA __attribute__((always_inline))

// SHARD_INDEPENDENT: the iterations of the loop that follows touch different elements. SHARD_ROLLED: the loop over
// lanes that follows must reach the vectoriser as a loop (GCC 12 otherwise unrolls it into scalars).
#if defined(__clang__)
#define SHARD_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#define SHARD_ROLLED
#else
#define SHARD_INDEPENDENT _Pragma("GCC ivdep")
#define SHARD_ROLLED _Pragma("GCC unroll 1")
#endif
