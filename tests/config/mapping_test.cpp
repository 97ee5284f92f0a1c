#include "sim/config/mapping.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tests/config/refusal.h"

namespace ulysim::config {
namespace {

/// A document with its collector; what was said so far is `told()`.
struct Reading {
  explicit Reading(const std::string& text) : node(parse_yaml(text, "f.yaml")) {}
  [[nodiscard]] Mapping at(std::string_view key) { return {*node.find(key), std::string(key), diagnostics}; }
  [[nodiscard]] std::string told() const {
    return diagnostics.empty() ? std::string() : std::string(InputError(diagnostics.list()).what());
  }

  Node node;
  Diagnostics diagnostics{};
};

TEST(Mapping, ReadsEveryTypeByOurGrammar) {
  Reading reading(
      "gpu: {name: h100, sms: 132, on: true, share: 0.85, memory: 80GiB, hbm: 3.35TB/s, peak: 989TFLOP/s, "
      "launch: 1.2us}\n");
  Mapping gpu = reading.at("gpu");
  EXPECT_EQ(gpu.required<std::string>("name"), "h100");
  EXPECT_EQ(gpu.required<std::int64_t>("sms"), 132);
  EXPECT_TRUE(gpu.required<bool>("on"));
  EXPECT_EQ(gpu.required<double>("share"), 0.85);
  EXPECT_EQ(gpu.required<Bytes>("memory"), Bytes(85'899'345'920));
  EXPECT_EQ(gpu.required<Bandwidth>("hbm"), Bandwidth(3.35e12));
  EXPECT_EQ(gpu.required<FlopRate>("peak"), FlopRate(989e12));
  EXPECT_EQ(gpu.required<Duration>("launch"), Duration(1'200'000));
  gpu.finish();
  EXPECT_EQ(reading.told(), "");
}

TEST(Mapping, TellsEveryMistakeAtItsPlace) {
  Reading reading(
      "gpu:\n"
      "  memmory_bandwidth: 3TB/s\n"
      "  sms: lots\n"
      "  memory: 80\n"
      "  on: yes\n"
      "  count: \"5\"\n"
      "  share: [1]\n"
      "  name: {}\n");
  Mapping gpu = reading.at("gpu");
  EXPECT_EQ(gpu.required<Bandwidth>("memory_bandwidth"), Bandwidth(0.0));
  EXPECT_EQ(gpu.optional<std::int64_t>("sms", 7), 7) << "the fallback stands in for what cannot be read";
  EXPECT_EQ(gpu.required<Bytes>("memory"), Bytes(0));
  EXPECT_TRUE(gpu.optional<bool>("on", true));
  EXPECT_EQ(gpu.maybe<std::int64_t>("count"), std::nullopt);
  EXPECT_EQ(gpu.maybe<double>("share"), std::nullopt);
  EXPECT_EQ(gpu.required<std::string>("name"), "");
  gpu.finish();
  EXPECT_EQ(reading.told(),
            "f.yaml:2:3: error: missing key 'gpu.memory_bandwidth'\n"
            "f.yaml:2:3: error: unknown key 'gpu.memmory_bandwidth'; did you mean 'memory_bandwidth'?\n"
            "f.yaml:3:8: error: 'gpu.sms': cannot read 'lots' as a count (like 1048576 or 1Mi)\n"
            "f.yaml:4:11: error: 'gpu.memory': cannot read '80' as bytes (like 80GiB): a unit is needed\n"
            "f.yaml:5:7: error: 'gpu.on': cannot read 'yes' as true or false\n"
            "f.yaml:6:10: error: 'gpu.count': expected a count (like 1048576 or 1Mi), found quoted text\n"
            "f.yaml:7:10: error: 'gpu.share': expected a number (like 0.85), found a sequence\n"
            "f.yaml:8:9: error: 'gpu.name': expected text, found a mapping");
}

TEST(Mapping, QuotedTextIsNeverTrueButAUnitMayBeQuoted) {
  Reading reading("t: {flag: 'true', memory: '80GiB', word: '5'}\n");
  Mapping mapping = reading.at("t");
  EXPECT_FALSE(mapping.optional<bool>("flag", false));
  EXPECT_EQ(mapping.required<Bytes>("memory"), Bytes(85'899'345'920));
  EXPECT_EQ(mapping.required<std::string>("word"), "5");
  EXPECT_EQ(reading.told(), "f.yaml:1:11: error: 't.flag': expected true or false, found quoted text");
}

TEST(Mapping, AbsentAndNullFallBackInSilence) {
  Reading reading("t: {b: ~}\n");
  Mapping mapping = reading.at("t");
  EXPECT_EQ(mapping.optional<std::int64_t>("a", 4), 4);
  EXPECT_EQ(mapping.optional<std::int64_t>("b", 5), 5);
  EXPECT_EQ(mapping.maybe<std::string>("b"), std::nullopt);
  EXPECT_EQ(mapping.find("b"), nullptr);
  EXPECT_TRUE(mapping.items("b").empty());
  mapping.finish();
  EXPECT_EQ(reading.told(), "");
}

TEST(Mapping, ARequiredKeyWithoutValueIsMissedAtItsPlace) {
  Reading reading("t:\n  a: 1\n  b:\n");
  EXPECT_EQ(reading.at("t").required<std::int64_t>("b"), 0);
  EXPECT_EQ(reading.told(), "f.yaml:3:3: error: missing value of 't.b'");
}

TEST(Mapping, AtTheTopKeysHaveNoPath) {
  Reading reading("a: x\nzebra: 1\n");
  Mapping mapping(reading.node, "", reading.diagnostics);
  static_cast<void>(mapping.required<std::int64_t>("a"));
  mapping.finish();
  EXPECT_EQ(reading.told(),
            "f.yaml:1:4: error: 'a': cannot read 'x' as a count (like 1048576 or 1Mi)\n"
            "f.yaml:2:1: error: unknown key 'zebra'; known: a");
}

TEST(Mapping, AWrongKindIsToldOnceAndReadsAsEmpty) {
  Reading reading("a: [1]\nb: word\nc:\n");
  Mapping sequence = reading.at("a");
  EXPECT_EQ(sequence.required<std::int64_t>("x"), 0);
  sequence.finish();
  Mapping word = reading.at("b");
  EXPECT_EQ(word.optional<std::int64_t>("x", 3), 3);
  Mapping nothing = reading.at("c");
  EXPECT_EQ(nothing.optional<std::int64_t>("x", 3), 3) << "nothing is an empty mapping";
  nothing.finish();
  EXPECT_EQ(reading.told(),
            "f.yaml:1:4: error: 'a': expected a mapping, found a sequence\n"
            "f.yaml:2:4: error: 'b': expected a mapping, found a word");
}

TEST(Mapping, AChoiceIsOneOfItsNames) {
  const std::vector<std::string> layouts{"zigzag", "contiguous", "striped"};
  Reading reading("p: {a: striped, b: zigzagg}\n");
  Mapping plan = reading.at("p");
  EXPECT_EQ(plan.choice("a", layouts, 0), 2U);
  EXPECT_EQ(plan.choice("b", layouts, 1), 1U);
  EXPECT_EQ(plan.choice("c", layouts, 1), 1U);
  EXPECT_EQ(reading.told(), "f.yaml:1:20: error: 'p.b': unknown value 'zigzagg'; did you mean 'zigzag'?");
}

TEST(Mapping, AnIntegerIsHeldToBothBounds) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  Reading reading("p: {a: 1, b: 8, c: 0, d: 9, e: 0}\n");
  Mapping plan = reading.at("p");
  EXPECT_EQ(plan.integer("a", 5, 1, 8), 1);
  EXPECT_EQ(plan.integer("b", 5, 1, 8), 8);
  EXPECT_EQ(plan.integer("c", 5, 1, 8), 5);
  EXPECT_EQ(plan.integer("d", 5, 1, 8), 5);
  EXPECT_EQ(plan.integer("e", 5, 1, kMost), 5);
  EXPECT_EQ(reading.told(),
            "f.yaml:1:20: error: 'p.c': 0 is outside 1 to 8\n"
            "f.yaml:1:26: error: 'p.d': 9 is outside 1 to 8\n"
            "f.yaml:1:32: error: 'p.e': 0 is below 1");
}

TEST(Mapping, ItemsAreThoseOfASequence) {
  Reading reading("p: {a: [x, y], b: z}\n");
  Mapping plan = reading.at("p");
  ASSERT_EQ(plan.items("a").size(), 2U);
  EXPECT_EQ(plan.items("a")[1]->text, "y");
  EXPECT_TRUE(plan.items("b").empty());
  EXPECT_EQ(reading.told(), "f.yaml:1:19: error: 'p.b': expected a sequence, found a word");
}

TEST(Mapping, OwnMistakesStandAtTheKeyOrAtTheMapping) {
  Reading reading("p:\n  a: 1\n");
  Mapping plan = reading.at("p");
  plan.error("a", "odd");
  plan.error("b", "absent");
  plan.error(*plan.find("a"), "as given");
  EXPECT_EQ(reading.told(),
            "f.yaml:2:3: error: 'p.b': absent\n"
            "f.yaml:2:6: error: 'p.a': odd\n"
            "f.yaml:2:6: error: as given");
}

TEST(Mapping, AnIgnoredKeyIsNotUnknown) {
  Reading reading("p: {a: {x: 1}}\n");
  Mapping plan = reading.at("p");
  plan.ignore("a");
  plan.finish();
  EXPECT_EQ(reading.told(), "");
}

}  // namespace
}  // namespace ulysim::config
