// Which question this answers: is the tree as a newcomer expects it (a README where there is something to explain,
// text files that end in a newline, headers that open alike), and free of one machine's paths?

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <set>

#include "tests/architecture/source_files.h"

namespace ulysim::architecture {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::array<std::string_view, 8> kTree{"sim",       "hw_models", "calibration", "reports",
                                                "scenarios", "tools",     "tests",       ".ci"};

bool is_inside(std::string_view path, std::string_view folder) {
  return path.find(folder) != std::string_view::npos;
}

// Other people's text, kept as it was, and inputs that are broken on purpose.
bool is_kept_as_it_was(std::string_view path) {
  return is_inside(path, "/corpus/") || is_inside(path, "/data/") || is_inside(path, "/cases/") ||
         is_inside(path, "scenarios/models/") || path.ends_with(".js");
}

bool is_binary(std::string_view text) {
  return text.find('\0') != std::string_view::npos;
}

TEST(Tree, AFolderWithMoreThanFourSourcesHasAReadme) {
  constexpr std::array<std::string_view, 5> kProduct{"sim", "hw_models", "calibration", "reports", "tools"};
  std::map<std::string, int> sources;
  std::set<std::string> explained;
  for (const std::string& path : files_below(kProduct)) {
    const std::string folder = path.substr(0, path.rfind('/'));
    sources[folder] += is_source(path) ? 1 : 0;
    if (path.ends_with("/README.md")) {
      explained.insert(folder);
    }
  }
  std::vector<std::string> missing;
  for (const auto& [folder, count] : sources) {
    if (count > 4 && !explained.contains(folder)) {
      missing.push_back(folder + "/README.md");
    }
  }
  EXPECT_THAT(missing, IsEmpty());
}

TEST(Tree, EveryTextFileEndsWithANewline) {
  std::vector<std::string> torn;
  for (const std::string& path : files_below(kTree)) {
    const std::string text = content_of(path);
    if (!text.empty() && !text.ends_with('\n') && !is_kept_as_it_was(path) && !is_binary(text)) {
      torn.push_back(path);
    }
  }
  EXPECT_THAT(torn, IsEmpty());
}

TEST(Tree, EveryHeaderStartsWithPragmaOnce) {
  std::vector<std::string> without;
  for (const std::string& path : files_below(kTree)) {
    if (path.ends_with(".h") && !starts_with_pragma_once(content_of(path))) {
      without.push_back(path);
    }
  }
  EXPECT_THAT(without, IsEmpty());
}

TEST(Tree, NoFileNamesAFolderOfOneMachine) {
  std::vector<std::string> found;
  for (const std::string& path : files_below(kTree)) {
    const std::string text = content_of(path);
    if (!is_kept_as_it_was(path) && !is_binary(text)) {
      const auto lines = machine_paths(path, text);
      found.insert(found.end(), lines.begin(), lines.end());
    }
  }
  EXPECT_THAT(found, IsEmpty());
}

TEST(Checks, AMachinePathIsNamedWithItsLine) {
  const std::string slash = "/";
  EXPECT_THAT(machine_paths("a.md", "fine\nsee " + slash + "home/me/x\n"),
              ElementsAre("a.md:2: names a folder of one machine"));
  EXPECT_THAT(machine_paths("a.md", "cd " + slash + "work"), ElementsAre("a.md:1: names a folder of one machine"));
}

TEST(Checks, ALinkAndALongerNameAreNoMachinePath) {
  EXPECT_THAT(machine_paths("a.md", "https://x.org/home/y\nbuild/tmp/z\n\"/workload/q\"\n</root>\n"), IsEmpty());
}

TEST(Checks, PragmaOnceMayFollowAComment) {
  EXPECT_TRUE(starts_with_pragma_once("// why\n#pragma once\n"));
  EXPECT_FALSE(starts_with_pragma_once("#include <vector>\n#pragma once\n"));
  EXPECT_FALSE(starts_with_pragma_once(""));
}

}  // namespace
}  // namespace ulysim::architecture
