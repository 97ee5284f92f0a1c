// Which question this answers: does the program keep its contract with the shell: exit status, streams, files?

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "reports/html.h"
#include "sim/config/document.h"
#include "tests/tools/program.h"

namespace ulysim::tools {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;

const std::string kSmall =
    "scenario: small\nmodel: llama-3.1-8b\ncluster: {node: dgx-h100}\n"
    "training: {sequence_length: 16Ki, zero: 3}\n"
    "plans: [{ulysses: 8}, {ring: 8}]\n";
// Nothing this long fits eight GPUs without offload and tiling.
const std::string kTooLong =
    "scenario: long\nmodel: llama-3.1-8b\ncluster: {node: dgx-h100}\n"
    "training: {sequence_length: 8Mi, recompute: none}\nplans: [{ulysses: 8}]\n";

TEST(Help, EveryCommandHasExamples) {
  const Sandbox sandbox;
  for (const char* command : {"run", "compare", "maxseq", "sweep", "validate", "calibrate", "report", "model",
                              "explain", "list", "check", "completion"}) {
    const Outcome outcome = sandbox.run({command, "--help"});
    EXPECT_EQ(outcome.status, 0) << command;
    EXPECT_THAT(outcome.out, HasSubstr(std::string("Usage: ulysim ") + command)) << command;
    const std::size_t examples = outcome.out.find("\nExamples:\n");
    ASSERT_NE(examples, std::string::npos) << command;
    EXPECT_THAT(outcome.out.substr(examples), HasSubstr(std::string("  ulysim ") + command)) << command;
    EXPECT_EQ(outcome.err, "") << command;
  }
}

TEST(Calibrate, ABackendThatWasNotBuiltIsASentence) {
  const Sandbox sandbox;
  const Outcome outcome = sandbox.run({"calibrate", "run", "--backend", "abacus"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.err, "ulysim: there is no ulysim-calibrate-abacus beside this program: it was not built here\n");
}

TEST(Usage, WhatMakesNoSenseIsASentenceAndStatus2) {
  const Sandbox sandbox;
  const std::string file = sandbox.write("s.yaml", kSmall);
  const std::vector<std::vector<std::string>> wrong{
      {},
      {"frobnicate"},
      {"compare"},
      {"compare", "--frob", file},
      {"compare", file, file},
      {"compare", file, "--model", "llama-3.1-8b"},
      {"compare", file, "--json", "-", "--csv", "-"},
      {"compare", file, "--json", ""},
      {"compare", file, "--set", "nothing"},
      {"compare", sandbox.folder() / "missing.yaml"},
      {"list", "nonsense"},
      {"report"},
      {"explain", file, "--stage", "dream"},
      {"explain", file, "--plan", "ulysses=9"},
      {"calibrate", "fit"},
      {"calibrate", "show", "h1000"},
      {"calibrate", "fit", "mine", "--samples", "no-such-file.csv"},
      {"model", "llama-9"},
      {"compare", "--model", "llama-3.1-8b", "--node", "dgx-h100", "--seq", "many"},
      {"compare", "--model", "llama-3.1-8b", "--node", "dgx-h100", "--seq", "256Mi", "--plan",
       "ulysses=8"},  // 106 days
  };
  for (const auto& arguments : wrong) {
    const Outcome outcome = sandbox.run(arguments);
    const std::string shown = testing::PrintToString(arguments);
    EXPECT_EQ(outcome.status, 2) << shown << outcome.err;
    EXPECT_NE(outcome.err, "") << shown;
    EXPECT_EQ(outcome.out, "") << shown;
  }
}

TEST(Usage, AMisspeltCommandIsRecognised) {
  const Sandbox sandbox;
  EXPECT_EQ(sandbox.run({"compar"}).err, "ulysim: unknown command 'compar'; did you mean 'compare'?\n");
}

TEST(Check, PrintsEveryMistakeOrOk) {
  const Sandbox sandbox;
  const std::string good = sandbox.write("good.yaml", kSmall);
  const std::string bad = sandbox.write("bad.yaml", "modle: x\nplans: 3\n");
  EXPECT_EQ(sandbox.run({"check", good}).out, good + ": ok\n");
  const Outcome outcome = sandbox.run({"check", good, bad});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.out, good + ": ok\n");
  EXPECT_THAT(outcome.err, HasSubstr(bad + ":1:1: error: unknown key 'modle'"));
  EXPECT_THAT(outcome.err, HasSubstr(bad + ":2:8: error: 'plans': expected a sequence"));
}

TEST(Check, KnowsASweepByItsAxes) {
  const Sandbox sandbox;
  const std::string sweep = sandbox.write("sweep.yaml", "base: s.yaml\naxes: {training.zero: [1, 7]}\n");
  (void)sandbox.write("s.yaml", kSmall);
  const Outcome outcome = sandbox.run({"check", sweep});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, HasSubstr(sweep + ":2:27: error: 'training.zero': 7 is outside 0 to 3"));
}

