// Which question this answers: does a hand-made timeline break down as a pencil would have it? Times are picoseconds.

#include "sim/study/breakdown.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <map>

namespace ulysim::study {
namespace {

using results::Cause;
using testing::ElementsAre;
using testing::Pair;
using workload::CollectiveKind;
using workload::Op;
using workload::Purpose;
using workload::Stream;

/// Draws one rank's timeline op by op.
class Drawing {
 public:
  struct Bar {
    std::int64_t begin{};
    std::int64_t end{};
    Cause cause{Cause::nothing};
    std::uint32_t cause_op{};
  };

  std::uint32_t draw(Op op, Bar bar) {
    ops_.push_back(std::move(op));
    const auto index = static_cast<std::uint32_t>(schedule_.ops.size());
    schedule_.ops.push_back({.op = &ops_.back()});
    schedule_.streams[static_cast<std::size_t>(ops_.back().stream)].push_back(index);
    rank_.spans.push_back(
        {.begin = Instant(bar.begin), .end = Instant(bar.end), .cause = bar.cause, .cause_op = bar.cause_op});
    return index;
  }
  std::uint32_t kernel(Purpose purpose, Bar bar) {
    return draw({.work = workload::GemmWork{}, .purpose = purpose}, bar);
  }
  std::uint32_t collective(CollectiveKind kind, Purpose purpose, Stream stream, Bar bar) {
    return draw({.work = workload::CollectiveWork{.kind = kind}, .stream = stream, .purpose = purpose}, bar);
  }
  std::uint32_t all_to_all(Bar bar) {
    return collective(CollectiveKind::all_to_all, Purpose::ulysses, Stream::ulysses_comm, bar);
  }
  std::uint32_t gather(Bar bar) {
    return collective(CollectiveKind::all_gather, Purpose::parameters, Stream::zero_gather, bar);
  }
  std::uint32_t copy(Stream stream, Bar bar) {
    return draw({.work = workload::CopyWork{}, .stream = stream, .purpose = Purpose::checkpoint_offload}, bar);
  }

  [[nodiscard]] Breakdown run(std::int64_t end) const { return break_down(schedule_, rank_, Instant(end)); }
  /// Parts that are not 0.
  [[nodiscard]] std::map<std::string, std::int64_t> parts(std::int64_t end) const {
    std::map<std::string, std::int64_t> out;
    for (const auto& part : run(end).parts) {
      if (part.time.value() != 0) {
        out[part.name] = part.time.value();
      }
    }
    return out;
  }

