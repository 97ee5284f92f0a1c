#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "sim/config/document.h"
#include "tests/config/refusal.h"

namespace ulysim::config {
namespace {

namespace fs = std::filesystem;

/// An empty folder of this test's own, gone afterwards.
class LoadFile : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(testing::TempDir()) / ("ulysim_" + std::string(test->name()) + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  [[nodiscard]] fs::path write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }
  /// The refusal with the folder's own name left out.
  [[nodiscard]] std::string refusal_of(const std::string& name) const {
    std::string message = refusal([&] { return load_file(folder_ / name); });
    const std::string prefix = (folder_ / "").string();
    return message.starts_with(prefix) ? message.substr(prefix.size()) : message;
  }

  fs::path folder_;
};

TEST_F(LoadFile, ReadsYamlAndJsonByTheName) {
  EXPECT_EQ(load_file(write("a.yaml", "k: {v: 1}\n")).find("k")->find("v")->text, "1");
  EXPECT_EQ(load_file(write("a.json", "{\"k\": 2}")).find("k")->text, "2");
  // tabs may indent JSON and not YAML: so this was read as JSON
  EXPECT_EQ(load_file(write("b.json", "{\n\t\"k\":\t3}")).find("k")->text, "3");
}

TEST_F(LoadFile, NamesTheFileInMessages) {
  static_cast<void>(write("bad.json", "{\n1}"));
  EXPECT_EQ(refusal_of("bad.json"),
            "bad.json:2:1: error: syntax error while parsing object key - unexpected number literal; expected string "
            "literal");
}

TEST_F(LoadFile, RefusesWhatIsNoFile) {
  EXPECT_EQ(refusal_of("absent.yaml"), "absent.yaml: error: no such file");
  fs::create_directory(folder_ / "folder");
  EXPECT_EQ(refusal_of("folder"), "folder: error: is a directory, not a file");
  fs::create_symlink("loop", folder_ / "loop");
  EXPECT_TRUE(refusal_of("loop").starts_with("loop: error: cannot be read")) << refusal_of("loop");
}

TEST_F(LoadFile, RefusesWhatNeverEnds) {
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(refusal_of("pipe"), "pipe: error: is not a regular file") << "and does not wait for a writer";
  EXPECT_EQ(refusal([] { return load_file("/dev/zero"); }), "/dev/zero: error: is not a regular file");
}

TEST_F(LoadFile, RefusesAFileOverSixtyFourMebibytes) {
  fs::resize_file(write("large.yaml", "a: 1"), (std::uintmax_t{64} << 20) + 1);
  EXPECT_EQ(refusal_of("large.yaml"), "large.yaml: error: is larger than 64 MiB");
}

}  // namespace
}  // namespace ulysim::config
