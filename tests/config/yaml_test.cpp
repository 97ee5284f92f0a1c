#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "sim/config/document.h"
#include "tests/config/refusal.h"

namespace ulysim::config {
namespace {

std::string yaml_refusal(const std::string& text) {
  return refusal([&] { return parse_yaml(text, "f.yaml"); });
}

TEST(Yaml, ScalarsStayTextWithTheirMark) {
  const Node node = parse_yaml("a: 0x10\nlist: [yes, 'no', \"3\"]\n", "f.yaml");
  ASSERT_EQ(node.kind, Node::Kind::mapping);
  const Node* a = node.find("a");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->text, "0x10") << "never a number by itself";
  EXPECT_FALSE(a->quoted);
  EXPECT_EQ(a->where.file, "f.yaml");
  EXPECT_EQ(a->where.line, 1);
  EXPECT_EQ(a->where.column, 4);
  const Node* list = node.find("list");
  ASSERT_NE(list, nullptr);
  ASSERT_EQ(list->items.size(), 3U);
  EXPECT_FALSE(list->items[0].quoted);
  EXPECT_TRUE(list->items[1].quoted);
  EXPECT_EQ(list->items[2].text, "3");
  EXPECT_TRUE(list->items[2].quoted);
  EXPECT_EQ(list->items[2].where.column, 19);
  EXPECT_EQ(node.entries[1].where.line, 2);
  EXPECT_EQ(node.entries[1].where.column, 1);
}

TEST(Yaml, NothingTildeAndNullAreNull) {
  const Node node = parse_yaml("a:\nb: ~\nc: null\nd: 'null'\n", "f.yaml");
  EXPECT_EQ(node.find("a")->kind, Node::Kind::null);
  EXPECT_EQ(node.find("a")->where.line, 1) << "an empty value stands where its key does";
  EXPECT_EQ(node.find("b")->kind, Node::Kind::null);
  EXPECT_EQ(node.find("c")->kind, Node::Kind::null);
  EXPECT_EQ(node.find("d")->kind, Node::Kind::scalar);
  EXPECT_EQ(node.find("e"), nullptr);
}

TEST(Yaml, AnEmptyFileIsNull) {
  EXPECT_EQ(parse_yaml("", "f.yaml").kind, Node::Kind::null);
  EXPECT_EQ(parse_yaml("# a comment only\n", "f.yaml").kind, Node::Kind::null);
}

TEST(Yaml, AByteOrderMarkAndWindowsLinesAreRead) {
  const Node node = parse_yaml(
      "\xEF\xBB\xBF"
      "a: 1\r\nb: 2\r\n",
      "f.yaml");
  EXPECT_EQ(node.find("a")->text, "1");
  EXPECT_EQ(node.find("b")->text, "2");
}

TEST(Yaml, AnAliasIsACopyWithTheOriginalsPlace) {
  const Node node = parse_yaml("a: &x {k: v}\nb: *x\n", "f.yaml");
  EXPECT_EQ(node.find("b")->find("k")->text, "v");
  EXPECT_EQ(node.find("b")->where.line, 1);
}

TEST(Yaml, MistakesThatLeaveTheStructureReadableAreAllTold) {
  EXPECT_EQ(yaml_refusal("a: 1\na: 2\nb: !!int 3\nc: ! 5\nd: &q !x {}\n<<: {a: 1}\n? [e]\n: f\n~: g\n"),
            "f.yaml:2:1: error: duplicate key 'a' (first on line 1)\n"
            "f.yaml:3:4: error: tags ('!') are not supported\n"
            "f.yaml:4:4: error: tags ('!') are not supported\n"
            "f.yaml:5:4: error: tags ('!') are not supported\n"
            "f.yaml:6:1: error: merge key '<<' is not supported; write the keys out\n"
            "f.yaml:7:3: error: a key must be a word, not a sequence\n"
            "f.yaml:9:1: error: a key must be a word, not nothing");
}

TEST(Yaml, SyntaxErrorsEndAtOnceAndKeepWhatWasFoundBefore) {
  EXPECT_EQ(yaml_refusal("a: 1\na: 2\nb: c: d\n"),
            "f.yaml:2:1: error: duplicate key 'a' (first on line 1)\n"
            "f.yaml:3:5: error: syntax error: illegal map value");
  EXPECT_EQ(yaml_refusal("a: *nobody\n"), "f.yaml:1:4: error: syntax error: the referenced anchor is not defined");
  EXPECT_EQ(yaml_refusal("[1, 2"), "f.yaml:1:1: error: syntax error: end of sequence flow not found");
}

TEST(Yaml, AKeyIsTheSameQuotedOrNot) {
  EXPECT_EQ(yaml_refusal("a: 1\n'a': 2\n"), "f.yaml:2:1: error: duplicate key 'a' (first on line 1)");
}

TEST(Yaml, ASecondDocumentIsRefused) {
  EXPECT_EQ(yaml_refusal("a: 1\n---\nb: 2\n"), "f.yaml:2:1: error: a second document; a file holds one");
  EXPECT_EQ(yaml_refusal("---\na: 1\n...\n"), "accepted") << "one document with both marks";
}

TEST(Yaml, BytesThatAreNoTextAreRefused) {
  EXPECT_EQ(yaml_refusal("a: 1\nb: \xFF\n"), "f.yaml:2:4: error: byte 0xFF is not UTF-8");
  EXPECT_EQ(yaml_refusal("a: \xC0\xAF"), "f.yaml:1:4: error: byte 0xC0 is not UTF-8") << "overlong slash";
  EXPECT_EQ(yaml_refusal("a: \xED\xA0\x80"), "f.yaml:1:4: error: byte 0xED is not UTF-8") << "surrogate";
  EXPECT_EQ(yaml_refusal("a: \xF4\x90\x80\x80"), "f.yaml:1:4: error: byte 0xF4 is not UTF-8") << "above U+10FFFF";
  EXPECT_EQ(yaml_refusal("a: \xE2\x82"), "f.yaml:1:4: error: byte 0xE2 is not UTF-8") << "cut off at the end";
  EXPECT_EQ(yaml_refusal("a: \xE2\x82\xAC \xF0\x9F\x98\x80"), "accepted");
  EXPECT_EQ(yaml_refusal("a: \x04"), "f.yaml:1:4: error: control character 0x04");
  EXPECT_EQ(yaml_refusal(std::string("a\0b", 3)), "f.yaml:1:2: error: control character 0x00");
}

TEST(Yaml, SixtyFourLevelsAreReadAndSixtyFiveAreNot) {
  EXPECT_EQ(yaml_refusal(repeated("[", 64) + repeated("]", 64)), "accepted");
  EXPECT_EQ(yaml_refusal(repeated("[", 65) + repeated("]", 65)), "f.yaml:1:65: error: nested deeper than 64 levels");
}

TEST(Yaml, BottomlessNestingIsRefusedAndNeverACrash) {
  // Unclosed brackets look like keys to yaml-cpp (a mapping around each), hence the column.
  EXPECT_EQ(yaml_refusal(repeated("[", 100'000)), "f.yaml:1:33: error: nested deeper than 64 levels");
  EXPECT_EQ(yaml_refusal(repeated("- ", 100'000)), "f.yaml:1:129: error: nested deeper than 64 levels");
  EXPECT_EQ(yaml_refusal(repeated("? ", 100'000)), "f.yaml:1:129: error: nested deeper than 64 levels");
}

TEST(Yaml, AHundredThousandNodesAreReadAndOneMoreIsNot) {
  // the sequence itself is a node, so 99,999 items fill the limit
  EXPECT_EQ(yaml_refusal(repeated("- a\n", 99'999)), "accepted");
  EXPECT_EQ(yaml_refusal(repeated("- a\n", 100'000)), "f.yaml:100000:3: error: more than 100000 nodes");
}

TEST(Yaml, ABombIsRefusedWithoutBeingExpanded) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i <= 60; ++i) {  // 9^61 nodes when expanded: no machine would come back
    bomb += fmt::format("a{}: &a{} [*a{}, *a{}, *a{}, *a{}, *a{}, *a{}, *a{}, *a{}, *a{}]\n", i, i, i - 1, i - 1, i - 1,
                        i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
  }
  const std::string message = yaml_refusal(bomb);
  EXPECT_TRUE(message.ends_with("error: more than 100000 nodes after alias expansion")) << message;
}

TEST(Yaml, AliasesNeitherNestTooDeepNorStandInsideThemselves) {
  std::string ladder = "a0: &a0 [x]\n";  // a_i is i + 2 levels high, and the mapping around it is one more
  for (int i = 1; i <= 100; ++i) {
    ladder += fmt::format("a{}: &a{} [*a{}]\n", i, i, i - 1);
  }
  EXPECT_EQ(yaml_refusal(ladder), "f.yaml:63:12: error: nested deeper than 64 levels after alias expansion");
  EXPECT_EQ(yaml_refusal("a: &x [*x]\n"), "f.yaml:1:8: error: the alias stands inside what it names");
}

TEST(Yaml, MillionsOfMarksAreRefusedBeforeTheParserQueuesThem) {
  EXPECT_EQ(yaml_refusal(repeated("[", 2'000'001)), "f.yaml:1:2000001: error: more than 100000 nodes");
}

}  // namespace
}  // namespace ulysim::config
