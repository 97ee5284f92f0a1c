#include "sim/workload/mesh.h"

#include <algorithm>

#include "sim/base/check.h"

namespace ulysim::workload {

namespace {

constexpr AxisSet kCuts{MeshAxis::expert, MeshAxis::expert_data, MeshAxis::shard, MeshAxis::replicate,
                        MeshAxis::expert_shard};
/// Innermost first; the others are two of them each.
constexpr std::array kFinestCuts{MeshAxis::expert, MeshAxis::expert_shard, MeshAxis::replicate};

}  // namespace

std::int64_t Mesh::size(MeshAxis axis) const {
  switch (axis) {
    case MeshAxis::expert:
      return expert;
    case MeshAxis::expert_data:
      return size(kSampleAxes) / expert;
    case MeshAxis::shard:
      return size(kSampleAxes) / replicate;
    case MeshAxis::replicate:
      return replicate;
    case MeshAxis::expert_shard:
      return size(kSampleAxes) / replicate / expert;
    case MeshAxis::tensor:
    case MeshAxis::ulysses:
    case MeshAxis::ring:
    case MeshAxis::data:
    case MeshAxis::pipeline:
      return sizes.at(static_cast<std::size_t>(axis));
  }
  return 1;
}

std::int64_t Mesh::stride_of(MeshAxis cut) const {
  switch (cut) {
    case MeshAxis::expert_data:
    case MeshAxis::expert_shard:
      return expert;
    case MeshAxis::replicate:
      return size(MeshAxis::shard);
    default:
      return 1;
  }
}

void Mesh::set_size(MeshAxis axis, std::int64_t size) {
  switch (axis) {
    case MeshAxis::expert:
      expert = size;
      return;
    case MeshAxis::replicate:
      replicate = size;
      return;
    default:
      ULYSIM_CHECK(!kCuts.contains(axis), "the size of {} follows from the others", name(axis));
      sizes.at(static_cast<std::size_t>(axis)) = size;
  }
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

std::int64_t Mesh::position(RankId rank) const {
  std::int64_t position = 0;
  std::int64_t stride = 1;
  for (const MeshAxis inner : placement) {
    if (kSampleAxes.contains(inner)) {
      position += coordinate(rank, inner) * stride;
      stride *= size(inner);
    }
  }
  return position;
}

std::int64_t Mesh::coordinate(RankId rank, MeshAxis axis) const {
  if (kCuts.contains(axis)) {
    return position(rank) / stride_of(axis) % size(axis);
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
  std::int64_t first = position(rank);
  std::vector<std::int64_t> steps{0};
  bool cuts = false;
  for (const MeshAxis axis : kFinestCuts) {
    if (axes.contains(axis)) {
      cuts = true;
      axes.erase(axis);
      first -= coordinate(rank, axis) * stride_of(axis);
      std::vector<std::int64_t> wider;
      for (std::int64_t i = 0; i < size(axis); ++i) {
        for (const std::int64_t step : steps) {
          wider.push_back(step + i * stride_of(axis));
        }
      }
      steps = std::move(wider);
    }
  }
  if (cuts) {
    ULYSIM_CHECK(axes.empty(), "no group over {} and a cut through samples", to_string(axes));
    // All ranks that hold samples stand in the order of their position: of those, the ones with other coordinates.
    const std::vector<RankId> all = group(rank, kSampleAxes);
    std::vector<RankId> members;
    members.reserve(steps.size());
    for (const std::int64_t step : steps) {
      members.push_back(all[static_cast<std::size_t>(first + step)]);
    }
    return members;
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
  const auto refine = [&axes](MeshAxis coarse, AxisSet parts) {
    if (axes.contains(coarse)) {
      axes.erase(coarse);
      axes = axes | parts;
    }
  };
  refine(MeshAxis::shard, {MeshAxis::expert, MeshAxis::expert_shard});
  refine(MeshAxis::expert_data, {MeshAxis::expert_shard, MeshAxis::replicate});
  axes = without_trivial(axes);
  std::int64_t cut = 1;
  for (const MeshAxis axis : kFinestCuts) {
    cut *= axes.contains(axis) ? size(axis) : 1;
  }
  if (cut > 1 && cut == size(kSampleAxes)) {
    for (const MeshAxis axis : kFinestCuts) {
      axes.erase(axis);
    }
    axes = axes | without_trivial(kSampleAxes);
  }
  return axes;
}

}  // namespace ulysim::workload
