// Which question this answers: does the shell complete what the program takes?

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/program.h"

namespace ulysim::tools {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Not;

class Completion : public testing::Test {
 protected:
  /// Runs `text` in a shell, with the program under its own name on the path; skips where there is no such shell.
  [[nodiscard]] Outcome shell(const std::string& name, const std::string& text) const {
    const std::string file = sandbox_.write("script", text);
    const std::string programs = std::filesystem::path(ULYSIM_PROGRAM).parent_path().string();
    const std::string command =
        "cd " + sandbox_.folder().string() + " && PATH=" + programs + ":$PATH " + name + " " + file + " > .out 2> .err";
    const int status = std::system(command.c_str());
    return {.status = WEXITSTATUS(status),
            .out = content_of(sandbox_.folder() / ".out"),
            .err = content_of(sandbox_.folder() / ".err")};
  }
  [[nodiscard]] static bool has(const std::string& name) {
    return std::system(("command -v " + name + " > /dev/null 2>&1").c_str()) == 0;
  }
  [[nodiscard]] std::string script(const std::string& name) const {
    const Outcome outcome = sandbox_.run({"completion", name});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return outcome.out;
  }

  /// What bash offers for the last of these words.
  [[nodiscard]] std::vector<std::string> offered(const std::vector<std::string>& words) const {
    std::string text = script("bash") + "COMP_WORDS=(ulysim";
    for (const std::string& word : words) {
      text += " '" + word + "'";
    }
    text += ")\nCOMP_CWORD=" + std::to_string(words.size()) +
            "\ncompopt() { :; }\n_ulysim\n((${#COMPREPLY[@]})) && printf '%s\\n' \"${COMPREPLY[@]}\"\n";
    std::stringstream lines(shell("bash", text).out);
    std::vector<std::string> all;
    for (std::string line; std::getline(lines, line);) {
      all.push_back(line);
    }
    return all;
  }

  Sandbox sandbox_;
};

TEST_F(Completion, BashReadsTheScript) {
  (void)sandbox_.write("completion.bash", script("bash"));
  const Outcome outcome = shell("bash", "bash -n completion.bash && source completion.bash && complete -p ulysim\n");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "complete -F _ulysim ulysim\n");
}

TEST_F(Completion, BashOffersCommandsOptionsNamesAndFiles) {
  EXPECT_THAT(offered({"co"}), testing::UnorderedElementsAre("compare", "completion"));
  EXPECT_THAT(offered({"sweep", "--"}), IsSupersetOf({"--jobs", "--shard", "--resume", "--set", "--json"}));
  EXPECT_THAT(offered({"sweep", "--"}), Not(Contains("--model"))) << "of compare";
  EXPECT_THAT(offered({"compare", "--node", "dgx-"}), IsSupersetOf({"dgx-a100", "dgx-h100", "dgx-b200"}));
  EXPECT_THAT(offered({"model", "llama-3.1-8"}), testing::ElementsAre("llama-3.1-8b"));
  EXPECT_THAT(offered({"explain", "--stage", "p"}), testing::ElementsAre("parallel"));
  EXPECT_THAT(offered({"list", "mo"}), testing::ElementsAre("models"));
  EXPECT_THAT(offered({"compare", "--nodes", ""}), IsEmpty()) << "a number is typed";
  (void)sandbox_.write("a study.yaml", "");
  EXPECT_THAT(offered({"compare", "a st"}), testing::ElementsAre("a study.yaml"));
}

TEST_F(Completion, ZshReadsTheScript) {
  if (!has("zsh")) {
    GTEST_SKIP() << "there is no zsh here";
  }
  (void)sandbox_.write("_ulysim", script("zsh"));
  const Outcome outcome = shell("zsh",
                                "zsh -n _ulysim && fpath=($PWD $fpath) && autoload -U compinit && compinit -u -D && "
                                "print $_comps[ulysim]\n");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "_ulysim\n");
}

TEST_F(Completion, FishOffersCommandsAndOptions) {
  if (!has("fish")) {
    GTEST_SKIP() << "there is no fish here";
  }
  (void)sandbox_.write("ulysim.fish", script("fish"));
  const Outcome outcome =
      shell("fish", "source ulysim.fish\ncomplete -C 'ulysim comp'\ncomplete -C 'ulysim sweep --sh'\n");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("compare\t"));
  EXPECT_THAT(outcome.out, HasSubstr("--shard\t"));
}

TEST_F(Completion, AnUnknownShellIsASentence) {
  const Outcome outcome = sandbox_.run({"completion", "zhs"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.err, "ulysim: unknown shell 'zhs'; did you mean 'zsh'?\n");
}

}  // namespace
}  // namespace ulysim::tools
