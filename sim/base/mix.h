#pragma once

#include <cstdint>

namespace ulysim {

/// Seeded randomness that is the same on every machine: splitmix64 (Steele, Lea, Flood 2014), all bits of the answer
/// depend on all bits of the question. mixed(seed ^ mixed(i)) for i = 0, 1 … is a stream.
[[nodiscard]] constexpr std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

}  // namespace ulysim
