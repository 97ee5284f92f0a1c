// Which question this answers: is a sweep the same file whatever happened to it on the way: kills, shards, threads?

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>

#include "sim/base/mix.h"
#include "sim/config/document.h"
#include "tests/tools/program.h"

namespace ulysim::tools {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

// 80 points of two plans, a few milliseconds each.
const std::string kSweep =
    "sweep: small\n"
    "base: {model: qwen3-0.6b, cluster: {node: dgx-h100}, training: {checkpoint_offload: cpu, tiled_loss: true}}\n"
    "axes:\n"
    "  cluster.gpus: [2, 8]\n"
    "  training.sequence_length: {from: 16Ki, to: 640Ki, step: 16Ki}\n"
    "plans: [{ulysses: all}, {ring: all}]\n";
constexpr std::size_t kPoints = 80;

class SweepCommand : public testing::Test {
 protected:
  [[nodiscard]] Outcome sweep(std::vector<std::string> more) const {
    more.insert(more.begin(), {"sweep", file_});
    return sandbox_.run(more);
  }
  [[nodiscard]] std::string path(const char* name) const { return (sandbox_.folder() / name).string(); }
  [[nodiscard]] std::string result(const char* folder) const {
    return content_of(fs::path(path(folder)) / "result.json") + content_of(fs::path(path(folder)) / "plans.csv") +
           content_of(fs::path(path(folder)) / "summary.txt");
  }
  [[nodiscard]] std::size_t finished(const char* folder) const {
    const std::string text = content_of(fs::path(path(folder)) / "journal.jsonl");
    const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
    return lines > 0 ? lines - 1 : 0;
  }

