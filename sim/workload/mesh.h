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
/// `expert` and `expert_data` are no axes of the grid but another cut through it: the coordinates that hold samples,
/// data × sequence, counted through in the order of placement, are `expert` within and `expert_data` without.
enum class MeshAxis : std::uint8_t { tensor, ulysses, ring, data, pipeline, expert, expert_data };
inline constexpr std::size_t kAxisCount = 5;
/// Those of the grid.
inline constexpr std::array<MeshAxis, kAxisCount> kAxes{MeshAxis::tensor, MeshAxis::ulysses, MeshAxis::ring,
                                                        MeshAxis::data, MeshAxis::pipeline};
/// And those that cut the samples' coordinates another way.
inline constexpr std::array<MeshAxis, kAxisCount + 2> kAllAxes{
    MeshAxis::tensor,   MeshAxis::ulysses, MeshAxis::ring,       MeshAxis::data,
    MeshAxis::pipeline, MeshAxis::expert,  MeshAxis::expert_data};
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

/// The axes over which tokens are split: each rank has samples or parts of samples of its own.
inline constexpr AxisSet kSampleAxes{MeshAxis::ulysses, MeshAxis::ring, MeshAxis::data};
/// The same ranks, as the experts cut them.
inline constexpr AxisSet kExpertAxes{MeshAxis::expert, MeshAxis::expert_data};

/// "{ulysses,ring}", in the order of kAllAxes.
[[nodiscard]] std::string to_string(AxisSet axes);

/// The ranks of a job as a grid. `placement` says which axis varies fastest over rank numbers, and so which
/// groups sit inside one node.
struct Mesh {
  std::array<std::int64_t, kAxisCount> sizes{1, 1, 1, 1, 1};
  std::array<MeshAxis, kAxisCount> placement{kAxes};  ///< innermost first
  std::int64_t expert{1};                             ///< divides the product of the sample axes

  [[nodiscard]] std::int64_t size(MeshAxis axis) const;
  /// Of an axis of the grid, or of `expert`; `expert_data` is what is left.
  void set_size(MeshAxis axis, std::int64_t size);
  /// Ranks in a group over `axes`, which do not mix the samples' two cuts.
  [[nodiscard]] std::int64_t size(AxisSet axes) const;
  [[nodiscard]] std::int64_t world() const;
  [[nodiscard]] std::int64_t coordinate(RankId rank, MeshAxis axis) const;
  /// The group of `rank` over `axes`, innermost axis varying fastest; position in it = position of the coordinate.
  /// Either axes of the grid, or `expert`, or `expert_data`.
  [[nodiscard]] std::vector<RankId> group(RankId rank, AxisSet axes) const;
  /// `axes` without those of size 1: what communication really happens over.
  [[nodiscard]] AxisSet without_trivial(AxisSet axes) const;
  /// The same cut told by axes of the grid where it can be: `expert` and `expert_data` together are the sample axes.
  [[nodiscard]] AxisSet on_grid(AxisSet axes) const;
};

}  // namespace ulysim::workload
