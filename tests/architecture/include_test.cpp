// Which question this answers: does every #include obey the table of modules, so that reports never see the engine,
// the engine never sees a strategy, and a heavy third-party header is paid for in one place?

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "tests/architecture/include_table.h"
#include "tests/architecture/source_files.h"

namespace ulysim::architecture {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::array<std::string_view, 5> kProduct{"sim", "hw_models", "calibration", "reports", "tools"};

std::vector<std::string> product_sources() {
  std::vector<std::string> files = files_below(kProduct);
  std::erase_if(files, [](const std::string& path) { return !is_source(path); });
  return files;
}

TEST(Includes, EveryFileObeysTheTable) {
  std::vector<std::string> violations;
  for (const std::string& path : product_sources()) {
    const auto found = include_violations(path, content_of(path));
    violations.insert(violations.end(), found.begin(), found.end());
  }
  EXPECT_THAT(violations, IsEmpty());
}

TEST(Includes, TheScanSeesTheSources) {
  const std::vector<std::string> files = product_sources();
  const auto quantity = std::find(files.begin(), files.end(), "sim/base/quantity.h");
  ASSERT_NE(quantity, files.end());
  EXPECT_FALSE(includes_of(content_of(*quantity)).empty());
}

TEST(Includes, TheCommandLineParserIsInOneFile) {
  std::vector<std::string> users;
  for (const std::string& path : product_sources()) {
    const auto includes = includes_of(content_of(path));
    if (std::any_of(includes.begin(), includes.end(), [](const Include& i) { return i.target.starts_with("CLI/"); })) {
      users.push_back(path);
    }
  }
  EXPECT_LE(users.size(), 1U) << "CLI11 costs seconds in each file: " << testing::PrintToString(users);
}

TEST(IncludeTable, FloorsOnlyGoUp) {
  for (const Module& from : modules()) {
    for (const std::string_view folder : from.may_include) {
      if (folder.ends_with('*')) {
        continue;
      }
      const Module* to = module_of(std::string(folder) + "/x.h");
      ASSERT_NE(to, nullptr) << from.folder << " may include " << folder << ", which is no module";
      EXPECT_LT(to->floor, from.floor) << from.folder << " may include " << folder;
    }
  }
}

TEST(IncludeTable, AForbiddenModuleIsNamedWithFileAndLine) {
  EXPECT_THAT(include_violations("reports/table.cpp", "#pragma once\n\n#include \"hw_models/spec/gpu.h\"\n"),
              ElementsAre("reports/table.cpp:3: reports must not include hw_models/spec/gpu.h"));
  EXPECT_THAT(include_violations("sim/engine/engine.cpp", "  #  include \"sim/strategies/strategy.h\""),
              ElementsAre("sim/engine/engine.cpp:1: sim/engine must not include sim/strategies/strategy.h"));
}

TEST(IncludeTable, AnAllowedModuleTheOwnFolderAndTheStandardLibraryPass) {
  EXPECT_THAT(include_violations("sim/memory/peak.cpp",
                                 "#include \"sim/memory/peak.h\"\n#include <vector>\n"
                                 "#include <fmt/format.h>\n#include \"sim/results/timeline.h\"\n"
                                 "// #include \"sim/engine/engine.h\"\n"),
              IsEmpty());
  EXPECT_THAT(include_violations("sim/study/plan.cpp", "#include \"hw_models/cost/cost_model.h\"\n"), IsEmpty());
}

TEST(IncludeTable, ANeighbourWithTheSamePrefixIsAnotherModule) {
  EXPECT_EQ(module_of("sim/configuration/x.h"), nullptr);
  EXPECT_EQ(module_of("toolshed/x.h"), nullptr);
}

TEST(IncludeTable, ThirdPartyHeadersHaveOneHomeAndStayOutOfHeaders) {
  EXPECT_THAT(include_violations("sim/config/yaml.cpp", "#include <yaml-cpp/yaml.h>\n"), IsEmpty());
  EXPECT_THAT(
      include_violations("sim/config/yaml.h", "#include <yaml-cpp/yaml.h>\n"),
      ElementsAre("sim/config/yaml.h:1: <yaml-cpp/yaml.h> belongs into a .cpp: its users would all pay for it"));
  EXPECT_THAT(include_violations("sim/study/sweep.cpp", "#include <yaml-cpp/yaml.h>\n"),
              ElementsAre("sim/study/sweep.cpp:1: sim/study must not include <yaml-cpp/yaml.h>"));
  EXPECT_THAT(include_violations("sim/base/x.h", "#include <unistd.h>\n"),
              ElementsAre("sim/base/x.h:1: <unistd.h> belongs into a .cpp"));
}

TEST(IncludeTable, APathThatDoesNotCountFromTheRootIsRefused) {
  EXPECT_THAT(
      include_violations("sim/base/check.cpp", "#include \"check.h\"\n"),
      ElementsAre("sim/base/check.cpp:1: \"check.h\" is no path from the root; third-party headers stand in <>"));
}

TEST(IncludeTable, AFolderOutsideTheTableIsRefused) {
  EXPECT_THAT(include_violations("sim/helpers/x.cpp", ""),
              ElementsAre("sim/helpers/x.cpp:1: this folder is not in the table of modules"));
}

}  // namespace
}  // namespace ulysim::architecture
