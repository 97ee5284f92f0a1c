#include "sim/workload/mesh.h"

#include <algorithm>

#include "sim/base/check.h"

namespace ulysim::workload {

std::int64_t Mesh::size(AxisSet axes) const {
  std::int64_t product = 1;
  for (const MeshAxis axis : kAxes) {
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
  for (const MeshAxis axis : kAxes) {
    if (size(axis) == 1) {
      axes.erase(axis);
    }
  }
  return axes;
}

}  // namespace ulysim::workload
