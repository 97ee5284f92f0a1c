// Which question this answers: which ranks and links does the partition put together, and which may it not?

#include "sim/engine/fold.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/small_machine.h"

namespace ulysim::engine {
namespace {

using testing::ElementsAre;
using workload::CollectiveKind;
using workload::Stream;

Folding folded(const workload::OpGraph& graph, const spec::Cluster& cluster, FoldMode mode = FoldMode::folded) {
  return fold(graph, topology::build(cluster), mode);
}

TEST(Fold, UlyssesOfOneNodeIsOneClass) {
  GraphMaker maker;
  maker.graph.mesh.set_size(MeshAxis::ulysses, 8);
  maker.collective("all_to_all", CollectiveKind::all_to_all, {MeshAxis::ulysses}, 800, Stream::ulysses_comm);
  const Folding folding = folded(maker.graph, small_cluster(1, 8));
  ASSERT_EQ(folding.ranks.size(), 1U);
  EXPECT_EQ(folding.ranks[0].members.size(), 8U);
  ASSERT_EQ(folding.patterns[0].transactions.size(), 1U);
  const Transaction& transaction = folding.patterns[0].transactions[0];
  EXPECT_THAT(transaction.participants, ElementsAre(0U));
  ASSERT_EQ(transaction.steps[0].flows.size(), 1U) << "56 transfers, all alike";
  for (const network::Crossing& crossing : transaction.steps[0].flows[0].crossings) {
    EXPECT_EQ(crossing.flows, 7U) << "each GPU sends to seven others and receives from seven";
  }
}

TEST(Fold, ZeroOverTwoRailNodesIsOneClass) {
  GraphMaker maker;
  maker.graph.mesh.set_size(MeshAxis::data, 16);
  maker.collective("gather", CollectiveKind::all_gather, {MeshAxis::data}, 1600, Stream::zero_gather);
  EXPECT_EQ(folded(maker.graph, small_cluster(2, 8)).ranks.size(), 1U);
}

TEST(Fold, ContiguousCausalRingKeepsEveryCoordinateApart) {
  GraphMaker maker;
  maker.graph.mesh.set_size(MeshAxis::ring, 4);
  maker.graph.mesh.set_size(MeshAxis::data, 2);
  const TensorId q = maker.sequence(workload::Dim::heads, 64, workload::Layout::contiguous);
  const TensorId k = maker.sequence(workload::Dim::kv_heads, 64, workload::Layout::contiguous);
  maker.attention("own", q, k, 0);
  maker.collective("pass", CollectiveKind::send_recv, {MeshAxis::ring}, 100, Stream::ring_comm);
  EXPECT_EQ(folded(maker.graph, small_cluster(1, 8)).ranks.size(), 1U) << "own blocks are alike";
  maker.attention("before", q, k, 1);
  const Folding folding = folded(maker.graph, small_cluster(1, 8));
  EXPECT_EQ(folding.ranks.size(), 4U) << "the first rank has nobody before it; two replicas still fold";
  EXPECT_EQ(folding.patterns[0].transactions.size(), 4U) << "one per pair of neighbours";
}

TEST(Fold, AGpuWithAnUplinkOfItsOwnIsApart) {
  GraphMaker maker;
  maker.graph.mesh.set_size(MeshAxis::data, 3);
  maker.copy("out", 1000, Stream::device_to_host);
  // GPUs 0 and 1 share an uplink, GPU 2 has the other one.
  EXPECT_THAT(folded(maker.graph, small_cluster(1, 3)).class_of_rank, ElementsAre(0U, 0U, 1U));
}

TEST(Fold, WhatIsNotUsedDoesNotRefine) {
  GraphMaker maker;
  maker.graph.mesh.set_size(MeshAxis::data, 3);
  maker.kernel("a", 10);
  EXPECT_EQ(folded(maker.graph, small_cluster(1, 3)).ranks.size(), 1U) << "no copy: uplinks do not matter";
}

TEST(Fold, UnfoldedKeepsEverythingApart) {
  GraphMaker maker;
  maker.graph.mesh.set_size(MeshAxis::ulysses, 8);
  maker.collective("all_to_all", CollectiveKind::all_to_all, {MeshAxis::ulysses}, 800, Stream::ulysses_comm);
  const spec::Cluster cluster = small_cluster(1, 8);
  const Folding folding = folded(maker.graph, cluster, FoldMode::unfolded);
  EXPECT_EQ(folding.ranks.size(), 8U);
  EXPECT_EQ(folding.links.size(), topology::build(cluster).links().size());
  EXPECT_EQ(folding.patterns[0].transactions[0].steps[0].flows.size(), 56U);
}

}  // namespace
}  // namespace ulysim::engine
