#include "hw_models/cost/kernel_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "sim/base/diagnostics.h"

namespace ulysim::cost {
namespace {

const std::filesystem::path kCatalog = std::filesystem::path(ULYSIM_SOURCE_DIR) / "hw_models" / "catalog";

std::string generic_text() {
  std::ifstream file(kCatalog / "kernels" / "generic.yaml");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string with(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string complaints(const std::string& text) {
  try {
    (void)parse_kernel_profile(text, "p.yaml");
  } catch (const InputError& error) {
    std::string all;
    for (const Diagnostic& diagnostic : error.diagnostics()) {
      all += to_string(diagnostic) + "\n";
    }
    return all;
  }
  return "";
}

TEST(KernelProfileFile, EveryShippedProfileIsReadAndBearsItsFileName) {
  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kCatalog / "kernels")) {
    EXPECT_EQ(load_kernel_profile(entry.path()).name, entry.path().stem().string());
    ++found;
  }
  EXPECT_GE(found, 4);
}

TEST(KernelProfileFile, AGpuWithoutAProfileTakesTheGenericOne) {
  EXPECT_EQ(find_kernel_profile(kCatalog, spec::Gpu{.name = "new"}).name, "generic");
  EXPECT_EQ(find_kernel_profile(kCatalog, spec::Gpu{.name = "x", .kernel_profile = "h100-sxm"}).name, "h100-sxm");
  EXPECT_THROW((void)find_kernel_profile(kCatalog, spec::Gpu{.name = "x", .kernel_profile = "absent"}), InputError);
}

TEST(KernelProfileFile, MistakesAreLocatedAndAllReported) {
  std::string text = with(generic_text(), "wave_quantisation", "wave_quantization");
  text = with(text, "direction: backward", "direction: sideways");
  const std::string all = complaints(text);
  EXPECT_THAT(all, ::testing::HasSubstr("missing key 'gemm.wave_quantisation'"));
  EXPECT_THAT(all, ::testing::HasSubstr("wave_quantization"));
  EXPECT_THAT(all, ::testing::HasSubstr("sideways"));
  EXPECT_THAT(all, ::testing::HasSubstr("p.yaml:"));
}

TEST(KernelProfileFile, AMissingOrDoubledImplementationIsNamed) {
  const std::string all = complaints(with(generic_text(), "implementation: sdpa", "implementation: cudnn"));
  EXPECT_THAT(all, ::testing::HasSubstr("2 entries for cudnn forward"));
  EXPECT_THAT(all, ::testing::HasSubstr("0 entries for sdpa forward"));
}

TEST(KernelProfileFile, WithoutMaskedKeysThereAreNone) {
  std::string text = generic_text();
  const auto at = text.find("    masked_keys:");
  ASSERT_NE(at, std::string::npos);
  text.erase(at, text.find('\n', at) + 1 - at);
  const AttentionProfile first = parse_kernel_profile(text, "p.yaml").attention.front();
  EXPECT_EQ(first.masked_keys.value, 0.0);
  EXPECT_EQ(first.masked_keys.kind, spec::SourceKind::assumed);
  EXPECT_FALSE(first.masked_keys.source.empty());
}

TEST(KernelProfileFile, EfficienciesAboveThePeakAreRefused) {
  const std::string all = complaints(with(generic_text(), "efficiency: {value: 0.", "efficiency: {value: 1."));
  EXPECT_THAT(all, ::testing::HasSubstr("gemm.efficiency"));
}

}  // namespace
}  // namespace ulysim::cost
