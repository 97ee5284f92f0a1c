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
/// Those after `pipeline` are no axes of the grid but other cuts through it: of the coordinates that hold samples,
/// data × sequence, counted through in the order of placement. `expert` within × `expert_data` without are how experts
/// lie; `shard` within × `replicate` without how hybrid sharding cuts the states; `expert_shard` is what both leave of
/// `expert_data` within a shard group: expert × expert_shard = shard, expert_shard × replicate = expert_data.
enum class MeshAxis : std::uint8_t {
  tensor,
  ulysses,
  ring,
  data,
  pipeline,
  expert,
  expert_data,
  shard,
  replicate,
  expert_shard
};
inline constexpr std::size_t kAxisCount = 5;
/// Those of the grid.
inline constexpr std::array<MeshAxis, kAxisCount> kAxes{MeshAxis::tensor, MeshAxis::ulysses, MeshAxis::ring,
                                                        MeshAxis::data, MeshAxis::pipeline};
/// And those that cut the samples' coordinates another way.
inline constexpr std::array<MeshAxis, kAxisCount + 5> kAllAxes{
    MeshAxis::tensor, MeshAxis::ulysses,     MeshAxis::ring,  MeshAxis::data,      MeshAxis::pipeline,
    MeshAxis::expert, MeshAxis::expert_data, MeshAxis::shard, MeshAxis::replicate, MeshAxis::expert_shard};
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
  constexpr void insert(MeshAxis axis) { bits_ = static_cast<std::uint16_t>(bits_ | bit(axis)); }
  constexpr void erase(MeshAxis axis) { bits_ = static_cast<std::uint16_t>(bits_ & ~bit(axis)); }
  [[nodiscard]] constexpr bool contains(MeshAxis axis) const { return (bits_ & bit(axis)) != 0; }
  [[nodiscard]] constexpr bool empty() const { return bits_ == 0; }
  [[nodiscard]] constexpr std::uint16_t bits() const { return bits_; }
  friend constexpr bool operator==(AxisSet a, AxisSet b) { return a.bits_ == b.bits_; }
  friend constexpr AxisSet operator|(AxisSet a, AxisSet b) {
    a.bits_ = static_cast<std::uint16_t>(a.bits_ | b.bits_);
    return a;
  }

 private:
  static constexpr unsigned bit(MeshAxis axis) { return 1U << static_cast<unsigned>(axis); }
  std::uint16_t bits_{};
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
  std::int64_t replicate{1};                          ///< the same; copies of the sharded states

  [[nodiscard]] std::int64_t size(MeshAxis axis) const;
  /// Of an axis of the grid, or of `expert` or `replicate`; the others are what is left.
  void set_size(MeshAxis axis, std::int64_t size);
  /// Ranks in a group over `axes`, no two of which cut the same coordinates.
  [[nodiscard]] std::int64_t size(AxisSet axes) const;
  [[nodiscard]] std::int64_t world() const;
  [[nodiscard]] std::int64_t coordinate(RankId rank, MeshAxis axis) const;
  /// The group of `rank` over `axes`, innermost axis varying fastest; position in it = position of the coordinate.
  /// Either axes of the grid, or cuts through the samples.
  [[nodiscard]] std::vector<RankId> group(RankId rank, AxisSet axes) const;
  /// `axes` without those of size 1: what communication really happens over.
  [[nodiscard]] AxisSet without_trivial(AxisSet axes) const;
  /// The same ranks told one way: by axes of the grid where that can be, else by the finest cuts, `expert`,
  /// `expert_shard`, `replicate`. Sets that are equal here name the same groups.
  [[nodiscard]] AxisSet on_grid(AxisSet axes) const;

 private:
  /// Of a rank among those that hold samples, counted through in the order of placement.
  [[nodiscard]] std::int64_t position(RankId rank) const;
  /// How many positions lie between two ranks of a group over a cut.
  [[nodiscard]] std::int64_t stride_of(MeshAxis cut) const;
};

}  // namespace ulysim::workload
