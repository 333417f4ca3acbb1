#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace rieszflow {

/// 64-bit FNV-1a hash of bytes. Source: Fowler, Noll, Vo, IETF draft-eastlake-fnv.
inline std::uint64_t hash_of_bytes(std::string_view bytes) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 1099511628211ULL;
  return hash;
}

/// The hash as 16 hexadecimal digits: bytes that differ have, but for chance, different fingerprints.
inline std::string fingerprint(std::string_view bytes) {
  static constexpr char digits[] = "0123456789abcdef";
  const std::uint64_t hash = hash_of_bytes(bytes);
  std::string text(16, '0');
  for (int digit = 0; digit < 16; ++digit)
    text[static_cast<std::size_t>(digit)] = digits[(hash >> (60 - 4 * digit)) & 0xf];
  return text;
}

/// Of the bits of an array: two states have the same fingerprint when they are bitwise equal.
inline std::string fingerprint(std::span<const double> values) {
  return fingerprint(std::string_view(reinterpret_cast<const char*>(values.data()), values.size_bytes()));
}

}  // namespace rieszflow
