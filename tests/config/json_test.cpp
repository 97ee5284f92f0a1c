#include <gtest/gtest.h>

#include <string>

#include "sim/config/document.h"
#include "tests/config/refusal.h"

namespace ulysim::config {
namespace {

std::string json_refusal(const std::string& text) {
  return refusal([&] { return parse_json(text, "f.json"); });
}

TEST(Json, NumbersStayTextAsWritten) {
  const Node node = parse_json("{\n  \"a\": 1.50,\n  \"b\": [true, null, -3e2, 18446744073709551616]\n}", "f.json");
  const Node* a = node.find("a");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->text, "1.50");
  EXPECT_FALSE(a->quoted);
  EXPECT_EQ(a->where.line, 2);
  EXPECT_EQ(a->where.column, 8);
  EXPECT_EQ(node.entries[0].where.column, 3);
  const Node* b = node.find("b");
  ASSERT_EQ(b->items.size(), 4U);
  EXPECT_EQ(b->items[0].text, "true");
  EXPECT_EQ(b->items[1].kind, Node::Kind::null);
  EXPECT_EQ(b->items[1].where.column, 15);
  EXPECT_EQ(b->items[2].text, "-3e2");
  EXPECT_EQ(b->items[3].text, "18446744073709551616");
}

TEST(Json, StringsAreUnescapedAndTheirPlacesSurviveEscapes) {
  const Node node = parse_json(R"({"q\"\\": "a\n\u00e4", "next": 1})", "f.json");
  EXPECT_EQ(node.entries[0].key, "q\"\\");
  EXPECT_EQ(node.entries[0].value.text, "a\n\xC3\xA4");
  EXPECT_TRUE(node.entries[0].value.quoted);
  EXPECT_EQ(node.entries[1].where.column, 24);
  EXPECT_EQ(node.entries[1].value.where.column, 32);
}

TEST(Json, AllDuplicatesAreTold) {
  EXPECT_EQ(json_refusal("{\"a\": 1, \"a\": 2,\n \"b\": {\"a\": 1, \"c\": 1, \"c\": 2}}"),
            "f.json:1:10: error: duplicate key 'a' (first on line 1)\n"
            "f.json:2:24: error: duplicate key 'c' (first on line 2)");
}

TEST(Json, SyntaxErrorsAreLocated) {
  EXPECT_EQ(json_refusal("{\"a\": 1,}"),
            "f.json:1:9: error: syntax error while parsing object key - unexpected '}'; expected string literal");
  EXPECT_EQ(json_refusal("[\n\n  x]"), "f.json:3:3: error: syntax error while parsing value - invalid literal");
  EXPECT_EQ(json_refusal("{\"a\": 1"),
            "f.json:1:8: error: syntax error while parsing object - unexpected end of input; expected '}'");
  EXPECT_EQ(json_refusal("[1] [2]"),
            "f.json:1:5: error: syntax error while parsing value - unexpected '['; expected end of input");
  EXPECT_EQ(json_refusal("[NaN]"), "f.json:1:2: error: syntax error while parsing value - invalid literal");
  EXPECT_EQ(json_refusal(""),
            "f.json:1:1: error: syntax error while parsing value - unexpected end of input; expected '[', '{', or a "
            "literal");
  EXPECT_EQ(json_refusal("[1e999]"), "f.json:1:6: error: syntax error: number overflow parsing '1e999'");
}

TEST(Json, AnEndlessStringIsNotRepeatedInTheMessage) {
  const std::string message = json_refusal("[\"" + std::string(1'000'000, 'x'));
  EXPECT_LT(message.size(), 250U) << message.substr(0, 250);
}

TEST(Json, DepthIsBounded) {
  EXPECT_EQ(json_refusal(repeated("[", 64) + repeated("]", 64)), "accepted");
  EXPECT_EQ(json_refusal(repeated("[", 65) + repeated("]", 65)), "f.json:1:65: error: nested deeper than 64 levels");
  EXPECT_EQ(json_refusal(repeated("{\"a\":", 100'000)), "f.json:1:321: error: nested deeper than 64 levels");
}

TEST(Json, BytesThatAreNoTextAreRefused) {
  EXPECT_EQ(json_refusal("[\"\xFF\"]"), "f.json:1:3: error: byte 0xFF is not UTF-8");
}

TEST(Json, MoreThanYamlsNodesAreReadButNotWithoutEnd) {
  EXPECT_EQ(json_refusal("[0" + repeated(",0", 200'000) + "]"), "accepted");
  // one node for the array, so the millionth element is one too many: "[" and 999,999 times "0,"
  EXPECT_EQ(json_refusal("[0" + repeated(",0", 1'000'000) + "]"), "f.json:1:2000000: error: more than 1000000 nodes");
}

}  // namespace
}  // namespace ulysim::config
