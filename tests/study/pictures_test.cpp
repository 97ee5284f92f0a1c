// Which question this answers: do the pictures of a result show what was simulated: the memory's kinds, one layer's
// time, the machine and the loads of its links, and what passes from rank to rank?

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "sim/study/study.h"
#include "tests/study/lab.h"

namespace ulysim::study {
namespace {

class EveryRun : public testing::TestWithParam<std::string> {
 protected:
  results::StudyResult study_{compare(load_run(GetParam()), {})};
};

TEST_P(EveryRun, KindsOfMemorySumToTheCurveAndPartsOfTheHostToItsPeak) {
  for (const results::PlanResult& plan : study_.plans) {
    if (!plan.figures) {
      continue;
    }
    const results::Figures& f = *plan.figures;
    ASSERT_EQ(f.memory_by_kind.bytes.size(), f.memory_curve.size());
    for (std::size_t i = 0; i < f.memory_curve.size(); ++i) {
      Bytes sum{};
      for (const Bytes bytes : f.memory_by_kind.bytes[i]) {
        sum += bytes;
      }
      ASSERT_EQ(sum, f.memory_curve[i].allocated) << plan.name << " sample " << i;
    }
    Bytes host{};
    for (const results::NamedBytes& part : f.host_memory) {
      EXPECT_GT(part.bytes.value(), 0) << part.name;
      host += part.bytes;
    }
    EXPECT_EQ(host, f.peak_host_memory_per_node) << plan.name;
  }
}

void expect_sound(const results::LayerPhase& phase, Duration step) {
  EXPECT_LT(phase.begin, phase.end);
  EXPECT_LE(phase.end - Instant(), step);
  EXPECT_LE(phase.spans.size(), 400U);
  std::vector<Instant> free_at(phase.streams.size());
  for (const results::TraceSpan& span : phase.spans) {
    ASSERT_LT(span.stream, phase.streams.size());
    EXPECT_LT(span.begin, span.end) << span.name;
    EXPECT_TRUE(span.begin < phase.end && span.end > phase.begin) << span.name << " is not in the picture";
    EXPECT_GE(span.begin, free_at[span.stream]) << span.name << ": a stream does one thing at a time";
    free_at[span.stream] = span.end;
  }
}

TEST_P(EveryRun, AMiddleLayerRunsForwardThenBackward) {
  for (const results::PlanResult& plan : study_.plans) {
    if (!plan.figures) {
      continue;
    }
    SCOPED_TRACE(plan.name);
    ASSERT_TRUE(plan.figures->layer_timeline.has_value());
    const results::LayerTimeline& layer = *plan.figures->layer_timeline;
    EXPECT_GT(layer.layer, 0);
    EXPECT_LT(layer.layer, study_.model.layers);
    EXPECT_LE(layer.forward.end, layer.backward.begin);
    expect_sound(layer.forward, plan.figures->step_time);
    expect_sound(layer.backward, plan.figures->step_time);
  }
}

TEST_P(EveryRun, ThePictureOfTheMachineIsSmallAndItsLoadsAreThoseOfThePlan) {
  const results::TopologyPicture& picture = study_.topology;
  EXPECT_LT(picture.vertices.size(), 400U);
  EXPECT_EQ(picture.omitted_nodes, std::max<std::int64_t>(0, study_.scenario.nodes - 2));
  for (const auto& link : picture.links) {
    EXPECT_LT(link.from, picture.vertices.size());
    EXPECT_LT(link.to, picture.vertices.size());
    EXPECT_NE(link.from, link.to);
  }
  for (const results::PlanResult& plan : study_.plans) {
    if (!plan.figures) {
      continue;
    }
    const auto& classes = plan.figures->picture_links;
    ASSERT_EQ(classes.size(), picture.links.size());
    for (std::size_t i = 0; i < classes.size(); ++i) {
      if (classes[i]) {
        const results::LinkLoad& load = plan.figures->links.at(*classes[i]);
        EXPECT_EQ(load.kind, picture.links[i].kind);
        EXPECT_EQ(load.capacity, picture.links[i].capacity);
      } else {
        EXPECT_EQ(picture.links[i].kind, "nvme") << "only unused drives have no load";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Runs, EveryRun, testing::ValuesIn(run_names()), test_name);

TEST(Layer, ShowsTheExchangesOfUlyssesAndTheHopsOfARing) {
  const results::StudyResult study =
      compare(parse({.training = "{sequence_length: 128Ki}", .plans = "[{ulysses: 8}, {ring: 8}]"}), {});
  const auto count = [&](std::size_t plan, const std::string& purpose) {
    const auto& spans = study.plans[plan].figures->layer_timeline->forward.spans;
    return std::count_if(spans.begin(), spans.end(), [&](const auto& span) { return span.purpose == purpose; });
  };
  EXPECT_GE(count(0, "ulysses"), 4) << "q, k, v and the output";
  EXPECT_GE(count(1, "ring"), 7) << "eight blocks of keys, seven hops";
  EXPECT_EQ(count(1, "ulysses"), 0);
}

TEST(TraceOfPlan, AMessageGoesFromEachStageToTheNext) {
  const scenario::Scenario scenario =
      parse({.training = "{sequence_length: 16Ki, gradient_accumulation: 4, framework: megatron-core, zero: 1}",
             .plans = "[{pipeline: 2, tensor: 4}]"});
  const results::StudyResult study = run(scenario, {.detail = Detail::trace});
  const results::Trace& trace = study.plans.front().figures->trace.value();
  ASSERT_EQ(trace.ranks.size(), 2U);
  std::set<std::pair<std::uint32_t, std::uint32_t>> ends;
  int messages = 0;
  for (const results::TraceFlow& flow : trace.flows) {
    const results::TraceSpan& from = trace.ranks[flow.from.rank].spans.at(flow.from.span);
    const results::TraceSpan& to = trace.ranks[flow.to.rank].spans.at(flow.to.span);
    EXPECT_LT(from.begin, to.end);
    messages += from.purpose == "pipeline" ? 1 : 0;
    EXPECT_TRUE(ends.emplace(flow.to.rank, flow.to.span).second) << "two flows end in " << to.name;
  }
  EXPECT_EQ(messages, 8) << "four micro-batches: activations one way, gradients the other";
}

TEST(TraceOfPlan, LinksAreNeverLoadedBeyondTheirCapacityAndAreIdleInTheEnd) {
  const results::StudyResult study =
      run(parse({.training = "{sequence_length: 128Ki}", .plans = "[{ulysses: 8}]"}), {.detail = Detail::trace});
  bool used = false;
  for (const results::LinkLoadCurve& curve : study.plans.front().figures->trace->loads) {
    for (const results::LoadSample& sample : curve.samples) {
      EXPECT_GE(sample.busiest, 0.0) << curve.kind;
      EXPECT_LE(sample.busiest, 1.0 + 1e-9) << curve.kind;
      used = used || (curve.kind == "nvlink" && sample.busiest > 0.5);
    }
    EXPECT_TRUE(curve.samples.empty() || curve.samples.back().busiest == 0.0) << curve.kind;
  }
  EXPECT_TRUE(used) << "all-to-alls fill NVLink";
}

}  // namespace
}  // namespace ulysim::study
