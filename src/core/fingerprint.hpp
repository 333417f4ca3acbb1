#pragma once
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

namespace rieszflow {

/// 64-bit FNV-1a hash of the bits of an array, as 16 hexadecimal digits: two states have the same fingerprint
/// when they are bitwise equal. Source: Fowler, Noll, Vo, IETF draft-eastlake-fnv.
inline std::string fingerprint(std::span<const double> values) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const double value : values) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    for (int byte = 0; byte < 8; ++byte) hash = (hash ^ ((bits >> (8 * byte)) & 0xff)) * 1099511628211ULL;
  }
  static constexpr char digits[] = "0123456789abcdef";
  std::string text(16, '0');
  for (int digit = 0; digit < 16; ++digit)
    text[static_cast<std::size_t>(digit)] = digits[(hash >> (60 - 4 * digit)) & 0xf];
  return text;
}

}  // namespace rieszflow
