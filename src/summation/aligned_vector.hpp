#pragma once
#include <cstddef>
#include <new>
#include <vector>

namespace rieszflow {

/// Allocates at multiples of a cache line, so that no vector register's worth of a column straddles two.
template <class T>
struct CacheLineAllocator {
  using value_type = T;
  static constexpr std::align_val_t alignment{64};

  CacheLineAllocator() = default;
  template <class U>
  CacheLineAllocator(const CacheLineAllocator<U>&) {}
  T* allocate(std::size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), alignment)); }
  void deallocate(T* at, std::size_t) { ::operator delete(at, alignment); }
  bool operator==(const CacheLineAllocator&) const = default;
};

template <class T>
using AlignedVector = std::vector<T, CacheLineAllocator<T>>;

}  // namespace rieszflow
