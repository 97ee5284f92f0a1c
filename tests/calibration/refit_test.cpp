// The shipped profiles are what `ulysim calibrate fit` makes of the shipped samples, not what somebody typed.

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "calibration/commands.h"
#include "hw_models/cost/kernel_profile.h"
#include "hw_models/spec/load.h"

namespace ulysim::calibration {
namespace {

const std::filesystem::path kCatalog = std::filesystem::path(ULYSIM_SOURCE_DIR) / "hw_models" / "catalog";

// log() of another C library may move the last of four digits.
void expect_same(double fitted, double shipped, const std::string& what) {
  EXPECT_LE(std::abs(fitted - shipped), 2e-3 * std::abs(shipped) + 1e-3)
      << what << ": fitted " << fitted << ", shipped " << shipped;
}

void expect_same_profile(const cost::KernelProfile& fitted, const cost::KernelProfile& shipped) {
  EXPECT_EQ(fitted.name, shipped.name);
  EXPECT_EQ(fitted.summary, shipped.summary);
  EXPECT_EQ(fitted.gemm.tile_m.value, shipped.gemm.tile_m.value);
  EXPECT_EQ(fitted.gemm.tile_n.value, shipped.gemm.tile_n.value);
  EXPECT_EQ(fitted.gemm.efficiency.source, shipped.gemm.efficiency.source);
  expect_same(fitted.gemm.efficiency.value, shipped.gemm.efficiency.value, "gemm efficiency");
  expect_same(fitted.gemm.sustained.value, shipped.gemm.sustained.value, "gemm sustained");
  expect_same(fitted.gemm.wave_quantisation.value, shipped.gemm.wave_quantisation.value, "wave quantisation");
  expect_same(fitted.gemm.k_overhead.value, shipped.gemm.k_overhead.value, "k overhead");
  expect_same(seconds(fitted.gemm.launch.value), seconds(shipped.gemm.launch.value), "launch");
  ASSERT_EQ(fitted.attention.size(), shipped.attention.size());
  for (std::size_t i = 0; i < fitted.attention.size(); ++i) {
    const auto& f = fitted.attention[i];
    const auto& s = shipped.attention[i];
    const std::string what = fmt::format("{} {}", cost::name_of(s.implementation), cost::name_of(s.direction));
    EXPECT_EQ(f.efficiency_128.source, s.efficiency_128.source) << what;
    EXPECT_EQ(f.efficiency_128.kind, s.efficiency_128.kind) << what;
    expect_same(f.efficiency_128.value, s.efficiency_128.value, what + " efficiency_128");
    expect_same(f.efficiency_64.value, s.efficiency_64.value, what + " efficiency_64");
    expect_same(f.masked_factor.value, s.masked_factor.value, what + " masked_factor");
    expect_same(f.masked_keys.value, s.masked_keys.value, what + " masked_keys");
    EXPECT_EQ(f.masked_factor.kind, s.masked_factor.kind) << what;
    expect_same(f.saturation_keys.value, s.saturation_keys.value, what + " saturation_keys");
    expect_same(f.imbalance.value, s.imbalance.value, what + " imbalance");
  }
}

TEST(Refit, EveryShippedProfileComesFromTheShippedSamples) {
  int compared = 0;
  for (const std::string& name : spec::Catalog(kCatalog).gpu_names()) {
    const spec::Gpu gpu = spec::Catalog(kCatalog).load_gpu(name);
    if (gpu.kernel_profile != name) {
      continue;  // shares another GPU's profile
    }
    SCOPED_TRACE(name);
    const FitOutput output = run_fit(kCatalog, name);
    expect_same_profile(cost::parse_kernel_profile(output.files.back().text, name),
                        cost::find_kernel_profile(kCatalog, gpu));
    ++compared;
  }
  EXPECT_GE(compared, 3);
}

TEST(Refit, TheGenericProfileIsTakenFromTheNamedOne) {
  const FitOutput output = run_fit(kCatalog, "generic");
  EXPECT_EQ(output.files.back().path, "kernels/generic.yaml");
  expect_same_profile(cost::parse_kernel_profile(output.files.back().text, "generic"),
                      cost::find_kernel_profile(kCatalog, spec::Gpu{}));
}

TEST(Refit, TheShownProfileNamesEveryParametersSource) {
  const std::string text = show(cost::find_kernel_profile(kCatalog, spec::Gpu{.kernel_profile = "h100-sxm"}));
  EXPECT_NE(text.find("flash-attention-3 backward"), std::string::npos);
  EXPECT_NE(text.find("aiconfigurator"), std::string::npos);
  EXPECT_NE(text.find("assumed"), std::string::npos);
}

}  // namespace
}  // namespace ulysim::calibration
