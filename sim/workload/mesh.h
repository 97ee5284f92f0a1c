#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "sim/base/ids.h"

namespace ulysim::workload {

/// The ways in which ranks share work. A process group is a set of axes: ranks that differ only there.
/// Ranks that differ in the pipeline axis run other layers: no group goes over it, messages do.
enum class MeshAxis : std::uint8_t { tensor, ulysses, ring, data, pipeline };
inline constexpr std::size_t kAxisCount = 5;
inline constexpr std::array<MeshAxis, kAxisCount> kAxes{MeshAxis::tensor, MeshAxis::ulysses, MeshAxis::ring,
                                                        MeshAxis::data, MeshAxis::pipeline};
[[nodiscard]] const char* name(MeshAxis axis);

/// A set of axes, by value.
class AxisSet {
 public:
  constexpr AxisSet() = default;
  constexpr AxisSet(std::initializer_list<MeshAxis> axes) {
    for (const MeshAxis axis : axes) {
      insert(axis);
    }
  }
  constexpr void insert(MeshAxis axis) { bits_ = static_cast<std::uint8_t>(bits_ | bit(axis)); }
  constexpr void erase(MeshAxis axis) { bits_ = static_cast<std::uint8_t>(bits_ & ~bit(axis)); }
  [[nodiscard]] constexpr bool contains(MeshAxis axis) const { return (bits_ & bit(axis)) != 0; }
  [[nodiscard]] constexpr bool empty() const { return bits_ == 0; }
  [[nodiscard]] constexpr std::uint8_t bits() const { return bits_; }
  friend constexpr bool operator==(AxisSet a, AxisSet b) { return a.bits_ == b.bits_; }
  friend constexpr AxisSet operator|(AxisSet a, AxisSet b) {
    a.bits_ = static_cast<std::uint8_t>(a.bits_ | b.bits_);
    return a;
  }

 private:
  static constexpr unsigned bit(MeshAxis axis) { return 1U << static_cast<unsigned>(axis); }
  std::uint8_t bits_{};
};

/// "{ulysses,ring}", in the order of kAxes.
[[nodiscard]] std::string to_string(AxisSet axes);

/// The ranks of a job as a grid. `placement` says which axis varies fastest over rank numbers, and so which
/// groups sit inside one node.
struct Mesh {
  std::array<std::int64_t, kAxisCount> sizes{1, 1, 1, 1, 1};
  std::array<MeshAxis, kAxisCount> placement{kAxes};  ///< innermost first

  [[nodiscard]] std::int64_t size(MeshAxis axis) const { return sizes[static_cast<std::size_t>(axis)]; }
  void set_size(MeshAxis axis, std::int64_t size) { sizes[static_cast<std::size_t>(axis)] = size; }
  /// Ranks in a group over `axes`.
  [[nodiscard]] std::int64_t size(AxisSet axes) const;
  [[nodiscard]] std::int64_t world() const;
  [[nodiscard]] std::int64_t coordinate(RankId rank, MeshAxis axis) const;
  /// The group of `rank` over `axes`, innermost axis varying fastest; position in it = position of the coordinate.
  [[nodiscard]] std::vector<RankId> group(RankId rank, AxisSet axes) const;
  /// `axes` without those of size 1: what communication really happens over.
  [[nodiscard]] AxisSet without_trivial(AxisSet axes) const;
};

}  // namespace ulysim::workload
