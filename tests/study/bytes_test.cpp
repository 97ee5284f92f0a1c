// Which question this answers: does the same scenario give the same bytes, run after run and on a CPU without FMA?

#include <gtest/gtest.h>

#include "reports/writer.h"
#include "sim/study/study.h"
#include "tests/study/lab.h"
#include "tests/tools/program.h"

namespace ulysim::study {
namespace {

class SameBytes : public testing::TestWithParam<std::string> {};

TEST_P(SameBytes, InOneProcess) {
  const auto json = [](const std::string& run) {
    const results::StudyResult study = compare(load_run(run), {.detail = Detail::trace});
    return reports::writer("json").write(&study, {}).value();
  };
  const std::string first = json(GetParam());
  EXPECT_GT(first.size(), 10'000U);
  EXPECT_TRUE(first == json(GetParam()));
}

TEST_P(SameBytes, InTwoProcessesAndWithoutFma) {
  const tools::Sandbox sandbox;
  const std::string file = runs_folder() / (GetParam() + ".yaml");
  const std::vector<std::string> arguments{"compare", file, "--json", "-"};
  const tools::Outcome first = sandbox.run(arguments);
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_GT(first.out.size(), 10'000U);
  EXPECT_TRUE(first.out == sandbox.run(arguments).out);
  // glibc then takes the variants of its functions that an older CPU would get (tunables manual, cpu.hwcaps).
  const tools::Outcome old_cpu = sandbox.run(arguments, {"GLIBC_TUNABLES=glibc.cpu.hwcaps=-FMA,-FMA4,-AVX2"});
  EXPECT_EQ(old_cpu.status, 0);
  EXPECT_TRUE(first.out == old_cpu.out);
}

INSTANTIATE_TEST_SUITE_P(Runs, SameBytes, testing::ValuesIn(run_names()), test_name);

}  // namespace
}  // namespace ulysim::study
