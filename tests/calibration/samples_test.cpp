// Which question this answers: is there one table of samples, whoever wrote it, and can a fit read all of them?

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "calibration/fit.h"
#include "calibration/import/import.h"
#include "calibration/samples/sample_file.h"
#include "calibration/samples/table.h"
#include "sim/base/diagnostics.h"

namespace ulysim::calibration {
namespace {

using testing::HasSubstr;

const std::string kAttention =
    "gpu,implementation,direction,mask,sequences,heads,kv_heads,head_dim,queries,keys,tflops,spread,regime,source\n";

// 2·1000·1000·1000 = 2 GFLOP at 2 TFLOP/s = 1 ms.
TEST(Samples, ATimeFollowsFromThePrintedRate) {
  const auto samples =
      parse_samples("gpu,precision,m,n,k,tflops,spread,regime,source\ng,bf16,1000,1000,1000,2,0.05,burst,lab\n", "f")
          .samples;
  ASSERT_EQ(samples.size(), 1U);
  EXPECT_DOUBLE_EQ(samples[0].seconds, 1e-3);
  EXPECT_EQ(samples[0].spread, 0.05);
  EXPECT_EQ(samples[0].regime, Regime::burst);
  EXPECT_EQ(samples[0].source, "lab");
}

// Causal 100x100 has 5050 pairs: 4·10·5050·2 heads = 404,000 FLOP forward, 3.5 times that both ways.
TEST(Samples, CausalAttentionCountsItsTriangleAndBothDirections) {
  const auto samples =
      parse_samples(kAttention + "g,cudnn,both,causal,1,2,2,10,100,100,1,,sustained,lab\n", "f").samples;
  ASSERT_EQ(samples.size(), 1U);
  EXPECT_EQ(kernels_of(samples[0].probe).size(), 2U);
  EXPECT_DOUBLE_EQ(flops_of(samples[0].probe), 3.5 * 404000.0);
  EXPECT_DOUBLE_EQ(samples[0].seconds, 3.5 * 404000.0 / 1e12);
  EXPECT_FALSE(samples[0].spread.has_value());
}

// 100 tokens · 2 heads · 10 of K and of V, 2 B each, read and written: 16,000 B; no further FLOPs.
TEST(Samples, AServingLayerAlsoWritesItsCache) {
  const auto samples =
      parse_samples(kAttention + "g,cudnn,forward+kv-write,full,1,2,2,10,100,100,1,,sustained,lab\n", "f").samples;
  EXPECT_EQ(traffic(kernels_of(samples.at(0).probe).at(1)).value(), 16000);
  EXPECT_DOUBLE_EQ(flops_of(samples[0].probe), 800000.0);
}

// The wait is no work: one forward kernel's FLOPs, and time by the rate as it was published.
TEST(Samples, AForwardThatWaitedForTheHostIsOneKernel) {
  const auto samples =
      parse_samples(kAttention + "g,cudnn,forward+host-gap,full,1,2,2,10,100,100,1,,burst,lab\n", "f").samples;
  ASSERT_EQ(kernels_of(samples.at(0).probe).size(), 1U);
  EXPECT_DOUBLE_EQ(flops_of(samples[0].probe), 800000.0);
  EXPECT_DOUBLE_EQ(samples[0].seconds, 800000.0 / 1e12);
}

TEST(Samples, EveryBadRowIsNamedByItsLine) {
  try {
    (void)parse_samples(kAttention + "g,cudnn,forward,causal\n" +
                            "g,cudn,forward,causal,1,2,2,10,100,100,1,,burst,lab\n" +
                            "g,cudnn,forward,causal,1,2,2,10,100,x,1,,cold,lab\n" +
                            "g,cudnn,forward,causal,1,2,2,10,200,100,1,,burst,lab\n",
                        "f.csv");
    FAIL() << "accepted";
  } catch (const InputError& error) {
    std::string all;
    for (const Diagnostic& diagnostic : error.diagnostics()) {
      all += to_string(diagnostic) + "\n";
    }
    EXPECT_THAT(all, HasSubstr("f.csv:2:1: error: 4 cells instead of 14"));
    EXPECT_THAT(all, HasSubstr("f.csv:3:1: error: unknown implementation 'cudn'; did you mean 'cudnn'?"));
    EXPECT_THAT(all, HasSubstr("f.csv:4:1: error: 'keys': cannot read 'x'"));
    EXPECT_THAT(all, HasSubstr("f.csv:5:1: error: its sizes are beyond all bounds, or a causal mask"));
  }
}

/// One of every kind, with all that a sample can say.
std::vector<Sample> one_of_each() {
  std::vector<Sample> samples;
  for (const Probe& probe : std::vector<Probe>{
           GemmProbe{.m = 3, .n = 5, .k = 7, .batch = 2, .precision = kernel::Precision::fp8},
           AttentionProbe{.implementation = kernel::AttentionKernel::cudnn,
           .pass = Pass::backward,
           .mask = Mask::causal,
           .sequences = 2,
           .heads = 8,
           .kv_heads = 4,
           .head_dim = 64,
           .queries = 100,
           .keys = 120},
           CopyProbe{.path = CopyPath::host_to_device, .bytes = 4096},
           CollectiveProbe{
               .collective = Collective::all_reduce, .bytes = 1 << 20, .in_place = true, .via = Via::symmetric},
           LayerProbe{.scheme = Scheme::gathered,
           .pass = Pass::forward,
           .mask = Mask::full,
           .tokens = 4096,
           .heads = 8,
           .kv_heads = 2,
           .head_dim = 128}}) {
    samples.push_back({.probe = probe,
                       .gpu = "NVIDIA H200, 141 GB",
                       .ranks = 8,
                       .fabric = "NVSwitch NVLink4",
                       .software = "driver 580 \"new\"",
                       .seconds = 1.25e-5,
                       .spread = 0.02,
                       .runs = 7,
                       .regime = Regime::sustained,
                       .clock_mhz = 1755.0,
                       .power_w = 640.5,
                       .source = "=lab"});
  }
  return samples;
}

TEST(Samples, EveryKindComesBackFromItsRow) {
  for (const Sample& sample : one_of_each()) {
    const std::string row = sample_row(sample);
    const Sample again = parse_samples(sample_header() + row, "f").samples.at(0);
    EXPECT_TRUE(is_same_measurement(again, sample)) << row;
    EXPECT_EQ(again.seconds, sample.seconds);
    EXPECT_EQ(again.software, sample.software);
    EXPECT_EQ(again.clock_mhz, sample.clock_mhz);
    EXPECT_EQ(again.power_w, sample.power_w);
    EXPECT_EQ(again.runs, sample.runs);
    EXPECT_EQ(again.regime, sample.regime);
    EXPECT_EQ(sample_row(again), row);
  }
}

// What `calibrate import` writes of somebody's table, `calibrate fit` reads: kernels of 200 TFLOP/s stay 200, as far as
// a curve allows that must rise with length.
TEST(Samples, AnImportedTableIsFitted) {
  std::string table = "implementation | direction | mask | heads | kv_heads | head_dim | queries | keys | tflops\n";
  table = "| " + table;
  for (const int tokens : {4096, 8192, 16384, 32768}) {
    for (const char* mask : {"full", "causal"}) {
      table +=
          fmt::format("| flash-attention-2 | forward | {} | 32 | 32 | 128 | {} | {} | 200\n", mask, tokens, tokens);
    }
  }
  const std::array<ImportedFile, 2> files{
      import_text(table, "attention.md", {}),
      import_text("m,n,k,precision,time_us\n8192,8192,8192,bf16,4398\n8192,4096,8192,bf16,2199\n", "gemm.csv", {})};
  const std::vector<Sample> samples = parse_samples(to_csv(files), "samples.csv").samples;
  ASSERT_EQ(samples.size(), 10U);
  EXPECT_EQ(samples[0].source, "attention.md");
  spec::Gpu gpu{.name = "lab"};
  gpu.memory_bandwidth.value = Bandwidth(2e12);
  gpu.sms.value = 100;
  gpu.bf16.value = FlopRate(400e12);
  const cost::KernelProfile profile = fit_profile(samples, gpu).profile;
  for (const Sample& sample : samples) {
    const double expected = std::holds_alternative<GemmProbe>(sample.probe) ? 250.0 : 200.0;
    EXPECT_NEAR(flops_of(sample.probe) / predicted_seconds(sample, gpu, profile) / 1e12, expected, 0.07 * expected)
        << describe(sample.probe);
  }
}

class Resumed : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove(path_); }
  void TearDown() override { std::filesystem::remove(path_); }
  [[nodiscard]] std::string text() const {
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::filesystem::path path_{std::filesystem::path(testing::TempDir()) / fmt::format("resumed_{}.csv", getpid())};
  Sample first_{.probe = CopyProbe{.bytes = 1024}, .gpu = "GPU", .seconds = 2e-6};
};

TEST_F(Resumed, SamplesAreOnDiskAtOnceAndNotMeasuredAgain) {
  SampleFile file(path_, Existing::refuse);
  file.append(first_);
  EXPECT_EQ(text(), sample_header() + sample_row(first_));
  Sample second = first_;
  second.ranks = 2;
  const SampleFile resumed(path_, Existing::resume);
  EXPECT_NE(resumed.find(first_), nullptr);
  EXPECT_EQ(resumed.find(second), nullptr);
}

TEST_F(Resumed, ATornLineIsDropped) {
  std::ofstream(path_) << sample_header() << sample_row(first_) << "copy,,1,20";
  const SampleFile file(path_, Existing::resume);
  EXPECT_EQ(text(), sample_header() + sample_row(first_));
}

TEST_F(Resumed, AFileOfSomebodyElseIsNeverWrittenTo) {
  std::ofstream(path_) << "my,notes\n";
  EXPECT_THROW(SampleFile(path_, Existing::refuse), InputError);
  EXPECT_THROW(SampleFile(path_, Existing::resume), InputError);
  EXPECT_EQ(text(), "my,notes\n");
}

}  // namespace
}  // namespace ulysim::calibration
