// Every catalogue number that enters a simulation is named with its source, and none is dropped in silence.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/study/provenance.h"
#include "tests/golden/golden.h"
#include "tests/study/lab.h"

namespace ulysim::study {
namespace {

TEST(Provenance, NamesEveryNumberThatTheMainJobUses) {
  std::string names;
  for (const results::Parameter& parameter : parameters_of(load_run("llama3-8b-1m-8xh100"))) {
    names += parameter.name + " " + parameter.kind + "\n";
    EXPECT_THAT(parameter.source, testing::Not(testing::IsEmpty())) << parameter.name;
    EXPECT_THAT(parameter.value, testing::Not(testing::IsEmpty())) << parameter.name;
  }
  golden::compare("provenance.txt", names);
}

}  // namespace
}  // namespace ulysim::study
