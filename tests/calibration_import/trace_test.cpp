// Which question this answers: what does a PyTorch trace tell of collectives and GEMMs, and what must it not tell?

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/calibration_import/importing.h"

namespace ulysim::calibration {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

std::string collective(const std::string& name, const std::string& in, const std::string& out, const std::string& dur,
                       const std::string& more = "") {
  return R"({"ph": "X", "cat": "kernel", "name": "ncclDevKernel_X", "ts": 1, "dur": )" + dur +
         R"(, "args": {"Collective name": ")" + name + R"(", "In msg nelems": )" + in + R"(, "Out msg nelems": )" +
         out + R"(, "Group size": 8, "dtype": "BFloat16")" + more + "}}";
}

std::string trace(const std::string& events) {
  return R"({"deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}], "traceEvents": [)" + events + "\n]}";
}

// 2 MiB of 8 ranks: 100, 110 and 300 us have the median 110 and the median distance 10, 1.4826 of which are one sigma;
// 2097152 / 110e-6 · 7/8.
TEST(Trace, EqualCollectivesBecomeOneSampleWithItsSpread) {
  const std::string a = collective("all_to_allv", "1048576", "1048576", "100");
  const std::string b = collective("all_to_allv", "1048576", "1048576", "110.0", R"(, "In split size": "[]")");
  const std::string c = collective("all_to_all", "1048576", "1048576", "300");
  const ImportedFile file = import_text(trace(a + ",\n" + b + ",\n" + c), "f", {});
  ASSERT_EQ(file.samples.size(), 1U);
  EXPECT_EQ(run_of(file, 0).collective, Collective::all_to_all);
  EXPECT_EQ(run_of(file, 0).bytes, 2097152);
  EXPECT_EQ(file.samples[0].runs, 3);
  EXPECT_DOUBLE_EQ(file.samples[0].seconds, 110e-6);
  EXPECT_NEAR(*file.samples[0].spread, 1.4826 * 10.0 / 110.0, 1e-12);
  EXPECT_NEAR(*rate_of(file.samples[0]), 16.68, 0.005);
  EXPECT_EQ(file.samples[0].gpu, "H100 80GB HBM3");
}

// As nccl-tests counts: the larger of what a rank sends and receives. 1000 in, 8000 out, 2 B each.
TEST(Trace, AnAllGatherIsAsLargeAsItsOutput) {
  const ImportedFile file = import_text(trace(collective("_allgather_base", "1000", "8000", "20")), "f", {});
  EXPECT_EQ(run_of(file, 0).collective, Collective::all_gather);
  EXPECT_EQ(run_of(file, 0).bytes, 16000);
}

