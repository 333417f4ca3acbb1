#pragma once
// Vectors as wide as the processor that this file is compiled for, of doubles or, with RIESZFLOW_SINGLE, of
// floats. Included only by sources that are compiled once for each processor level; everything has internal
// linkage, so that code made for one level is never linked into another.
#include <cstdint>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace {

#if defined(RIESZFLOW_SINGLE)
using Real = float;
using Whole = std::int32_t;
#else
using Real = double;
using Whole = std::int64_t;
#endif

#if defined(__AVX512F__) && defined(__AVX512DQ__)
#define RIESZFLOW_AVX512 1
constexpr int vector_bytes = 64;
#else
#define RIESZFLOW_AVX512 0
#if defined(__AVX2__)
constexpr int vector_bytes = 32;
#else
constexpr int vector_bytes = 16;
#endif
#endif
constexpr int lanes = vector_bytes / static_cast<int>(sizeof(Real));

/// The instruction for packed doubles or packed floats.
#if defined(RIESZFLOW_SINGLE)
#define RIESZFLOW_PACKED(name) name##_ps
constexpr std::uint32_t all_lanes = 0xffff;
#else
#define RIESZFLOW_PACKED(name) name##_pd
constexpr std::uint32_t all_lanes = 0xff;
#endif

using Vec = Real __attribute__((vector_size(vector_bytes)));
using Int = Whole __attribute__((vector_size(vector_bytes)));
/// A Vec at the address of any number; may alias numbers.
// A typedef: clang drops the alignment of an alias declaration.
typedef Real UnalignedVec __attribute__((vector_size(vector_bytes), aligned(sizeof(Real)), may_alias));

#define RIESZFLOW_INLINE [[gnu::always_inline]] inline

RIESZFLOW_INLINE Vec load(const Real* from) { return *reinterpret_cast<const UnalignedVec*>(from); }
RIESZFLOW_INLINE void store(Real* to, Vec v) { *reinterpret_cast<UnalignedVec*>(to) = v; }
RIESZFLOW_INLINE Vec broadcast(Real x) { return x - Vec{}; }
RIESZFLOW_INLINE Int bits(Vec v) { return reinterpret_cast<Int>(v); }
RIESZFLOW_INLINE Vec from_bits(Int i) { return reinterpret_cast<Vec>(i); }

}  // namespace
