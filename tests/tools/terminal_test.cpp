// Which question this answers: is the program at home on a terminal: width, colour, progress, and none of it elsewhere?

#include "tests/tools/terminal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reports/text.h"
#include "tests/support/passes.h"
#include "tests/tools/program.h"

namespace ulysim::tools {
namespace {

using testing::HasSubstr;
using testing::Not;
using tests::need_pass;

const std::string kSmall =
    "scenario: small\nmodel: llama-3.1-8b\ncluster: {node: dgx-h100}\ntraining: {sequence_length: 16Ki}\n"
    "plans: [{ulysses: 8}, {ring: 8}]\n";
// Some seconds on one thread: rings of 32 take half a second each.
const std::string kSlow =
    "base: {model: llama-3.1-8b, cluster: {node: dgx-h100, nodes: 4}}\n"
    "axes: {training.sequence_length: {from: 1Mi, to: 6Mi, step: 1Mi}}\nplans: [{ring: all}]\n";

std::pair<int, std::string> shown(unsigned short columns, const std::vector<std::string>& arguments,
                                  const std::vector<std::string>& environment = {"TERM=xterm", "LC_ALL=C.UTF-8"}) {
  return on_terminal(columns, [&] { Sandbox::become(arguments, environment); });
}

std::string without_colour(std::string text) {
  for (std::size_t at = text.find('\x1b'); at != std::string::npos; at = text.find('\x1b', at)) {
    text.erase(at, text.find('m', at) - at + 1);
  }
  return text;
}

TEST(Terminal, ColourIsForTerminalsThatWantIt) {
  const Sandbox sandbox;
  const std::string file = sandbox.write("s.yaml", kSmall);
  EXPECT_THAT(shown(80, {"compare", file}).second, HasSubstr("\x1b["));
  EXPECT_THAT(shown(80, {"compare", file}, {"TERM=xterm", "NO_COLOR=1"}).second, Not(HasSubstr("\x1b")));
  EXPECT_THAT(shown(80, {"compare", file}, {"TERM=dumb"}).second, Not(HasSubstr("\x1b")));
  EXPECT_THAT(shown(80, {"compare", file, "--no-color"}).second, Not(HasSubstr("\x1b")));
  EXPECT_THAT(sandbox.run({"compare", file}, {"TERM=xterm"}).out, Not(HasSubstr("\x1b")));
}

TEST(Terminal, TextFitsItsWidth) {
  const Sandbox sandbox;
  const std::string file = sandbox.write("s.yaml", kSmall);
  for (const unsigned short columns : std::initializer_list<unsigned short>{40, 60, 80, 120}) {
    for (const std::vector<std::string>& arguments :
         {std::vector<std::string>{"compare", file}, {"run", file}, {"model", "llama-3.1-8b"}, {"list", "nodes"}}) {
      const auto [status, text] = shown(columns, arguments);
      std::stringstream lines(without_colour(text));
      for (std::string line; std::getline(lines, line);) {
        line.erase(line.find_last_not_of('\r') + 1);
        EXPECT_LE(reports::display_width(line), columns) << arguments[0] << ": " << line;
      }
    }
  }
}

TEST(Terminal, WhatIsPipedIsAsWideAsColumnsSays) {
  const Sandbox sandbox;
  const std::string file = sandbox.write("s.yaml", kSmall);
  const auto widest = [&](const std::string& columns) {
    std::size_t most = 0;
    std::stringstream lines(sandbox.run({"compare", file}, {"LC_ALL=C.UTF-8", "COLUMNS=" + columns}).out);
    for (std::string line; std::getline(lines, line);) {
      most = std::max(most, reports::display_width(line));
    }
    return most;
  };
  EXPECT_LE(widest("60"), 60U);
  EXPECT_GT(widest("400"), 80U);
  for (const char* nonsense : {"", "0", "-5", "12x", "99999999999999999999999"}) {
    EXPECT_LE(widest(nonsense), 80U) << nonsense;
  }
}

TEST(Terminal, SignsFollowTheLocale) {
  const Sandbox sandbox;
  const std::string file = sandbox.write("s.yaml", kSmall);
  EXPECT_THAT(shown(80, {"run", file}).second, HasSubstr("█"));
  for (const char c : shown(80, {"run", file}, {"TERM=xterm", "LC_ALL=C", "LANG=C"}).second) {
    ASSERT_LT(static_cast<unsigned char>(c), 0x80);
  }
}

TEST(Terminal, ProgressIsShownAfterASecondAndErased) {
  need_pass("ring");
  const Sandbox sandbox;
  const std::string file = sandbox.write("slow.yaml", kSlow);
  const auto [status, text] = shown(60, {"sweep", file, "--jobs", "1"});
  EXPECT_EQ(status, 0) << text;
  const std::size_t last = text.rfind(" of 6 points (");
  ASSERT_NE(last, std::string::npos) << text;
  const std::size_t result = text.find("slow: 6 points");
  ASSERT_NE(result, std::string::npos);
  EXPECT_LT(last, result);
  EXPECT_EQ(text.substr(text.rfind('\r', result - 1), result - text.rfind('\r', result - 1)), "\r\x1b[K")
      << "nothing of it stands before the result";
}

TEST(Terminal, ProgressIsNotForFilesNorForTheQuiet) {
  need_pass("ring");
  const Sandbox sandbox;
  const std::string file = sandbox.write("slow.yaml", kSlow);
  EXPECT_EQ(sandbox.run({"sweep", file, "--jobs", "1"}).err, "");
  EXPECT_EQ(shown(80, {"sweep", file, "--jobs", "1", "--quiet"}).second, "");
}

}  // namespace
}  // namespace ulysim::tools