TEST(Compare, GivesTheContractsJsonOnStandardOutputAndNothingElse) {
  const Sandbox sandbox;
  const Outcome outcome = sandbox.run({"compare", sandbox.write("s.yaml", kSmall), "--json", "-"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith("{\n  \"format\": \"ulysim-result\",\n  \"version\": 1,\n"));
  const config::Node root = config::parse_json(outcome.out, "result");
  ASSERT_EQ(root.find("plans")->items.size(), 2U);
  for (const config::Node& plan : root.find("plans")->items) {
    for (const char* key : {"name",
                            "feasible",
                            "fits",
                            "fit",
                            "reasons",
                            "step_time_s",
                            "tokens_per_s_per_gpu",
                            "mfu",
                            "model_tflops_per_gpu",
                            "hardware_tflops_per_gpu",
                            "peak_gpu_memory_gib",
                            "peak_gpu_allocated_gib",
                            "peak_gpu_reserved_gib",
                            "gpu_memory_capacity_gib",
                            "peak_host_memory_gib_per_node",
                            "memory",
                            "communication",
                            "communication_by_purpose",
                            "breakdown",
                            "bottleneck"}) {
      EXPECT_NE(plan.find(key), nullptr) << key;
    }
  }
}

TEST(Compare, TwoRunsAreTheSameBytes) {
  const Sandbox sandbox;
  const std::string file = sandbox.write("s.yaml", kSmall);
  EXPECT_EQ(sandbox.run({"compare", file, "--json", "-"}).out, sandbox.run({"compare", file, "--json", "-"}).out);
}

TEST(Compare, AFolderGetsEveryFormat) {
  const Sandbox sandbox;
  const fs::path out = sandbox.folder() / "a" / "b";
  const Outcome outcome = sandbox.run({"compare", sandbox.write("s.yaml", kSmall), "-o", out.string(), "-q"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "") << "--quiet";
  EXPECT_TRUE(fs::exists(out / "result.json"));
  EXPECT_TRUE(fs::exists(out / "plans.csv"));
  EXPECT_TRUE(fs::exists(out / "summary.txt"));
  EXPECT_EQ(fs::exists(out / "report.html"), !reports::report_page().empty()) << "where the page was built";
}

TEST(Html, IsWrittenWhereThePageWasBuiltAndElseRefusedBeforeAnyWork) {
  const Sandbox sandbox;
  const fs::path page = sandbox.folder() / "r.html";
  const Outcome outcome = sandbox.run({"compare", sandbox.write("s.yaml", kSmall), "--html", page.string(), "-q"});
  if (reports::report_page().empty()) {
    EXPECT_EQ(outcome.status, 1);
    EXPECT_EQ(outcome.err, "ulysim: --html: " + reports::why_no_page() + "\n");
    EXPECT_FALSE(fs::exists(page));
  } else {
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(content_of(page), HasSubstr("\"kind\":\"study\""));
    EXPECT_LT(fs::file_size(page), 1'500'000U);
  }
}

TEST(Report, SaysAgainWhatWasSaved) {
  const Sandbox sandbox;
  const fs::path out = sandbox.folder() / "first";
  const fs::path again = sandbox.folder() / "second";
  const Outcome first = sandbox.run({"compare", sandbox.write("s.yaml", kSmall), "-o", out.string()});
  const Outcome second = sandbox.run({"report", (out / "result.json").string(), "-o", again.string()});
  EXPECT_EQ(second.status, 0) << second.err;
  EXPECT_EQ(second.out, first.out);
  for (const auto& file : fs::directory_iterator(out)) {
    EXPECT_EQ(content_of(again / file.path().filename()), content_of(file.path())) << file.path();
  }
}

TEST(Report, OfWhatIsNoResultIsASentenceWithItsPlace) {
  const Sandbox sandbox;
  const std::string file = sandbox.write("x.txt", "{\"format\": 1}");
  const Outcome outcome = sandbox.run({"report", file});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, StartsWith(file + ":1:"));
  EXPECT_EQ(sandbox.run({"report", "missing.json"}).err, "missing.json: error: no such file\n");
}

TEST(Compare, AnInfeasiblePlanIsAResultAndNoFailure) {
  const Sandbox sandbox;
  const Outcome outcome = sandbox.run({"compare", "--model", "qwen2.5-7b", "--node", "dgx-h100", "--seq", "16Ki",
                                       "--plan", "ulysses=8", "--plan", "ulysses=4"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("28"));
}

TEST(Run, APlanThatCannotRunOrDoesNotFitIsStatus3AndItsResultIsWritten) {
  const Sandbox sandbox;
  const fs::path json = sandbox.folder() / "r.json";
  const Outcome refused = sandbox.run({"run", "--model", "qwen2.5-7b", "--node", "dgx-h100", "--seq", "16Ki", "--plan",
                                       "ulysses=8", "--json", json.string()});
  EXPECT_EQ(refused.status, 3) << refused.err;
  EXPECT_THAT(content_of(json), HasSubstr("\"feasible\": false"));
  const Outcome large = sandbox.run({"run", sandbox.write("long.yaml", kTooLong), "--json", json.string()});
  EXPECT_EQ(large.status, 3) << large.err;
  EXPECT_THAT(content_of(json), HasSubstr("\"fits\": false"));
}

TEST(Maxseq, GivesTheContractsJsonBesideThatOfCompare) {
  const Sandbox sandbox;
  const Outcome outcome = sandbox.run({"maxseq", sandbox.write("s.yaml", kSmall), "--json", "-"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const config::Node root = config::parse_json(outcome.out, "result");
  ASSERT_EQ(root.find("plans")->items.size(), 2U);
  for (const config::Node& plan : root.find("plans")->items) {
    for (const char* key : {"name", "max_sequence_length", "limit", "limit_reasons", "next_sequence_length", "lifts",
                            "feasible", "fits", "step_time_s", "tokens_per_s_per_gpu", "peak_gpu_memory_gib",
                            "peak_host_memory_gib_per_node", "memory", "breakdown"}) {
      EXPECT_NE(plan.find(key), nullptr) << key;
    }
    EXPECT_EQ(plan.find("limit")->text, "gpu-memory") << "nothing is offloaded: " << outcome.out;
    EXPECT_GT(std::stoll(plan.find("max_sequence_length")->text), 16384);
    EXPECT_EQ(plan.find("options")->find("sequence_length")->text, plan.find("max_sequence_length")->text);
  }
}

TEST(Maxseq, IsStatus3WithItsJsonWrittenOnlyWhenNoPlanTrainsAtAnyLength) {
  const Sandbox sandbox;
  const fs::path json = sandbox.folder() / "m.json";
  const std::vector<std::string> one{"maxseq", "--model", "qwen2.5-7b", "--node", "dgx-h100",   "--seq",
                                     "16Ki",   "--plan",  "ulysses=8",  "--json", json.string()};
  const Outcome none = sandbox.run(one);
  EXPECT_EQ(none.status, 3) << none.err;
  EXPECT_THAT(content_of(json), HasSubstr("\"limit\": \"heads\"")) << none.out;
  EXPECT_THAT(content_of(json), HasSubstr("\"max_sequence_length\": null"));
  std::vector<std::string> two = one;
  two.insert(two.end(), {"--plan", "ulysses=4"});
  const Outcome other = sandbox.run(two);
  EXPECT_EQ(other.status, 0) << "one of two trains: " << other.out;
}

TEST(Run, TheTraceIsJson) {
  const Sandbox sandbox;
  const Outcome outcome = sandbox.run({"run", sandbox.write("s.yaml", kSmall), "--trace", "-"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const config::Node root = config::parse_json(outcome.out, "trace");
  EXPECT_GT(root.find("traceEvents")->items.size(), 100U) << "32 layers forward and backward";
}

TEST(Names, OfAFileStayTextInEveryFormat) {
  const Sandbox sandbox;
  const std::string name = R"(=1+1","pid":0},<script>alert(1)</script>)";
  const std::string file =
      sandbox.write("s.yaml", "scenario: '" + name +
                                  "'\nmodel: llama-3.1-8b\ncluster: {node: dgx-h100}\n"
                                  "training: {sequence_length: 16Ki}\nplans: [{ulysses: 8, name: '" +
                                  name + "'}]\n");
  const config::Node trace = config::parse_json(sandbox.run({"run", file, "--trace", "-"}).out, "trace");
  const config::Node& process = trace.find("traceEvents")->items.front();
  EXPECT_EQ(process.find("name")->text, "process_name");
  EXPECT_THAT(process.find("args")->find("name")->text, StartsWith(name));
  const config::Node result = config::parse_json(sandbox.run({"run", file, "--json", "-"}).out, "result");
  EXPECT_EQ(result.find("scenario")->find("name")->text, name);
  EXPECT_THAT(sandbox.run({"run", file, "--csv", "-"}).out,
              HasSubstr(R"("'=1+1"",""pid"":0},<script>alert(1)</script>")"));
}

TEST(World, AFileThatCannotBeWrittenIsASentenceAndStatus1) {
  const Sandbox sandbox;
  const std::string file = sandbox.write("s.yaml", kSmall);
  const Outcome full = sandbox.run({"compare", file, "--json", "/dev/full"});
  EXPECT_EQ(full.status, 1);
  EXPECT_EQ(full.err, "ulysim: cannot write /dev/full: No space left on device\n");
  EXPECT_EQ(sandbox.run({"compare", file, "--csv", sandbox.folder() / "no" / "x.csv"}).status, 1);
  EXPECT_EQ(sandbox.run({"compare", file, "-o", file}).status, 1) << "a file where a folder is needed";
}

TEST(World, AMissingDataFolderIsASentenceAndStatus1) {
  const Sandbox sandbox;
  const Outcome outcome = sandbox.run({"list", "nodes"}, {"ULYSIM_DATA=/nowhere"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.err, "ulysim: ULYSIM_DATA is '/nowhere', which holds no 'catalog' and 'scenarios'\n");
}

TEST(Table, IsAsciiOutsideUtf8AndNeverColouredIntoAFile) {
  const Sandbox sandbox;
  const Outcome outcome = sandbox.run({"compare", sandbox.write("s.yaml", kSmall)}, {"LC_ALL=C", "LANG=C"});
  for (const char c : outcome.out) {
    ASSERT_LT(static_cast<unsigned char>(c), 0x80);
    ASSERT_NE(c, '\x1b');
  }
}

TEST(List, EveryKindLists) {
  const Sandbox sandbox;
  for (const char* kind : {"gpus", "nodes", "models", "frameworks", "strategies", "collectives", "topologies",
                           "attention", "scenarios", "sweeps", "formats"}) {
    const Outcome outcome = sandbox.run({"list", kind});
    EXPECT_EQ(outcome.status, 0) << kind << outcome.err;
    EXPECT_NE(outcome.out, "") << kind;
  }
}

TEST(Model, GivesTheContractsKeys) {
  const Sandbox sandbox;
  const Outcome outcome = sandbox.run({"model", "llama-3.1-8b", "--json", "-"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const config::Node root = config::parse_json(outcome.out, "model");
  EXPECT_EQ(root.find("parameters")->text, "8030261248") << "Meta's model card";
  EXPECT_EQ(root.find("ulysses_degrees")->items.size(), 6U) << "1, 2, 4, 8, 16, 32";
}

TEST(Explain, PrintsEveryStage) {
  const Sandbox sandbox;
  const std::string file = sandbox.write("s.yaml", kSmall);
  for (const char* stage : {"scenario", "logical", "parallel", "timeline"}) {
    const Outcome outcome = sandbox.run({"explain", file, "--stage", stage, "--plan", "ring=8"});
    EXPECT_EQ(outcome.status, 0) << stage << outcome.err;
    EXPECT_NE(outcome.out, "") << stage;
  }
}

}  // namespace
}  // namespace ulysim::tools
