// Which question this answers: is a copy of a tensor a tensor of its own?

#include "sim/strategies/rewrite.h"

#include <gtest/gtest.h>

namespace ulysim::strategies {
namespace {

TEST(Rewrite, a_copy_has_storage_of_its_own) {
  // The table that head and embedding share is counted once; what is gathered of it is there beside it.
  const workload::Tensor table{.name = "w_head",
                               .shape = {{.dim = workload::Dim::vocab, .size = 10}},
                               .port = workload::Port::tied_output,
                               .persistent = true,
                               .parameter = true,
                               .shared = true};
  const workload::Tensor copy = like(table, "w_head_gathered");
  EXPECT_EQ(copy.name, "w_head_gathered");
  EXPECT_EQ(copy.shape.size(), 1U);
  EXPECT_FALSE(copy.persistent || copy.parameter || copy.shared);
  EXPECT_EQ(copy.port, workload::Port::none);
}

}  // namespace
}  // namespace ulysim::strategies
