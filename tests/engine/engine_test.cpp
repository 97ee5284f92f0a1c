// Which question this answers: does each rule of the engine give the instants that pencil and paper give?

#include "sim/engine/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/check.h"
#include "tests/engine/small_machine.h"

namespace ulysim::engine {
namespace {

using results::Cause;
using testing::AllOf;
using testing::HasSubstr;
using workload::CollectiveKind;
using workload::CreditPool;
using workload::Stream;

TEST(Streams, RunSideBySideAndMeetAtADependency) {
  GraphMaker maker;
  maker.kernel("a", 70);
  maker.copy("out", 1000, Stream::device_to_host);  // 1000 B at 10 GB/s: 100 ns
  maker.kernel("b", 10).after = {OpId(1)};
  const results::Timeline timeline = play(maker.graph, small_cluster(1, 1));
  EXPECT_EQ(begin_of(timeline, 0), 0);
  EXPECT_EQ(end_of(timeline, 0), 70);
  EXPECT_EQ(begin_of(timeline, 1), 0);
  EXPECT_EQ(end_of(timeline, 1), 100);
  EXPECT_EQ(begin_of(timeline, 2), 100) << "the copy ends after the kernel before it in the stream";
  EXPECT_EQ(timeline.ranks[0].spans[2].cause, Cause::dependency);
  EXPECT_EQ(timeline.ranks[0].spans[2].cause_op, 1U);
  EXPECT_EQ(timeline.end.value(), 110'000);
}

TEST(Streams, DrivesAreReadAndWrittenAtTheirOwnRates) {
  spec::Cluster cluster = small_cluster(1, 2);
  cluster.node.nvme.emplace();
  cluster.node.nvme->read.value = Bandwidth(20e9);
  cluster.node.nvme->write.value = Bandwidth(10e9);
  GraphMaker maker;
  const auto copy = [&](const char* name, workload::Space from, workload::Space to, Stream stream) {
    const TensorId read = maker.tensor(1000, from);
    const TensorId written = maker.tensor(1000, to);
    maker.op({.name = name, .work = workload::CopyWork{}, .reads = {read}, .writes = {written}, .stream = stream});
  };
  copy("swap_in", workload::Space::nvme, workload::Space::host, Stream::nvme_read);
  copy("swap_out", workload::Space::host, workload::Space::nvme, Stream::nvme_write);
  maker.graph.mesh.set_size(workload::MeshAxis::data, 2);
  const results::Timeline timeline = play(maker.graph, cluster);
  // Two GPUs share the drives: 2 × 1000 B at 20 GB/s in, at 10 GB/s out, beside each other.
  EXPECT_EQ(end_of(timeline, 0), 100);
  EXPECT_EQ(end_of(timeline, 1), 200);
}

TEST(Streams, RunOneOpAtATimeInProgramOrder) {
  GraphMaker maker;
  maker.kernel("a", 70);
  maker.kernel("b", 10);
  const results::Timeline timeline = play(maker.graph, small_cluster(1, 1));
  EXPECT_EQ(begin_of(timeline, 1), 70);
  EXPECT_EQ(timeline.ranks[0].spans[0].cause, Cause::nothing);
  EXPECT_EQ(timeline.ranks[0].spans[1].cause, Cause::stream);
}

TEST(Credits, AWindowOfTwoAdmitsExactlyTwo) {
  GraphMaker maker;
  maker.graph.credit_windows[static_cast<std::size_t>(CreditPool::parameters)] = 2;
  for (std::uint32_t i = 0; i < 4; ++i) {
    maker.kernel("gather", 10, Stream::zero_gather).acquire = CreditPool::parameters;  // op 2i
    auto& use = maker.kernel("use", 100);                                              // op 2i+1
    use.after = {OpId(2 * i)};
    use.release = {CreditPool::parameters};
  }
  const results::Timeline timeline = play(maker.graph, small_cluster(1, 1));
  // Uses run at 10, 110, 210, 310. The third gather needs the first use's credit, the fourth that of the second.
  EXPECT_EQ(begin_of(timeline, 0), 0);
  EXPECT_EQ(begin_of(timeline, 2), 10);
  EXPECT_EQ(begin_of(timeline, 4), 110);
  EXPECT_EQ(begin_of(timeline, 6), 210);
  EXPECT_EQ(timeline.ranks[0].spans[4].cause, Cause::credit);
  EXPECT_EQ(timeline.ranks[0].spans[4].cause_op, 1U);
  EXPECT_EQ(timeline.end.value(), 410'000);
}

TEST(Host, BoundsShortKernelsByTheirIssue) {
  GraphMaker maker;
  maker.kernel("a", 10);
  std::get<workload::ElementwiseWork>(maker.kernel("b", 10).work).launches = 3;
  maker.kernel("c", 10);
  const results::Timeline timeline = play(maker.graph, small_cluster(1, 1), {.issue_time = Duration(50'000)});
  EXPECT_EQ(begin_of(timeline, 0), 50);
  EXPECT_EQ(begin_of(timeline, 1), 50 + 3 * 50) << "three launches";
  EXPECT_EQ(begin_of(timeline, 2), 250);
  EXPECT_EQ(timeline.ranks[0].spans[2].cause, Cause::issue);
}

TEST(Host, RunsAheadOfLongKernels) {
  GraphMaker maker;
  maker.kernel("a", 1000);
  maker.kernel("b", 10);
  const results::Timeline timeline = play(maker.graph, small_cluster(1, 1), {.issue_time = Duration(50'000)});
  EXPECT_EQ(begin_of(timeline, 1), 1050);
  EXPECT_EQ(timeline.ranks[0].spans[1].cause, Cause::stream);
}

TEST(Host, ADrainWaitsForTheComputeStream) {
  GraphMaker maker;
  maker.kernel("a", 100);                       // issued at 10, ends at 110
  maker.kernel("b", 300, Stream::zero_gather);  // issued at 20, ends at 320
  maker.kernel("c", 10).drains = true;          // the host comes back at 110, not at 320
  maker.kernel("d", 10);                        // issued at 130
  const results::Timeline timeline = play(maker.graph, small_cluster(1, 1), {.issue_time = Duration(10'000)});
  EXPECT_EQ(begin_of(timeline, 2), 120);
  EXPECT_EQ(timeline.ranks[0].spans[2].cause, Cause::issue);
  EXPECT_EQ(begin_of(timeline, 3), 130);
}

TEST(Host, WaitsForOneOpWhenAsked) {
  GraphMaker maker;
  maker.kernel("a", 300, Stream::zero_gather);  // issued at 10, ends at 310
  maker.kernel("b", 100).host_waits = true;     // issued at 20, ends at 120
  maker.kernel("c", 10);                        // issued at 130
  const results::Timeline timeline = play(maker.graph, small_cluster(1, 1), {.issue_time = Duration(10'000)});
  EXPECT_EQ(begin_of(timeline, 2), 130);
}

TEST(Interference, SlowsAKernelByTheSmsTaken) {
  GraphMaker maker;
  maker.graph.mesh.set_size(MeshAxis::data, 2);
  maker.kernel("long", 1000);
  maker.kernel("delay", 100, Stream::zero_gather);
  // All-gather of 100 kB over two ranks: half of it crosses NVLink at 100 GB/s: 500 ns, from 100 to 600.
  maker.collective("gather", CollectiveKind::all_gather, {MeshAxis::data}, 100'000, Stream::zero_gather);
  const results::Timeline timeline = play(maker.graph, small_cluster(1, 2), {.communication_sms = 20});
  ASSERT_EQ(timeline.ranks.size(), 1U);
  EXPECT_EQ(begin_of(timeline, 2), 100);
  EXPECT_EQ(end_of(timeline, 2), 600);
  // 100 ns in full, 500 ns at 80/100: 500 of 1000 done at 600; the rest in full.
  EXPECT_EQ(end_of(timeline, 0), 1100);
}

TEST(Interference, HasNoDriftOverManyCollectives) {
  GraphMaker maker;
  maker.graph.mesh.set_size(MeshAxis::data, 2);
  maker.kernel("long", 100'000);
  for (int i = 0; i < 99; ++i) {
    // 7 bytes over NVLink: 70 ps at 67/100, then a pause of 1 ns in full.
    maker.collective("gather", CollectiveKind::all_gather, {MeshAxis::data}, 14, Stream::zero_gather);
    maker.kernel("pause", 1, Stream::zero_gather);
  }
  const results::Timeline timeline = play(maker.graph, small_cluster(1, 2), {.communication_sms = 33});
  // Lost: 99 · 70 · 33/100 = 2286.9 ps, whose last tenth rounds up.
  EXPECT_EQ(timeline.ranks[0].spans[0].end.value(), 100'000'000 + 2287);
}

TEST(Collectives, BeginWhenTheLastRankArrives) {
  GraphMaker maker;
  maker.graph.mesh.set_size(MeshAxis::ring, 2);
  const TensorId q = maker.sequence(workload::Dim::heads, 8, workload::Layout::contiguous);
  const TensorId k = maker.sequence(workload::Dim::kv_heads, 8, workload::Layout::contiguous);
  // Causal, four tokens a rank, against the other rank's keys: rank 0 sees none of them, rank 1 all 16 pairs.
  maker.attention("other", q, k, 1);
  // All-reduce of 200 B over two: 2 steps of 100 B: 2 ns.
  maker.collective("sum", CollectiveKind::all_reduce, {MeshAxis::ring}, 200, Stream::ring_comm).after = {OpId(0)};
  const results::Timeline timeline = play(maker.graph, small_cluster(1, 2));
  ASSERT_EQ(timeline.ranks.size(), 2U) << "ranks with different work are not folded";
  EXPECT_EQ(end_of(timeline, 0, 0), 0);
  EXPECT_EQ(end_of(timeline, 0, 1), 16);
  EXPECT_EQ(begin_of(timeline, 1, 0), 0);
  EXPECT_EQ(timeline.ranks[0].spans[1].cause, Cause::peers);
  EXPECT_EQ(begin_of(timeline, 1, 1), 16);
  EXPECT_EQ(timeline.ranks[1].spans[1].cause, Cause::dependency);
  EXPECT_EQ(end_of(timeline, 1, 0), 18);
  EXPECT_EQ(end_of(timeline, 1, 1), 18);
}

TEST(Collectives, AShiftWaitsForItsTwoNeighboursOnly) {
  GraphMaker maker;
  maker.graph.mesh.set_size(MeshAxis::ring, 4);
  const TensorId q = maker.sequence(workload::Dim::heads, 16, workload::Layout::contiguous);
  const TensorId k = maker.sequence(workload::Dim::kv_heads, 16, workload::Layout::contiguous);
  // Keys of the rank three places before: only rank 3 has work, 16 pairs against the keys of rank 0.
  maker.attention("far", q, k, 3);
  maker.collective("pass", CollectiveKind::send_recv, {MeshAxis::ring}, 100, Stream::ring_comm).after = {OpId(0)};
  const results::Timeline timeline = play(maker.graph, small_cluster(1, 4));
  ASSERT_EQ(timeline.ranks.size(), 4U);
  EXPECT_EQ(end_of(timeline, 1, 1), 1) << "rank 1 receives from 0 and sends to 2: 100 B at 100 GB/s";
  EXPECT_EQ(end_of(timeline, 1, 0), 17) << "rank 0 receives from rank 3, which is late";
  EXPECT_EQ(end_of(timeline, 1, 2), 17) << "rank 2 sends to rank 3";
  EXPECT_EQ(end_of(timeline, 1, 3), 17);
}

TEST(Collectives, PayALatencyPerStepAndEfficiencyOnTheWire) {
  GraphMaker maker;
  maker.graph.mesh.set_size(MeshAxis::data, 4);
  maker.collective("gather", CollectiveKind::all_gather, {MeshAxis::data}, 4000, Stream::zero_gather);
  maker.collective("nothing", CollectiveKind::all_gather, {MeshAxis::data}, 0, Stream::zero_gather);
  maker.collective("alone", CollectiveKind::all_gather, {MeshAxis::tensor}, 4000, Stream::zero_gather);
  spec::Cluster cluster = small_cluster(1, 4);
  cluster.node.nvlink.base_latency.value = Duration(1'000'000);
  cluster.node.nvlink.step_latency.value = Duration(100'000);
  cluster.node.nvlink.ring_efficiency.value = 0.5;
  const results::Timeline timeline = play(maker.graph, cluster);
  // 1 us + 3 steps · 100 ns, then 3 · 1000 B / 0.5 at 100 GB/s = 60 ns.
  EXPECT_EQ(end_of(timeline, 0), 1360);
  EXPECT_EQ(end_of(timeline, 1), 1360 + 1300) << "an empty collective takes its latency";
  EXPECT_EQ(end_of(timeline, 2), 2660) << "a group of one takes nothing";
}

TEST(Collectives, AcrossNodesTakeTheNetworksLatencyAndItsOverride) {
  GraphMaker maker;
  maker.graph.mesh.set_size(MeshAxis::data, 2);
  maker.collective("pass", CollectiveKind::send_recv, {MeshAxis::data}, 1000, Stream::ring_comm);
  spec::Cluster cluster = small_cluster(2, 1);
  cluster.node.network.base_latency.value = Duration(5'000'000);
  EXPECT_EQ(end_of(play(maker.graph, cluster), 0), 5000 + 100) << "1000 B at 10 GB/s";
  cluster.network.latency = Duration(2'000'000);
  EXPECT_EQ(end_of(play(maker.graph, cluster), 0), 2000 + 100);
}

TEST(Copies, ShareTheUplinkOfTheirSwitch) {
  GraphMaker maker;
  maker.graph.mesh.set_size(MeshAxis::data, 2);
  maker.copy("out", 1000, Stream::device_to_host);
  const results::Timeline timeline = play(maker.graph, small_cluster(1, 2));
  ASSERT_EQ(timeline.ranks.size(), 1U);
  EXPECT_EQ(end_of(timeline, 0), 200) << "two GPUs of 10 GB/s behind one uplink of 10 GB/s";
  bool seen = false;
  for (const results::LinkUse& link : timeline.links) {
    if (link.name == "node0.pcie0.up") {
      seen = true;
      EXPECT_EQ(link.carried, 2000.0);
      EXPECT_EQ(link.capacity, 10e9);
    }
  }
  EXPECT_TRUE(seen);
}

TEST(Copies, FromPageableMemoryRunSlower) {
  GraphMaker maker;
  std::get<workload::CopyWork>(maker.copy("in", 1000, Stream::host_to_device).work).buffer =
      workload::CopyWork::Buffer::pageable;
  EXPECT_EQ(end_of(play(maker.graph, small_cluster(1, 1)), 0), 200) << "half of 10 GB/s";
}

TEST(HostWork, SharesTheMemoryOfItsNodeThenTakesItsFixedTime) {
  GraphMaker maker;
  maker.graph.mesh.set_size(MeshAxis::data, 2);
  maker.host_work("adam", 1000, Duration(5'000));
  // Two ranks of 1000 B on one memory of 100 GB/s: 20 ns, and 5 ns.
  EXPECT_EQ(end_of(play(maker.graph, small_cluster(1, 2)), 0), 25);
}

TEST(Attention, ThatSeesNothingIsNotLaunched) {
  GraphMaker maker;
  maker.graph.mesh.set_size(MeshAxis::ring, 2);
  const TensorId q = maker.sequence(workload::Dim::heads, 8, workload::Layout::contiguous);
  const TensorId k = maker.sequence(workload::Dim::kv_heads, 8, workload::Layout::contiguous);
  maker.attention("other", q, k, 1);
  maker.kernel("b", 10);
  const results::Timeline timeline = play(maker.graph, small_cluster(1, 2), {.issue_time = Duration(50'000)});
  EXPECT_EQ(begin_of(timeline, 1, 0), 50);
  EXPECT_EQ(begin_of(timeline, 1, 1), 100);
}

TEST(Blocked, OpsAreNamedWithWhatTheyWaitFor) {
  GraphMaker maker;
  maker.kernel("first", 10, Stream::zero_gather).acquire = CreditPool::parameters;
  maker.kernel("second", 10, Stream::zero_gather).acquire = CreditPool::parameters;
  maker.kernel("use", 10).after = {OpId(1)};
  maker.kernel("late", 10, Stream::zero_reduce).drains = true;
  try {
    static_cast<void>(play(maker.graph, small_cluster(1, 1)));
    FAIL() << "nobody returns the credit";
  } catch (const InternalError& error) {
    EXPECT_THAT(
        error.what(),
        AllOf(HasSubstr("after 10000 ps and 3 ops"),
              HasSubstr("layer.second (block 0, micro-batch 0) on zero_gather waits for a credit (1 of 1 taken)"),
              HasSubstr("layer.use (block 0, micro-batch 0) on compute waits for layer.second"),
              HasSubstr("layer.late (block 0, micro-batch 0) on zero_reduce waits for the host")));
  }
}

}  // namespace
}  // namespace ulysim::engine
