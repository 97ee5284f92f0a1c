// Which question this answers: would Perfetto read every trace: named tracks, slices that nest, flows with two ends
// that lie in slices, counters that never fall below zero?

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <tuple>

#include "reports/writer.h"
#include "sim/config/document.h"
#include "sim/study/study.h"
#include "tests/study/lab.h"

namespace ulysim::reports {
namespace {

using config::Node;
using Track = std::pair<std::string, std::string>;  // process and thread

/// Microseconds with three decimals as nanoseconds.
std::int64_t nanoseconds(const Node& event, const char* key) {
  std::string digits = event.find(key)->text;
  const std::size_t point = digits.find('.');
  EXPECT_EQ(digits.size() - point, 4U) << digits;
  digits.erase(point, 1);
  return std::stoll(digits);
}

Track track_of(const Node& event) {
  return {event.find("pid")->text, event.find("tid")->text};
}

/// All events, sorted by what they are.
struct Events {
  std::map<std::string, std::vector<const Node*>> by_phase{};

  explicit Events(const Node& root) {
    for (const Node& event : root.find("traceEvents")->items) {
      by_phase[event.find("ph")->text].push_back(&event);
    }
  }
};

struct Slice {
  std::int64_t begin{};
  std::int64_t end{};
};
using Slices = std::map<Track, std::vector<Slice>>;

Slices expect_slices_in_order(const Events& events) {
  Slices slices;
  for (const Node* event : events.by_phase.at("X")) {
    const std::int64_t begin = nanoseconds(*event, "ts");
    const std::int64_t length = nanoseconds(*event, "dur");
    EXPECT_GE(length, 0);
    slices[track_of(*event)].push_back({.begin = begin, .end = begin + length});
  }
  for (auto& [track, list] : slices) {
    std::stable_sort(list.begin(), list.end(), [](const Slice& a, const Slice& b) { return a.begin < b.begin; });
    for (std::size_t i = 1; i < list.size(); ++i) {
      EXPECT_GE(list[i].begin, list[i - 1].end) << "two ops at once in " << track.first << "/" << track.second;
    }
  }
  return slices;
}

void expect_tracks_are_named(const Events& events, const Slices& slices) {
  std::map<std::string, std::set<Track>> named;
  for (const Node* event : events.by_phase.at("M")) {
    EXPECT_TRUE(named[event->find("name")->text].insert(track_of(*event)).second) << "named twice";
  }
  for (const auto& [track, list] : slices) {
    EXPECT_TRUE(named["thread_name"].contains(track)) << track.second;
    EXPECT_TRUE(named["thread_sort_index"].contains(track)) << track.second;
    EXPECT_TRUE(named["process_name"].contains({track.first, "0"})) << track.first;
    EXPECT_TRUE(named["process_sort_index"].contains({track.first, "0"})) << track.first;
  }
  for (const Node* event : events.by_phase.at("C")) {
    EXPECT_TRUE(named["process_name"].contains(track_of(*event)));
  }
}

bool lies_in_a_slice(std::int64_t at, const std::vector<Slice>& slices) {
  return std::any_of(slices.begin(), slices.end(), [&](const Slice& s) { return s.begin <= at && at < s.end; });
}

std::size_t expect_flows_have_two_ends(const Events& events, const Slices& slices) {
  if (!events.by_phase.contains("s")) {
    EXPECT_FALSE(events.by_phase.contains("f"));
    return 0;
  }
  std::map<std::string, const Node*> open;
  for (const Node* event : events.by_phase.at("s")) {
    EXPECT_TRUE(open.emplace(event->find("id")->text, event).second) << "an id begins twice";
  }
  const std::size_t begun = open.size();
  for (const Node* event : events.by_phase.at("f")) {
    const auto begin = open.find(event->find("id")->text);
    if (begin == open.end()) {
      ADD_FAILURE() << "a flow ends that did not begin, or ends twice";
      continue;
    }
    EXPECT_EQ(event->find("name")->text, begin->second->find("name")->text);
    EXPECT_LE(nanoseconds(*begin->second, "ts"), nanoseconds(*event, "ts"));
    EXPECT_NE(track_of(*begin->second), track_of(*event));
    for (const Node* end : {begin->second, event}) {
      EXPECT_TRUE(lies_in_a_slice(nanoseconds(*end, "ts"), slices.at(track_of(*end)))) << end->find("name")->text;
    }
    open.erase(begin);
  }
  EXPECT_TRUE(open.empty()) << open.size() << " flows have no end";
  return begun;
}

void expect_counters(const Events& events, const std::string& one_of_them) {
  std::map<std::pair<Track, std::string>, std::int64_t> last;
  std::set<std::string> names;
  for (const Node* event : events.by_phase.at("C")) {
    const std::string& name = event->find("name")->text;
    names.insert(name);
    const std::int64_t at = nanoseconds(*event, "ts");
    const auto [place, fresh] = last.try_emplace({track_of(*event), name}, at);
    EXPECT_TRUE(fresh || place->second <= at) << name;
    place->second = at;
    EXPECT_GE(std::stod(event->find("args")->entries.front().value.text), 0.0) << name;
  }
  EXPECT_TRUE(names.contains("GPU memory"));
  EXPECT_TRUE(names.contains(one_of_them));
}

/// Checks the trace of the first plan and gives the number of its flows.
std::size_t flows_of_sound_trace(const scenario::Scenario& scenario, const std::string& busy_link) {
  const results::StudyResult study = study::run(scenario, {.detail = study::Detail::trace});
  const Node root = config::parse_json(writer("trace").write(&study, {}).value(), "trace.json");
  const Events events(root);
  const Slices slices = expect_slices_in_order(events);
  expect_tracks_are_named(events, slices);
  expect_counters(events, busy_link);
  return expect_flows_have_two_ends(events, slices);
}

TEST(Perfetto, ReadsAPipeline) {
  const std::size_t flows = flows_of_sound_trace(
      study::parse({.training = "{sequence_length: 16Ki, gradient_accumulation: 4, framework: megatron-core, zero: 1}",
                    .plans = "[{pipeline: 4, tensor: 2}]"}),
      "nvlink, busiest link");
  EXPECT_GE(flows, 24U) << "three boundaries, four micro-batches, both ways";
}

TEST(Perfetto, ReadsARingWhoseRanksDiffer) {
  EXPECT_GT(flows_of_sound_trace(study::parse({.cluster = "{node: dgx-h100, gpus: 4}",
                                               .training = "{sequence_length: 64Ki}",
                                               .plans = "[{ring: 4, ring_layout: contiguous}]"}),
                                 "nvlink, busiest link"),
            0U);
}

TEST(Perfetto, ReadsPlansAcrossNodes) {
  flows_of_sound_trace(study::load_run("llama3-8b-1m-32xh100"), "nic, busiest link");
}

TEST(Perfetto, RanksThatAreAlikeAreOneTrackWithoutFlows) {
  EXPECT_EQ(flows_of_sound_trace(study::parse({.training = "{sequence_length: 64Ki}", .plans = "[{ulysses: 8}]"}),
                                 "nvlink, busiest link"),
            0U);
}

}  // namespace
}  // namespace ulysim::reports
