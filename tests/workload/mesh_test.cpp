// A mesh by pencil: 2 tensor × 3 ulysses × 2 data = 12 ranks.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/workload/mesh.h"

namespace ulysim::workload {
namespace {

using testing::ElementsAre;

Mesh twelve() {
  Mesh mesh;
  mesh.set_size(MeshAxis::tensor, 2);
  mesh.set_size(MeshAxis::ulysses, 3);
  mesh.set_size(MeshAxis::data, 2);
  return mesh;
}

std::vector<std::size_t> numbers(const std::vector<RankId>& ranks) {
  std::vector<std::size_t> out;
  for (const RankId rank : ranks) {
    out.push_back(rank.index());
  }
  return out;
}

TEST(Mesh, innermost_axis_varies_fastest) {
  const Mesh mesh = twelve();
  EXPECT_EQ(mesh.world(), 12);
  // 9 = 1 + 2·(1 + 3·1)
  EXPECT_EQ(mesh.coordinate(RankId(9), MeshAxis::tensor), 1);
  EXPECT_EQ(mesh.coordinate(RankId(9), MeshAxis::ulysses), 1);
  EXPECT_EQ(mesh.coordinate(RankId(9), MeshAxis::data), 1);
  EXPECT_THAT(numbers(mesh.group(RankId(9), {MeshAxis::tensor})), ElementsAre(8, 9));
  EXPECT_THAT(numbers(mesh.group(RankId(9), {MeshAxis::ulysses})), ElementsAre(7, 9, 11));
  EXPECT_THAT(numbers(mesh.group(RankId(9), {MeshAxis::data})), ElementsAre(3, 9));
}

TEST(Mesh, placement_moves_an_axis_inside) {
  Mesh mesh = twelve();
  mesh.placement = {MeshAxis::ulysses, MeshAxis::tensor, MeshAxis::ring, MeshAxis::data, MeshAxis::pipeline};
  EXPECT_THAT(numbers(mesh.group(RankId(9), {MeshAxis::ulysses})), ElementsAre(9, 10, 11));
  EXPECT_THAT(numbers(mesh.group(RankId(9), {MeshAxis::tensor})), ElementsAre(6, 9));
}

TEST(Mesh, a_group_over_two_axes_has_their_product) {
  const Mesh mesh = twelve();
  EXPECT_THAT(numbers(mesh.group(RankId(0), {MeshAxis::tensor, MeshAxis::data})), ElementsAre(0, 1, 6, 7));
  EXPECT_EQ(mesh.size(AxisSet{MeshAxis::tensor, MeshAxis::ulysses}), 6);
}

TEST(Mesh, every_member_sees_the_same_group_and_its_own_place) {
  const Mesh mesh = twelve();
  const AxisSet axes{MeshAxis::ulysses, MeshAxis::data};
  for (std::size_t rank = 0; rank < 12; ++rank) {
    const auto group = mesh.group(RankId(rank), axes);
    for (const RankId member : group) {
      EXPECT_EQ(mesh.group(member, axes), group);
    }
    const auto place =
        mesh.coordinate(RankId(rank), MeshAxis::ulysses) + 3 * mesh.coordinate(RankId(rank), MeshAxis::data);
    EXPECT_EQ(group[static_cast<std::size_t>(place)], RankId(rank));
  }
}

TEST(Mesh, axes_of_one_are_no_communication) {
  const Mesh mesh = twelve();
  EXPECT_EQ(to_string(mesh.without_trivial({MeshAxis::ring, MeshAxis::ulysses})), "{ulysses}");
  EXPECT_TRUE(mesh.without_trivial({MeshAxis::ring}).empty());
}

TEST(Mesh, experts_cut_the_ranks_with_samples_another_way) {
  // 2 tensor × 3 ulysses × 2 data: six ranks of samples beside each tensor coordinate. In the order of placement rank 9
  // (tensor 1, ulysses 1, data 1) is the fifth of 1, 3, 5, 7, 9, 11.
  Mesh mesh = twelve();
  mesh.set_size(MeshAxis::expert, 2);
  EXPECT_EQ(mesh.world(), 12) << "experts take no ranks of their own";
  EXPECT_EQ(mesh.size(MeshAxis::expert_data), 3);
  EXPECT_EQ(mesh.coordinate(RankId(9), MeshAxis::expert), 0);
  EXPECT_EQ(mesh.coordinate(RankId(9), MeshAxis::expert_data), 2);
  EXPECT_THAT(numbers(mesh.group(RankId(9), {MeshAxis::expert})), ElementsAre(9, 11));
  EXPECT_THAT(numbers(mesh.group(RankId(9), {MeshAxis::expert_data})), ElementsAre(1, 5, 9));
  EXPECT_EQ(numbers(mesh.group(RankId(9), kExpertAxes)), numbers(mesh.group(RankId(9), kSampleAxes)));
  mesh.placement = {MeshAxis::data, MeshAxis::ulysses, MeshAxis::ring, MeshAxis::tensor};
  EXPECT_THAT(numbers(mesh.group(RankId(9), {MeshAxis::expert})), ElementsAre(8, 9)) << "innermost first";
}

TEST(Mesh, a_cut_by_both_expert_axes_is_one_by_the_axes_of_samples) {
  Mesh mesh = twelve();
  mesh.set_size(MeshAxis::expert, 2);
  EXPECT_EQ(mesh.on_grid(kExpertAxes), (AxisSet{MeshAxis::ulysses, MeshAxis::data}));
  EXPECT_EQ(mesh.on_grid({MeshAxis::expert_data, MeshAxis::tensor}),
            (AxisSet{MeshAxis::expert_shard, MeshAxis::tensor}))
      << "without replicas the same cut as expert_data";
  mesh.set_size(MeshAxis::expert, 6);
  EXPECT_EQ(mesh.on_grid({MeshAxis::expert}), (AxisSet{MeshAxis::ulysses, MeshAxis::data})) << "nothing is left beside";
}

TEST(Mesh, shard_groups_stand_together_and_replicas_apart) {
  // 8 ranks of samples, ulysses 4 within data 2; two replicas of 4, experts over 2.
  Mesh mesh;
  mesh.set_size(MeshAxis::ulysses, 4);
  mesh.set_size(MeshAxis::data, 2);
  mesh.set_size(MeshAxis::replicate, 2);
  mesh.set_size(MeshAxis::expert, 2);
  EXPECT_THAT(numbers(mesh.group(RankId(6), {MeshAxis::shard})), ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(numbers(mesh.group(RankId(6), {MeshAxis::replicate})), ElementsAre(2, 6));
  EXPECT_THAT(numbers(mesh.group(RankId(6), {MeshAxis::expert_shard})), ElementsAre(4, 6));
  EXPECT_THAT(numbers(mesh.group(RankId(6), {MeshAxis::expert_data})), ElementsAre(0, 2, 4, 6));
  EXPECT_EQ(mesh.coordinate(RankId(6), MeshAxis::replicate), 1);
  EXPECT_EQ(mesh.size(MeshAxis::expert_shard), 2);
  EXPECT_EQ(mesh.on_grid({MeshAxis::shard, MeshAxis::replicate}), (AxisSet{MeshAxis::ulysses, MeshAxis::data}));
  EXPECT_EQ(mesh.on_grid({MeshAxis::expert_data}), mesh.on_grid({MeshAxis::expert_shard, MeshAxis::replicate}));
  // Positions follow the placement: with data innermost a shard group holds both of its coordinates.
  mesh.placement = {MeshAxis::data, MeshAxis::ulysses, MeshAxis::ring, MeshAxis::tensor, MeshAxis::pipeline};
  EXPECT_THAT(numbers(mesh.group(RankId(6), {MeshAxis::shard})), ElementsAre(4, 5, 6, 7));
}

}  // namespace
}  // namespace ulysim::workload
