// Which question this answers: can the timeline of every shipped plan have happened?

#include <gtest/gtest.h>

#include "tests/study/lab.h"

namespace ulysim::study {
namespace {

class Causality : public testing::TestWithParam<std::string> {};

void expect_order(const workload::Schedule& schedule, const results::RankTimeline& rank, Instant end) {
  for (std::size_t op = 0; op < schedule.ops.size(); ++op) {
    const results::Span& span = rank.spans[op];
    ASSERT_LE(span.begin, span.end);
    ASSERT_LE(span.end, end);
    for (const std::uint32_t before : schedule.dependencies_of(op)) {
      ASSERT_LE(rank.spans[before].end, span.begin) << schedule.ops[op].op->name << " starts before what it reads";
    }
  }
  for (const auto& stream : schedule.streams) {
    for (std::size_t i = 1; i < stream.size(); ++i) {
      ASSERT_LE(rank.spans[stream[i - 1]].end, rank.spans[stream[i]].begin)
          << schedule.ops[stream[i]].op->name << " overlaps the op before it in its stream";
    }
  }
}

void expect_meetings(const workload::OpGraph& graph, const workload::Schedule& schedule,
                     const results::Timeline& timeline) {
  std::vector<const results::RankTimeline*> of_rank(static_cast<std::size_t>(graph.mesh.world()));
  for (const results::RankTimeline& rank : timeline.ranks) {
    for (const RankId member : rank.members) {
      of_rank[member.index()] = &rank;
    }
  }
  for (std::size_t op = 0; op < schedule.ops.size(); ++op) {
    const auto* work = std::get_if<workload::CollectiveWork>(&schedule.ops[op].op->work);
    if (work == nullptr) {
      continue;
    }
    for (const results::RankTimeline& rank : timeline.ranks) {
      if (rank.role != schedule.role) {
        continue;
      }
      const std::vector<RankId> group = graph.mesh.group(rank.representative, work->axes);
      const results::Span& mine = rank.spans[op];
      if (work->kind == workload::CollectiveKind::send_recv) {
        const auto self =
            static_cast<std::size_t>(std::find(group.begin(), group.end(), rank.representative) - group.begin());
        for (const std::size_t other : {self + 1, self + group.size() - 1}) {
          ASSERT_LE(of_rank[group[other % group.size()].index()]->spans[op].begin, mine.end)
              << schedule.ops[op].op->name << " is over before a neighbour had come";
        }
        continue;
      }
      for (const RankId member : group) {
        ASSERT_EQ(of_rank[member.index()]->spans[op].end, mine.end) << schedule.ops[op].op->name;
      }
    }
  }
}

TEST_P(Causality, Holds) {
  const scenario::Scenario scenario = load_run(GetParam());
  const Machine machine = build_machine(scenario);
  for (const scenario::PlanEntry& entry : feasible(scenario)) {
    SCOPED_TRACE(entry.plan.name);
    const auto stages = run_stages(scenario, machine, entry, Stage::timeline);
    Instant last{};
    for (const results::RankTimeline& rank : stages->timeline.ranks) {
      expect_order(stages->schedule_of(rank), rank, stages->timeline.end);
      for (const results::Span& span : rank.spans) {
        last = std::max(last, span.end);
      }
    }
    EXPECT_EQ(last, stages->timeline.end);
    for (const workload::Schedule& schedule : stages->schedules) {
      expect_meetings(stages->parallel, schedule, stages->timeline);
    }
    const double time = seconds(stages->timeline.end - Instant{});
    double most = 0;
    for (const results::LinkUse& link : stages->timeline.links) {
      EXPECT_LE(link.carried, link.capacity * time) << link.name;
      most = std::max(most, link.carried);
    }
    EXPECT_GT(most, 0.0) << "something was sent";
  }
}

INSTANTIATE_TEST_SUITE_P(Runs, Causality, testing::ValuesIn(run_names()), test_name);

}  // namespace
}  // namespace ulysim::study
