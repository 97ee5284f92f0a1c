// Which question this answers: does everything that is written read back to the same values?

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "sim/base/check.h"
#include "sim/config/document.h"
#include "sim/config/write_json.h"
#include "sim/config/write_yaml.h"

namespace ulysim::config {
namespace {

Node word(std::string text) {
  return {.kind = Node::Kind::scalar, .text = std::move(text)};
}
Node quoted(std::string text) {
  return {.kind = Node::Kind::scalar, .text = std::move(text), .quoted = true};
}
Node list(std::vector<Node> items) {
  return {.kind = Node::Kind::sequence, .items = std::move(items)};
}
Node mapping(std::vector<Entry> entries) {
  return {.kind = Node::Kind::mapping, .entries = std::move(entries)};
}

/// A word that had to be put into quotes comes back as quoted text: it was no number or boolean before either.
void expect_same(const Node& a, const Node& b) {
  ASSERT_EQ(a.kind, b.kind);
  ASSERT_EQ(a.text, b.text);
  ASSERT_TRUE(a.quoted == b.quoted || b.quoted) << a.text;
  ASSERT_EQ(a.items.size(), b.items.size());
  for (std::size_t i = 0; i < a.items.size(); ++i) {
    expect_same(a.items[i], b.items[i]);
  }
  ASSERT_EQ(a.entries.size(), b.entries.size());
  for (std::size_t i = 0; i < a.entries.size(); ++i) {
    ASSERT_EQ(a.entries[i].key, b.entries[i].key);
    expect_same(a.entries[i].value, b.entries[i].value);
  }
}

void expect_yaml_comes_back(const Node& node) {
  const std::string text = write_yaml(node);
  SCOPED_TRACE(text);
  expect_same(node, parse_yaml(text, "written"));
}

TEST(WriteYaml, OneLineForWhatFitsIntoOne) {
  EXPECT_EQ(write_yaml(mapping({{.key = "a", .value = word("1Mi")},
                                {.key = "plans", .value = list({mapping({{.key = "ring", .value = word("8")}})})}})),
            "a: 1Mi\nplans: [{ring: 8}]\n");
}

TEST(WriteYaml, ALongListIsBrokenIntoItsItems) {
  std::vector<Node> items(40, mapping({{.key = "ulysses", .value = word("8")}}));
  const std::string text = write_yaml(mapping({{.key = "plans", .value = list(items)}}));
  EXPECT_THAT(text, testing::StartsWith("plans:\n  - {ulysses: 8}\n  - {ulysses: 8}\n"));
  expect_yaml_comes_back(mapping({{.key = "plans", .value = list(items)}}));
}

TEST(WriteYaml, QuotedTextStaysQuotedAndNumbersStayNumbers) {
  EXPECT_EQ(write_yaml(mapping({{.key = "a", .value = quoted("8")}, {.key = "b", .value = word("8")}})),
            "a: \"8\"\nb: 8\n");
  EXPECT_EQ(write_yaml(mapping({{.key = "a", .value = {}}, {.key = "b", .value = quoted("null")}})),
            "a: null\nb: \"null\"\n");
}

TEST(WriteYaml, NothingInANameIsTakenForASign) {
  for (const char* text : {"",    " ",    "-",    "- a",  "a: b", "a #b",         "#b",       "&a",
                           "*a",  "!a",   "%a",   "@a",   "`a",   "\"a\"",        "'a'",      "{a}",
                           "[a]", "a, b", "---",  "...",  "? a",  "| a",          "> a",      "<<",
                           "~",   "null", "a\nb", "a\tb", "\\",   "\xE2\x80\xA8", "\xC3\xA9", "k\xC3\xB6nig: 8"}) {
    expect_yaml_comes_back(
        mapping({{.key = "name", .value = quoted(text)}, {.key = "names", .value = list({quoted(text)})}}));
  }
}

TEST(WriteYaml, AnyTreeComesBack) {
  std::mt19937 random(20261130);
  const auto below = [&](std::size_t bound) { return std::size_t{random()} % bound; };
  const std::string signs = "ab1 :,#-?&*!|>'\"%@[]{}\\~.\t\xC3\xA9";
  const auto text = [&] {
    std::string out;
    for (std::size_t i = below(12); i > 0; --i) {
      const std::size_t at = below(signs.size() - 1);
      out += static_cast<unsigned char>(signs[at]) >= 0x80 ? std::string("\xC3\xA9") : std::string(1, signs[at]);
    }
    return out;
  };
  const auto tree = [&](const auto& self, int depth) -> Node {
    const std::size_t kind = depth == 0 ? 0 : below(3);
    if (kind == 0) {
      return below(8) == 0 ? Node{} : quoted(text());
    }
    Node node = kind == 1 ? list({}) : mapping({});
    for (std::size_t i = below(5); i > 0; --i) {
      if (kind == 1) {
        node.items.push_back(self(self, depth - 1));
      } else {
        node.entries.push_back({.key = std::to_string(i) + text(), .value = self(self, depth - 1)});
      }
    }
    return node;
  };
  for (int i = 0; i < 300; ++i) {
    expect_yaml_comes_back(tree(tree, 5));
  }
}

TEST(WriteJson, LaysOutForPeopleAndForMachines) {
  const Json value = Json::object({{"a", 1},
                                   {"b", std::vector<double>{0.5, 2.0}},
                                   {"c", Json::object()},
                                   {"d", std::optional<double>()},
                                   {"e", true},
                                   {"f", "x\"y"}});
  EXPECT_EQ(write_json(value, JsonLayout::compact), R"({"a":1,"b":[0.5,2.0],"c":{},"d":null,"e":true,"f":"x\"y"})");
  EXPECT_EQ(
      write_json(Json::object({{"a", Json::array()}, {"b", std::vector<std::string>{"x"}}}), JsonLayout::indented),
      "{\n  \"a\": [],\n  \"b\": [\n    \"x\"\n  ]\n}");
}

TEST(WriteJson, AMemberThatIsSetAgainKeepsItsPlace) {
  Json value = Json::object({{"a", 1}, {"b", 2}});
  value["a"] = 3;
  value["c"] = 4;
  EXPECT_EQ(write_json(value, JsonLayout::compact), R"({"a":3,"b":2,"c":4})");
}

TEST(WriteJson, WhatIsNotANumberIsOurBug) {
  EXPECT_THROW(Json(std::numeric_limits<double>::infinity()), InternalError);
  EXPECT_THROW(Json(std::numeric_limits<double>::quiet_NaN()), InternalError);
}

}  // namespace
}  // namespace ulysim::config
