// Which question this answers: is a file there whole or not at all, whatever the disk does?

#include "reports/output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "sim/base/check.h"

namespace ulysim::reports {
namespace {

namespace fs = std::filesystem;

class Output : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "ulysim-output-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string content(const fs::path& path) const {
    std::ifstream in(path);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }
  [[nodiscard]] std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path folder_;
};

std::string sentence(const fs::path& path) {
  try {
    write_output(path, "x");
    return {};
  } catch (const WorldError& error) {
    return error.what();
  }
}

TEST_F(Output, ReplacesAFileAndLeavesNothingBesideIt) {
  write_output(folder_ / "a", "old and long");
  write_output(folder_ / "a", "new");
  EXPECT_EQ(content(folder_ / "a"), "new");
  EXPECT_EQ(files(), 1U);
}

TEST_F(Output, ALinkStaysALink) {
  write_output(folder_ / "real", "old");
  fs::create_symlink("real", folder_ / "link");
  write_output(folder_ / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(content(folder_ / "real"), "new");
}

TEST_F(Output, SaysWhatIsWrongInOneSentence) {
  EXPECT_EQ(sentence("/dev/full"), "cannot write /dev/full: No space left on device");
  EXPECT_THAT(sentence(folder_ / "no" / "such"), testing::HasSubstr("No such file or directory"));
  EXPECT_THAT(sentence(folder_), testing::HasSubstr("Is a directory"));
  EXPECT_EQ(sentence("/dev/null"), "");
}

TEST_F(Output, AFileIsAsReadableAsAnyNewFile) {
  const mode_t before = umask(022);
  write_output(folder_ / "a", "x");
  umask(before);
  struct stat found {};
  ASSERT_EQ(stat((folder_ / "a").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777U, 0644U);
}

}  // namespace
}  // namespace ulysim::reports