 private:
  std::deque<Op> ops_;
  workload::Schedule schedule_;
  results::RankTimeline rank_;
};

std::int64_t of(const Breakdown& b, CollectiveKind kind) {
  return b.exposed_by_kind.at(static_cast<std::size_t>(kind)).value();
}
std::int64_t of(const Breakdown& b, Purpose purpose) {
  return b.exposed_by_purpose.at(static_cast<std::size_t>(purpose)).value();
}

TEST(Breakdown, KernelsCountAsWhatTheyAre) {
  Drawing d;
  d.kernel(Purpose::attention, {0, 10});
  d.kernel(Purpose::gemm, {10, 15, Cause::stream, 0});
  d.kernel(Purpose::memory_bound, {15, 18, Cause::stream, 1});
  d.kernel(Purpose::optimizer, {18, 20, Cause::stream, 2});
  EXPECT_THAT(d.parts(20),
              ElementsAre(Pair("attention", 10), Pair("gemm", 5), Pair("memory_bound", 3), Pair("optimizer", 2)));
}

TEST(Breakdown, OfACollectiveOnlyWhatIsNotHiddenIsExposed) {
  Drawing d;
  d.kernel(Purpose::gemm, {0, 10});
  const auto sent = d.all_to_all({5, 14});  // 5 hidden, 4 not
  d.kernel(Purpose::attention, {14, 20, Cause::dependency, sent});
  EXPECT_THAT(d.parts(20), ElementsAre(Pair("attention", 6), Pair("exposed_communication", 4), Pair("gemm", 10)));
  EXPECT_EQ(of(d.run(20), CollectiveKind::all_to_all), 4);
  EXPECT_EQ(of(d.run(20), Purpose::ulysses), 4);
}

TEST(Breakdown, AChainIsFollowedBackwards) {
  Drawing d;
  const auto first = d.kernel(Purpose::gemm, {0, 10});
  const auto fetched = d.copy(Stream::host_to_device, {10, 13, Cause::dependency, first});
  const auto sent = d.all_to_all({13, 18, Cause::dependency, fetched});
  const auto gathered = d.gather({18, 25, Cause::dependency, sent});
  d.kernel(Purpose::gemm, {25, 30, Cause::dependency, gathered});
  EXPECT_THAT(d.parts(30),
              ElementsAre(Pair("exposed_communication", 5 + 7), Pair("exposed_offload", 3), Pair("gemm", 15)));
  EXPECT_EQ(of(d.run(30), CollectiveKind::all_to_all), 5);
  EXPECT_EQ(of(d.run(30), CollectiveKind::all_gather), 7);
  EXPECT_EQ(of(d.run(30), Purpose::parameters), 7);
}

TEST(Breakdown, AFullStreamAndACreditAreFollowedToo) {
  Drawing d;
  const auto first = d.kernel(Purpose::gemm, {0, 4});
  const auto one = d.gather({0, 9});                       // 4 hidden
  const auto two = d.gather({9, 12, Cause::stream, one});  // waited for the one before in its stream
  d.kernel(Purpose::gemm, {12, 20, Cause::dependency, two});
  // A gather that had no credit until the first kernel's end.
  Drawing e;
  const auto holder = e.kernel(Purpose::gemm, {0, 10});
  const auto late = e.gather({10, 16, Cause::credit, holder});
  e.kernel(Purpose::gemm, {16, 20, Cause::dependency, late});
  EXPECT_EQ(first, holder);
  EXPECT_THAT(d.parts(20), ElementsAre(Pair("exposed_communication", 5 + 3), Pair("gemm", 12)));
  EXPECT_THAT(e.parts(20), ElementsAre(Pair("exposed_communication", 6), Pair("gemm", 14)));
}

TEST(Breakdown, AKernelMayWaitForItsOwnCredit) {
  Drawing d;
  d.kernel(Purpose::gemm, {0, 4});
  const auto out = d.copy(Stream::device_to_host, {2, 9});
  d.kernel(Purpose::gemm, {9, 12, Cause::credit, out});
  EXPECT_THAT(d.parts(12), ElementsAre(Pair("exposed_offload", 5), Pair("gemm", 7)));
}

TEST(Breakdown, WaitingForTheHostIsTheHosts) {
  Drawing d;
  d.kernel(Purpose::gemm, {0, 10});
  d.kernel(Purpose::gemm, {15, 20, Cause::issue, 0});
  EXPECT_THAT(d.parts(20), ElementsAre(Pair("gemm", 15), Pair("host_issue", 5)));
}

TEST(Breakdown, UnlessTheHostWaitedItself) {
  Drawing d;
  d.kernel(Purpose::gemm, {0, 10});
  // [10, 11) issue, [11, 14) Adam for which the host waits, [14, 15) issue.
  d.draw({.work = workload::HostWork{}, .stream = Stream::host_work, .purpose = Purpose::optimizer, .host_waits = true},
         {11, 14, Cause::issue, 0});
  d.kernel(Purpose::gemm, {15, 20, Cause::issue, 0});
  EXPECT_THAT(d.parts(20), ElementsAre(Pair("gemm", 15), Pair("host_issue", 2), Pair("optimizer", 3)));
}

TEST(Breakdown, ALateIssueOfACollectiveIsTheHostsToo) {
  Drawing d;
  d.kernel(Purpose::gemm, {0, 10});
  const auto sent = d.all_to_all({13, 18, Cause::issue, 0});
  d.kernel(Purpose::gemm, {18, 20, Cause::dependency, sent});
  EXPECT_THAT(d.parts(20), ElementsAre(Pair("exposed_communication", 5), Pair("gemm", 12), Pair("host_issue", 3)));
}

TEST(Breakdown, WaitingForPeersInsideACollectiveIsItsTime) {
  Drawing d;
  d.kernel(Purpose::attention, {0, 10});
  const auto sent = d.all_to_all({10, 30, Cause::peers, 1});
  d.kernel(Purpose::gemm, {30, 31, Cause::dependency, sent});
  EXPECT_THAT(d.parts(31), ElementsAre(Pair("attention", 10), Pair("exposed_communication", 20), Pair("gemm", 1)));
}

TEST(Breakdown, WhatFollowsTheLastKernelIsCounted) {
  Drawing d;
  const auto last = d.kernel(Purpose::gemm, {0, 10});
  const auto adam = d.draw({.work = workload::HostWork{}, .stream = Stream::host_work, .purpose = Purpose::optimizer},
                           {10, 50, Cause::dependency, last});
  d.copy(Stream::host_to_device, {50, 55, Cause::dependency, adam});
  EXPECT_THAT(d.parts(55), ElementsAre(Pair("exposed_offload", 5), Pair("gemm", 10), Pair("optimizer", 40)));
}

TEST(Breakdown, ATrailingOpCountsFromTheLastKernelsEnd) {
  Drawing d;
  d.kernel(Purpose::gemm, {0, 10});
  d.copy(Stream::device_to_host, {5, 12});
  EXPECT_THAT(d.parts(12), ElementsAre(Pair("exposed_offload", 2), Pair("gemm", 10)));
}

TEST(Breakdown, WhatNobodyExplainsIsOther) {
  Drawing d;
  d.kernel(Purpose::gemm, {0, 10});
  d.kernel(Purpose::gemm, {13, 20});
  EXPECT_THAT(d.parts(20), ElementsAre(Pair("gemm", 17), Pair("other", 3)));
}

TEST(Breakdown, TheLastRankIsTheOneThatTheOthersWaitFor) {
  Op kernel{.work = workload::GemmWork{}};
  Op meeting{.work = workload::CollectiveWork{}, .stream = Stream::zero_reduce};
  workload::Schedule schedule;
  schedule.ops = {{.op = &kernel}, {.op = &meeting}};
  schedule.streams[static_cast<std::size_t>(Stream::compute)] = {0};
  schedule.streams[static_cast<std::size_t>(Stream::zero_reduce)] = {1};
  results::Timeline timeline;
  const auto rank = [&](std::int64_t busy, std::int64_t end) {
    timeline.ranks.push_back({.spans = {{.end = Instant(busy)}, {.begin = Instant(busy), .end = Instant(end)}}});
  };
  rank(30, 30);  // busy, but over first
  rank(2, 40);
  rank(35, 40);
  rank(35, 40);
  EXPECT_EQ(&last_rank(std::span(&schedule, 1), timeline), &timeline.ranks[2])
      << "the busiest that ends last, the first of equals";
}

}  // namespace
}  // namespace ulysim::study
