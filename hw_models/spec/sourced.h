#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace ulysim::spec {

enum class SourceKind : std::uint8_t { datasheet, published, measured, assumed };

/// A catalogue number with where it comes from. No number enters the simulator without one.
template <class T>
struct Sourced {
  T value{};
  std::string source{};
  SourceKind kind{SourceKind::assumed};
  std::optional<double> spread{};  ///< relative one-sigma uncertainty, where known
};

}  // namespace ulysim::spec