// Two kernels of one operator are one product: 2·4096·2048·1024 FLOP in 20 us are 859 TFLOP/s.
TEST(Trace, AGemmTakesItsShapeFromTheOperatorThatLaunchedIt) {
  const std::string op =
      R"({"ph": "X", "cat": "cpu_op", "name": "aten::addmm", "dur": 9, "args": {"External id": 7,
"Input Dims": [[2048], [4096, 1024], [1024, 2048], [], []],
"Input type": ["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "Scalar", "Scalar"]}})";
  const std::string kernel = R"({"ph": "X", "cat": "kernel", "name": "k", "dur": 10, "args": {"External id": 7}})";
  const ImportedFile file = import_text(trace(kernel + "," + kernel + "," + op), "f", {});
  ASSERT_EQ(file.samples.size(), 1U);
  const auto& gemm = std::get<GemmProbe>(file.samples[0].probe);
  EXPECT_THAT((std::vector{gemm.m, gemm.n, gemm.k}), ElementsAre(4096, 2048, 1024));
  EXPECT_NEAR(*rate_of(file.samples[0]), 859.0, 0.01);
}

// As PyTorch records its fused attention: [sequences, heads, tokens, head size], the causal flag as text. The backward
// pass is three kernels of one operator: 10 + 20 + 30 us.
TEST(Trace, AttentionTakesItsShapeFromTheOperatorThatLaunchedIt) {
  const auto op = [](const std::string& name, const std::string& id, const std::string& before,
                     const std::string& values) {
    const std::string q = "[2, 32, 4096, 128]";
    const std::string kv = "[2, 8, 4096, 128]";
    return R"({"ph": "X", "cat": "cpu_op", "name": ")" + name + R"(", "dur": 9, "args": {"External id": )" + id +
           R"(, "Input Dims": [)" + before + q + ", " + kv + ", " + kv + R"(, [], []], "Input type": [)" +
           R"("c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "Scalar"], "Concrete Inputs": )" +
           values + "}}";
  };
  const auto kernel = [](const std::string& id, const std::string& dur) {
    return R"({"ph": "X", "cat": "kernel", "name": "k", "dur": )" + dur + R"(, "args": {"External id": )" + id + "}}";
  };
  const ImportedFile file =
      import_text(trace(op("aten::_scaled_dot_product_flash_attention", "1", "", R"(["", "", "", "0.", "True"])") +
                        "," + kernel("1", "40") + "," +
                        op("aten::_scaled_dot_product_flash_attention_backward", "2", "[2, 32, 4096, 128], ",
                           R"(["", "", "", "", "", "", "", "", "", "", "0.", "False"])") +
                        "," + kernel("2", "10") + "," + kernel("2", "20") + "," + kernel("2", "30")),
                  "f", {});
  ASSERT_EQ(file.samples.size(), 2U);
  const AttentionProbe forward{.implementation = kernel::AttentionKernel::sdpa,
                               .pass = Pass::forward,
                               .mask = Mask::causal,
                               .sequences = 2,
                               .heads = 32,
                               .kv_heads = 8,
                               .head_dim = 128,
                               .queries = 4096,
                               .keys = 4096};
  AttentionProbe backward = forward;
  backward.pass = Pass::backward;
  backward.mask = Mask::full;
  EXPECT_EQ(std::get<AttentionProbe>(file.samples[0].probe), forward);
  EXPECT_EQ(std::get<AttentionProbe>(file.samples[1].probe), backward);
  EXPECT_DOUBLE_EQ(file.samples[0].seconds, 40e-6);
  EXPECT_DOUBLE_EQ(file.samples[1].seconds, 60e-6);
}

// What the CPU spent on the launch is no time of the collective.
TEST(Trace, ALaunchIsNoMeasurement) {
  const std::string launch =
      R"({"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "dur": 5, "args": {"Collective name": "allreduce",
"In msg nelems": 8, "Out msg nelems": 8, "Group size": 8, "dtype": "Float"}})";
  EXPECT_THAT(refusal(trace(launch)), HasSubstr("no kernel of a collective"));
}

TEST(Trace, UnevenAndUnknownCollectivesAreSkippedAndSaid) {
  const ImportedFile file =
      import_text(trace(collective("allreduce", "8", "8", "5") + "," + collective("barrier", "8", "8", "5") + "," +
                        collective("all_to_allv", "8", "8", "5", R"(, "In split size": "[1, 7]")")),
                  "f", {});
  EXPECT_EQ(file.samples.size(), 1U);
  EXPECT_THAT(file.notes, Contains(HasSubstr("1 collectives without a known name")));
  EXPECT_THAT(file.notes, Contains(HasSubstr("1 all-to-alls with uneven splits")));
}

// Viewers accept a list of events without an object around it, and one that was never closed.
TEST(Trace, AListOfEventsMayBreakOff) {
  const std::string one = collective("allreduce", "1000", "1000", "10");
  const ImportedFile file = import_text("[" + one + ",\n" + one.substr(0, 60), "f", {});
  EXPECT_EQ(file.samples.size(), 1U);
  EXPECT_TRUE(file.truncated);
}

TEST(Trace, ABrokenEventIsNamedByItsLine) {
  EXPECT_THAT(refusal("{\"traceEvents\": [\n\n{\"args\": {\"External id\": 1,, }}]}"), HasSubstr("f:3:"));
  EXPECT_THAT(refusal("{\"traceEvents\": []}"), HasSubstr("f:1:1: error: no kernel of a collective"));
  EXPECT_THAT(refusal("{\"traceEvents\": ]]]"), HasSubstr("f:1:1"));
  EXPECT_THAT(refusal("{\n"), HasSubstr("f:1:1"));  // read beyond its end once
  EXPECT_THAT(refusal("[{\"a\": \"" + std::string(100, '\\')), HasSubstr("f:1:1"));
}

}  // namespace
}  // namespace ulysim::calibration
