// How far the shipped kernel profiles are from published measurements, held-out ones included. The bounds are what is
// reached, rounded up; a worse model fails, a better one may tighten them.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "calibration/fit_report.h"
#include "hw_models/cost/roofline.h"
#include "hw_models/spec/load.h"

namespace ulysim::calibration {
namespace {

using kernel::Attention;
using kernel::AttentionKernel;
using kernel::Direction;

const std::filesystem::path kCatalog = std::filesystem::path(ULYSIM_SOURCE_DIR) / "hw_models" / "catalog";

class KernelValidation : public ::testing::TestWithParam<const char*> {
 protected:
  /// Computed once a GPU: a dozen fits.
  [[nodiscard]] static const FitReport& report() {
    static std::map<std::string, FitReport> reports;
    const auto known = reports.find(GetParam());
    if (known != reports.end()) {
      return known->second;
    }
    const spec::Gpu gpu = spec::Catalog(kCatalog).load_gpu(GetParam());
    return reports.emplace(GetParam(), assess_gpu(catalog_samples(kCatalog, gpu.kernel_profile), gpu)).first->second;
  }
  [[nodiscard]] static const GroupErrors* group(const std::string& name) {
    const auto& groups = report().groups;
    const auto found =
        std::find_if(groups.begin(), groups.end(), [&](const GroupErrors& one) { return one.name == name; });
    return found == groups.end() ? nullptr : &*found;
  }
  [[nodiscard]] static bool is_b200() { return std::string(GetParam()) == "b200-sxm"; }
};

TEST_P(KernelValidation, GemmFamiliesThatWereHeldOutStayWithinSevenPercent) {
  const GroupErrors* gemm = group("gemm >= 10 GFLOP");
  ASSERT_NE(gemm, nullptr);
  EXPECT_LE(gemm->held_out_median.value(), 0.07) << to_text(report());
  EXPECT_LE(gemm->held_out_p90.value(), 0.17) << to_text(report());
}

// The goal is 6%. B200 misses it forward, and what is reached there is held: all its cuDNN samples of 8K or less are
// bursts, and half of those of 16K and more ran for a second or more, a sixth slower. Nothing short tells of that; of
// long bursts the short ones do tell.
TEST_P(KernelValidation, AttentionOfAtMost8KTellsOf16KAndMore) {
  constexpr double kGoal = 0.06;
  constexpr double kReachedOnB200 = 0.11;
  if (is_b200()) {
    const GroupErrors* bursts = group("attention forward >= 16K, from <= 8K, burst");
    ASSERT_NE(bursts, nullptr);
    EXPECT_LE(bursts->held_out_median.value(), kGoal) << to_text(report());
  }
  int scored = 0;
  for (const std::string pass : {"forward", "backward"}) {
    const GroupErrors* attention = group(fmt::format("attention {} >= 16K, from <= 8K", pass));
    if (attention != nullptr) {
      const double allowed = is_b200() && pass == "forward" ? kReachedOnB200 : kGoal;
      EXPECT_LE(attention->held_out_median.value(), allowed) << pass << "\n" << to_text(report());
      ++scored;
    }
  }
  EXPECT_GE(scored, 1);
}

TEST_P(KernelValidation, HalfOfTheSweepsOfCollectivesTellOfTheOtherHalf) {
  const GroupErrors* collectives = group("all collectives");
  ASSERT_NE(collectives, nullptr);
  EXPECT_GE(collectives->points, 60U);
  EXPECT_LE(collectives->held_out_median.value(), 0.15) << to_text(report());
}

TEST_P(KernelValidation, AttentionStaysWithinWhatWasReached) {
  for (const GroupErrors& one : report().groups) {
    if (one.name.ends_with("d128")) {
      EXPECT_LE(one.median, 0.066) << one.name << "\n" << to_text(report());
      EXPECT_LE(one.p90, 0.11) << one.name << "\n" << to_text(report());
      // A few rows less of a dozen: the curve's ends are then unsupported.
      EXPECT_LE(one.held_out_median.value_or(0.0), 0.14) << one.name << "\n" << to_text(report());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Gpus, KernelValidation, ::testing::Values("a100-80-sxm", "h100-sxm", "h200-sxm", "b200-sxm"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// A node's figures in the catalogue come from these sweeps by hand: a large all-to-all of eight GPUs takes there as
// long as its curve says.
TEST(CatalogueNodes, LargeAllToAllsAreAsFastAsTheirSweeps) {
  for (const char* name : {"dgx-a100", "dgx-h100", "hgx-h200"}) {
    const spec::Node node = spec::Catalog(kCatalog).load_node(name);
    const spec::Gpu gpu = spec::Catalog(kCatalog).load_gpu(node.gpu_name);
    const auto curves = fit_collectives(catalog_samples(kCatalog, gpu.kernel_profile));
    const auto curve = std::find_if(curves.begin(), curves.end(), [](const CollectiveCurve& one) {
      return one.collective == Collective::all_to_all && one.fabric.starts_with("NVSwitch");
    });
    ASSERT_NE(curve, curves.end()) << name;
    const double expected = 1.0 / curve->segments.back().seconds_per_byte;
    const double shipped = node.nvlink_bandwidth.value.value() * node.nvlink.all_to_all_efficiency.value;
    EXPECT_NEAR(shipped / expected, 1.0, 0.10) << name << ": " << expected / 1e9 << " GB/s by the sweeps";
  }
}

// TFLOP/s of a square, one sequence of 32 heads of 128.
double rate(const char* name, AttentionKernel implementation, Direction direction, std::int64_t length,
            Mask mask = Mask::causal) {
  const spec::Gpu gpu = spec::Catalog(kCatalog).load_gpu(name);
  const Attention a{.implementation = implementation,
                    .direction = direction,
                    .heads = 32,
                    .kv_heads = 8,
                    .head_dim = 128,
                    .queries = length,
                    .keys = length,
                    .pairs = mask == Mask::causal ? length * (length + 1) / 2 : length * length};
  return executed_flops(a).value() / cost::kernel_seconds(a, gpu, cost::find_kernel_profile(kCatalog, gpu)) / 1e12;
}

// ifromeast AI_analysis, 64K to 256K: forward 327 to 345 TFLOP/s, both 305 to 309 (3.5 = 1 + 2.5 in FLOPs).
TEST(KernelRates, FlashAttention2OnH100AtLength) {
  const double forward = rate("h100-sxm", AttentionKernel::flash_attention_2, Direction::forward, 131072);
  const double backward = rate("h100-sxm", AttentionKernel::flash_attention_2, Direction::backward, 131072);
  EXPECT_NEAR(forward, 336.0, 0.02 * 336.0);
  EXPECT_NEAR(3.5 / (1.0 / forward + 2.5 / backward), 307.0, 0.02 * 307.0);
}

// UPipe (arXiv 2602.21196) at a million tokens executes 598 to 630 TFLOP/s of kernels in two forwards and a backward:
// 4.5 = 2 + 2.5. Not used by the fit; the backward samples of the paper are for an older kernel.
TEST(KernelRates, FlashAttention3OnH100AtAMillionTokens) {
  const double forward = rate("h100-sxm", AttentionKernel::flash_attention_3, Direction::forward, 1 << 20);
  const double backward = rate("h100-sxm", AttentionKernel::flash_attention_3, Direction::backward, 1 << 20);
  EXPECT_NEAR(4.5 / (2.0 / forward + 2.5 / backward), 614.0, 0.04 * 614.0);
}

// TFLOP/s of the best sample of an implementation, with either mask; sums of both directions tell of each. Nothing
// where there is none.
double best_sample(const spec::Gpu& gpu, AttentionKernel implementation, Direction direction) {
  double best = 0.0;
  for (const Sample& sample : catalog_samples(kCatalog, gpu.kernel_profile)) {
    for (const kernel::Kernel& kernel : kernels_of(sample.probe)) {
      const auto* a = std::get_if<Attention>(&kernel);
      if (a != nullptr && a->implementation == implementation && a->direction == direction) {
        best = std::max(best, flops_of(sample.probe) / sample.seconds / 1e12);
      }
    }
  }
  return best;
}

constexpr double kFourDigits = 1.0 + 1e-4;  // profiles are rounded to four digits, which may be up

// An endless sequence may not run faster than the best rate that anybody measured, causal or full.
TEST(KernelRates, CurvesDoNotExtrapolateAboveTheEvidence) {
  int compared = 0;
  for (const char* name : {"a100-80-sxm", "h100-sxm", "h200-sxm"}) {
    const spec::Gpu gpu = spec::Catalog(kCatalog).load_gpu(name);
    for (const Direction direction : {Direction::forward, Direction::backward}) {
      for (const auto implementation :
           {AttentionKernel::flash_attention_2, AttentionKernel::flash_attention_3, AttentionKernel::cudnn}) {
        const double best = best_sample(gpu, implementation, direction);
        if (best == 0.0) {
          continue;
        }
        for (const Mask mask : {Mask::causal, Mask::full}) {
          EXPECT_LE(rate(name, implementation, direction, std::int64_t{1} << 24, mask), best * kFourDigits)
              << name << " " << cost::name_of(implementation) << " " << cost::name_of(direction);
          ++compared;
        }
      }
    }
  }
  EXPECT_EQ(compared, 28);  // FlashAttention-2 on three GPUs, -3 and cuDNN on two: two directions, two masks each
}

// NVIDIA aiconfigurator and MAMF bracket what large GEMMs sustain: A100 about 250 (FlagPerf 259), H100 650 to 750.
TEST(KernelRates, LargeGemmsSustainTheirPublishedRates) {
  const auto gemm_rate = [](const char* name) {
    const spec::Gpu gpu = spec::Catalog(kCatalog).load_gpu(name);
    const kernel::Gemm gemm{.m = 16384, .n = 8192, .k = 8192};
    return executed_flops(gemm).value() / cost::kernel_seconds(gemm, gpu, cost::find_kernel_profile(kCatalog, gpu)) /
           1e12;
  };
  EXPECT_NEAR(gemm_rate("a100-80-sxm"), 255.0, 13.0);
  EXPECT_NEAR(gemm_rate("h100-sxm"), 700.0, 50.0);
}

}  // namespace
}  // namespace ulysim::calibration
