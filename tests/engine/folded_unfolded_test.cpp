// Which question this answers: do a folded run and one of every single rank agree to the picosecond, whatever the
// program and the machine? And do two runs agree?

#include <gtest/gtest.h>

#include <array>
#include <random>

#include "tests/engine/small_machine.h"

namespace ulysim::engine {
namespace {

using workload::CollectiveKind;
using workload::Stream;

/// Its own draws from the engine's bits: distributions of the standard library differ between implementations.
class Dice {
 public:
  explicit Dice(std::uint32_t seed) : bits_(seed) {}
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(bits_() % static_cast<std::uint64_t>(n)); }

 private:
  std::mt19937_64 bits_;
};

workload::Mesh random_mesh(Dice& dice, std::int64_t world) {
  workload::Mesh mesh;
  for (std::size_t i = 3; i > 0; --i) {
    std::swap(mesh.placement[i],
              mesh.placement[static_cast<std::size_t>(dice.below(static_cast<std::int64_t>(i) + 1))]);
  }
  while (world > 1) {
    const std::int64_t factor = world % 2 == 0 ? 2 : world;
    std::int64_t& size = mesh.sizes[static_cast<std::size_t>(dice.below(4))];
    size *= factor;
    world /= factor;
  }
  return mesh;
}

void add_random_op(Dice& dice, GraphMaker& maker, TensorId q, TensorId k) {
  constexpr std::array kCommStreams{Stream::tensor_comm, Stream::ulysses_comm, Stream::zero_gather,
                                    Stream::zero_reduce};
  constexpr std::array kKinds{CollectiveKind::all_to_all, CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
                              CollectiveKind::all_reduce};
  const auto ops = static_cast<std::int64_t>(maker.ops().size());
  switch (dice.below(7)) {
    case 0:
      maker.kernel("kernel", 1 + dice.below(3000));
      break;
    case 1:
      maker.attention("attention", q, k, dice.below(maker.graph.mesh.size(MeshAxis::ring)));
      break;
    case 2:
    case 3: {
      workload::AxisSet axes;
      for (const MeshAxis axis : workload::kAxes) {
        if (dice.below(2) == 0) {
          axes.insert(axis);
        }
      }
      maker.collective("collective", kKinds[static_cast<std::size_t>(dice.below(4))], axes, dice.below(100'000),
                       kCommStreams[static_cast<std::size_t>(dice.below(4))]);
      break;
    }
    case 4:
      maker.collective("pass", CollectiveKind::send_recv, {MeshAxis::ring}, dice.below(30'000), Stream::ring_comm);
      break;
    case 5:
      maker.copy("copy", dice.below(20'000), dice.below(2) == 0 ? Stream::device_to_host : Stream::host_to_device);
      break;
    default:
      maker.host_work("host", dice.below(100'000), Duration(dice.below(1000)));
      break;
  }
  workload::Op& op = maker.ops().back();
  if (ops > 0 && dice.below(2) == 0) {
    op.after.emplace_back(static_cast<std::uint32_t>(dice.below(ops)));
  }
  op.drains = dice.below(12) == 0;
  op.host_waits = dice.below(12) == 0;
}

struct Case {
  spec::Cluster cluster{};
  GraphMaker maker{};
  HostCosts host{};
};

Case random_case(std::uint32_t seed) {
  Dice dice(seed);
  constexpr std::array<std::int64_t, 5> kGpus{1, 2, 3, 4, 8};
  const std::int64_t nodes = 1 + dice.below(2);
  Case out{.cluster = small_cluster(nodes, kGpus[static_cast<std::size_t>(dice.below(5))])};
  out.cluster.node.nvlink_bandwidth.value = Bandwidth(97.3e9);
  out.cluster.node.nvlink.base_latency.value = Duration(dice.below(300'000));
  out.cluster.node.nvlink.step_latency.value = Duration(dice.below(20'000));
  out.cluster.node.network.step_latency.value = Duration(dice.below(70'000));
  out.cluster.node.nvlink.ring_efficiency.value = 0.83;
  out.cluster.node.network.all_to_all_efficiency.value = 0.91;
  out.cluster.network.oversubscription = static_cast<double>(1 + dice.below(3));
  out.maker.graph.mesh = random_mesh(dice, out.cluster.gpus);
  out.host = {.issue_time = Duration(dice.below(200'000)), .communication_sms = dice.below(40)};
  const auto layout = static_cast<workload::Layout>(dice.below(3));
  const std::int64_t tokens = 4 * out.maker.graph.mesh.size(MeshAxis::ring);
  const TensorId q = out.maker.sequence(workload::Dim::heads, tokens, layout);
  const TensorId k = out.maker.sequence(workload::Dim::kv_heads, tokens, layout);
  for (int i = 0; i < 40; ++i) {
    add_random_op(dice, out.maker, q, k);
  }
  return out;
}

void expect_equal_spans(const results::RankTimeline& a, const results::RankTimeline& b) {
  ASSERT_EQ(a.spans.size(), b.spans.size());
  for (std::size_t op = 0; op < a.spans.size(); ++op) {
    ASSERT_EQ(a.spans[op].begin.value(), b.spans[op].begin.value()) << "begin of op " << op;
    ASSERT_EQ(a.spans[op].end.value(), b.spans[op].end.value()) << "end of op " << op;
    ASSERT_EQ(a.spans[op].cause, b.spans[op].cause) << "cause of op " << op;
  }
}

double carried(const results::Timeline& timeline) {
  double sum = 0;
  for (const results::LinkUse& link : timeline.links) {
    sum += link.carried * static_cast<double>(link.members.size());
  }
  return sum;
}

TEST(FoldedAndUnfolded, AgreeToThePicosecond) {
  std::size_t folded_ranks = 0;
  std::size_t all_ranks = 0;
  for (std::uint32_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Case test = random_case(seed);
    const results::Timeline folded = play(test.maker.graph, test.cluster, test.host, FoldMode::folded);
    const results::Timeline unfolded = play(test.maker.graph, test.cluster, test.host, FoldMode::unfolded);
    ASSERT_EQ(folded.end.value(), unfolded.end.value());
    ASSERT_EQ(static_cast<std::int64_t>(unfolded.ranks.size()), test.cluster.gpus);
    for (const results::RankTimeline& rank_class : folded.ranks) {
      for (const RankId member : rank_class.members) {
        SCOPED_TRACE(testing::Message() << "rank " << member.index());
        expect_equal_spans(rank_class, unfolded.ranks[member.index()]);
        ASSERT_FALSE(testing::Test::HasFatalFailure());
      }
    }
    EXPECT_NEAR(carried(folded), carried(unfolded), 1e-9 * carried(unfolded));
    folded_ranks += folded.ranks.size();
    all_ranks += unfolded.ranks.size();
  }
  EXPECT_LT(2 * folded_ranks, all_ranks) << "the cases fold too little to show anything";
}

TEST(TwoRuns, AreEqual) {
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Case test = random_case(seed);
    const results::Timeline first = play(test.maker.graph, test.cluster, test.host);
    const results::Timeline second = play(test.maker.graph, test.cluster, test.host);
    ASSERT_EQ(first.ranks.size(), second.ranks.size());
    for (std::size_t rank = 0; rank < first.ranks.size(); ++rank) {
      expect_equal_spans(first.ranks[rank], second.ranks[rank]);
    }
    ASSERT_EQ(first.links.size(), second.links.size());
    for (std::size_t link = 0; link < first.links.size(); ++link) {
      EXPECT_EQ(first.links[link].carried, second.links[link].carried);
    }
  }
}

}  // namespace
}  // namespace ulysim::engine
