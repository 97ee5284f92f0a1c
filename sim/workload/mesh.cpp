#include "sim/workload/mesh.h"

#include <algorithm>

#include "sim/base/check.h"

namespace ulysim::workload {

std::int64_t Mesh::size(MeshAxis axis) const {
  switch (axis) {
    case MeshAxis::expert:
      return expert;
    case MeshAxis::expert_data:
      return size(kSampleAxes) / expert;
    case MeshAxis::tensor:
    case MeshAxis::ulysses:
    case MeshAxis::ring:
    case MeshAxis::data:
    case MeshAxis::pipeline:
      return sizes.at(static_cast<std::size_t>(axis));
  }
  return 1;
}

void Mesh::set_size(MeshAxis axis, std::int64_t size) {
  ULYSIM_CHECK(axis != MeshAxis::expert_data, "the size of expert_data follows from the others");
  (axis == MeshAxis::expert ? expert : sizes.at(static_cast<std::size_t>(axis))) = size;
}

std::int64_t Mesh::size(AxisSet axes) const {
  std::int64_t product = 1;
  for (const MeshAxis axis : kAllAxes) {
    product *= axes.contains(axis) ? size(axis) : 1;
  }
  return product;
}

std::int64_t Mesh::world() const {
  std::int64_t product = 1;
  for (const std::int64_t size : sizes) {
    product *= size;
  }
  return product;
}

std::int64_t Mesh::coordinate(RankId rank, MeshAxis axis) const {
  if (axis == MeshAxis::expert || axis == MeshAxis::expert_data) {
    std::int64_t position = 0;
    std::int64_t stride = 1;
    for (const MeshAxis inner : placement) {
      if (kSampleAxes.contains(inner)) {
        position += coordinate(rank, inner) * stride;
        stride *= size(inner);
      }
    }
    return axis == MeshAxis::expert ? position % expert : position / expert;
  }
  auto rest = static_cast<std::int64_t>(rank.index());
  for (const MeshAxis inner : placement) {
    if (inner == axis) {
      return rest % size(inner);
    }
    rest /= size(inner);
  }
  ULYSIM_CHECK(false, "axis {} has no place in the mesh", name(axis));
  return 0;
}

std::vector<RankId> Mesh::group(RankId rank, AxisSet axes) const {
  axes = on_grid(axes);
  for (const MeshAxis axis : {MeshAxis::expert, MeshAxis::expert_data}) {
    if (axes.contains(axis)) {
      ULYSIM_CHECK(axes == AxisSet{axis}, "no group over {}", to_string(axes));
      // All ranks that hold samples stand in the order of their position: of those, the ones with the other coordinate.
      const bool within = axis == MeshAxis::expert;
      const std::int64_t first =
          within ? coordinate(rank, MeshAxis::expert_data) * expert : coordinate(rank, MeshAxis::expert);
      const std::int64_t stride = within ? 1 : expert;
      const std::vector<RankId> all = group(rank, kSampleAxes);
      std::vector<RankId> members;
      for (std::int64_t i = 0; i < size(axis); ++i) {
        members.push_back(all[static_cast<std::size_t>(first + i * stride)]);
      }
      return members;
    }
  }
  std::vector<RankId> members{rank};
  std::int64_t stride = 1;
  for (const MeshAxis axis : placement) {
    const std::int64_t count = size(axis);
    if (axes.contains(axis) && count > 1) {
      const std::int64_t own = coordinate(rank, axis);
      std::vector<RankId> wider;
      wider.reserve(members.size() * static_cast<std::size_t>(count));
      for (std::int64_t c = 0; c < count; ++c) {
        for (const RankId member : members) {
          wider.emplace_back(static_cast<std::size_t>(static_cast<std::int64_t>(member.index()) + (c - own) * stride));
        }
      }
      members = std::move(wider);
    }
    stride *= count;
  }
  return members;
}

AxisSet Mesh::without_trivial(AxisSet axes) const {
  for (const MeshAxis axis : kAllAxes) {
    if (size(axis) == 1) {
      axes.erase(axis);
    }
  }
  return axes;
}

AxisSet Mesh::on_grid(AxisSet axes) const {
  axes = without_trivial(axes);
  const AxisSet cut = without_trivial(kExpertAxes);
  for (const MeshAxis axis : kAllAxes) {
    if (cut.contains(axis) && !axes.contains(axis)) {
      return axes;
    }
  }
  if (!cut.empty()) {
    axes.erase(MeshAxis::expert);
    axes.erase(MeshAxis::expert_data);
    axes = axes | without_trivial(kSampleAxes);
  }
  return axes;
}

}  // namespace ulysim::workload