  /// Starts a sweep and gives it `signal` once `points` are done; it may be over before.
  [[nodiscard]] Outcome stopped(const char* folder, std::size_t points, int signal, bool resume) const {
    std::vector<std::string> arguments{"sweep", file_, "-o", path(folder), "--jobs", "2"};
    if (resume) {
      arguments.emplace_back("--resume");
    }
    const pid_t child = sandbox_.begin(arguments);
    siginfo_t over{};
    while (finished(folder) < points &&
           waitid(P_PID, static_cast<id_t>(child), &over, WEXITED | WNOHANG | WNOWAIT) == 0 && over.si_pid == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    kill(child, signal);
    return sandbox_.outcome_of(child);
  }

  Sandbox sandbox_;
  std::string file_{sandbox_.write("sweep.yaml", kSweep)};
};

TEST_F(SweepCommand, KilledThreeTimesAndResumedIsTheSameFile) {
  ASSERT_EQ(sweep({"-o", path("whole"), "-q"}).status, 0);
  std::size_t before = 0;
  for (std::uint64_t kill = 1; kill <= 3; ++kill) {
    const std::size_t at = before + 1 + mixed(kill) % 9;
    const Outcome outcome = stopped("killed", at, SIGKILL, kill > 1);
    EXPECT_EQ(outcome.status, 1000 + SIGKILL) << outcome.err;
    EXPECT_GE(finished("killed"), at) << "no finished point is lost";
    before = finished("killed");
  }
  ASSERT_LT(before, kPoints) << "the last kill came too late to show anything";
  // A line that was being written when the power went.
  std::ofstream(fs::path(path("killed")) / "journal.jsonl", std::ios::app) << "{\"at\":[1,39],\"winner\":";
  const Outcome outcome = sweep({"-o", path("killed"), "--resume", "-q"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(finished("killed"), kPoints) << "none is done twice";
  EXPECT_EQ(result("killed"), result("whole"));
}

TEST_F(SweepCommand, CtrlCStopsCleanlyAndSaysHowToGoOn) {
  const Outcome outcome = stopped("stopped", 3, SIGINT, false);
  EXPECT_EQ(outcome.status, 130) << outcome.err;
  EXPECT_THAT(outcome.err, testing::MatchesRegex("ulysim: stopped at [0-9]+ of 80 points; the same command with "
                                                 "--resume goes on .*\n"));
  EXPECT_EQ(outcome.out, "");
  EXPECT_FALSE(fs::exists(fs::path(path("stopped")) / "result.json"));
  ASSERT_EQ(sweep({"-o", path("stopped"), "--resume", "-q"}).status, 0);
  ASSERT_EQ(sweep({"-o", path("whole"), "-q"}).status, 0);
  EXPECT_EQ(result("stopped"), result("whole"));
}

TEST_F(SweepCommand, ShardsPutTogetherAreTheWhole) {
  for (const char* shard : {"1/3", "3/3", "2/3"}) {
    const Outcome outcome = sweep({"-o", path("shards"), "--shard", shard});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr(std::string("shard ") + shard));
  }
  EXPECT_FALSE(fs::exists(fs::path(path("shards")) / "result.json")) << "no shard has the whole";
  ASSERT_EQ(sweep({"-o", path("shards"), "--resume", "-q"}).status, 0);
  EXPECT_EQ(finished("shards"), 0U) << "nothing was left to simulate";
  ASSERT_EQ(sweep({"-o", path("whole"), "-q"}).status, 0);
  EXPECT_EQ(result("shards"), result("whole"));
}

TEST_F(SweepCommand, ThreadsDoNotShow) {
  const Outcome one = sweep({"--jobs", "1", "--json", "-"});
  EXPECT_EQ(one.status, 0) << one.err;
  EXPECT_EQ(one.out, sweep({"--jobs", "4", "--json", "-"}).out);
}

TEST_F(SweepCommand, GivesTheContractsJson) {
  const config::Node root = config::parse_json(sweep({"--json", "-"}).out, "result");
  EXPECT_EQ(root.find("kind")->text, "sweep");
  EXPECT_EQ(root.find("axes")->items[1].find("key")->text, "training.sequence_length");
  EXPECT_EQ(root.find("axes")->items[1].find("values")->items[0].text, "16384");
  ASSERT_EQ(root.find("points")->items.size(), kPoints);
  const config::Node& last = root.find("points")->items.back();
  EXPECT_EQ(last.find("at")->items[1].text, "39");
  for (const char* key :
       {"name", "feasible", "fits", "fit", "step_time_s", "tokens_per_s_per_gpu", "mfu", "peak_gpu_memory_gib",
        "peak_host_memory_gib_per_node", "exposed_communication_s", "bottleneck", "reason"}) {
    EXPECT_NE(last.find("plans")->items[0].find(key), nullptr) << key;
  }
}

TEST_F(SweepCommand, AFolderOfAnotherSweepIsRefused) {
  ASSERT_EQ(sweep({"-o", path("out"), "-q"}).status, 0);
  const Outcome again = sweep({"-o", path("out")});
  EXPECT_EQ(again.status, 2);
  EXPECT_EQ(again.err, "ulysim: " + path("out") +
                           " holds a sweep already: --resume goes on with it; or choose another "
                           "folder\n");
  const Outcome other = sweep({"-o", path("out"), "--resume", "--set", "training.zero=1"});
  EXPECT_EQ(other.status, 2);
  EXPECT_THAT(other.err,
              HasSubstr("journal.jsonl:1:1: error: this is the journal of a sweep 'small' with another grid"));
  const std::string journal = (fs::path(path("out")) / "journal.jsonl").string();
  const std::string text = content_of(journal);
  std::ofstream(journal, std::ios::binary) << text.substr(0, text.find('\n') + 1) << "{\"at\":[0,99],\"plans\":[]}\n";
  const Outcome broken = sweep({"-o", path("out"), "--resume"});
  EXPECT_EQ(broken.status, 2);
  EXPECT_THAT(broken.err, HasSubstr("journal.jsonl:2:1: error: this line is no point"));
  std::ofstream(journal, std::ios::binary) << "hello\n";
  EXPECT_THAT(sweep({"-o", path("out"), "--resume"}).err, HasSubstr("this is no journal of a sweep"));
}

TEST_F(SweepCommand, WhatMakesNoSenseIsASentenceAndStatus2) {
  const std::vector<std::vector<std::string>> wrong{{"--resume"},
                                                    {"--shard", "1/2"},
                                                    {"--shard", "0/2", "-o", path("x")},
                                                    {"--shard", "3/2", "-o", path("x")},
                                                    {"--shard", "half", "-o", path("x")},
                                                    {"--shard", "1/2", "-o", path("x"), "--csv", "-"},
                                                    {"--jobs", "0"},
                                                    {"--jobs", "many"},
                                                    {"--set", "training.zero=7"},
                                                    {"--json", "-", "--csv", "-"}};
  for (const auto& arguments : wrong) {
    const Outcome outcome = sweep(arguments);
    EXPECT_EQ(outcome.status, 2) << testing::PrintToString(arguments) << outcome.err;
    EXPECT_NE(outcome.err, "");
    EXPECT_EQ(outcome.out, "");
  }
  EXPECT_FALSE(fs::exists(path("x"))) << "nothing is begun";
}

TEST_F(SweepCommand, AFolderThatCannotBeWrittenIsASentenceAndStatus1) {
  EXPECT_EQ(sweep({"-o", file_}).status, 1) << "a file where a folder is needed";
}

}  // namespace
}  // namespace ulysim::tools
