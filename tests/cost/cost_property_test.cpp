// Monotone in work, never under the data sheet: for every shipped profile, over seeded shapes.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "hw_models/cost/cost_model.h"
#include "hw_models/cost/roofline.h"

namespace ulysim::cost {
namespace {

using kernel::Attention;
using kernel::Gemm;
using kernel::Kernel;
using kernel::MemoryBound;

constexpr std::uint32_t kSeed = 7;
constexpr int kShapes = 4000;

spec::Gpu hopper() {
  spec::Gpu gpu{.name = "h100"};
  gpu.memory_bandwidth.value = Bandwidth(3.35e12);
  gpu.sms.value = 132;
  gpu.bf16.value = FlopRate(989e12);
  return gpu;
}

std::vector<KernelProfile> shipped_profiles() {
  std::vector<std::filesystem::path> paths;
  const auto folder = std::filesystem::path(ULYSIM_SOURCE_DIR) / "hw_models" / "catalog" / "kernels";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<KernelProfile> profiles;
  for (const auto& path : paths) {
    profiles.push_back(load_kernel_profile(path));
  }
  return profiles;
}

class Shapes {
 public:
  // Uniform over octaves, so that small and huge extents are equally likely.
  std::int64_t extent(int octaves) {
    const std::int64_t base = std::int64_t{1} << (generator_() % static_cast<std::uint32_t>(octaves));
    return base + static_cast<std::int64_t>(generator_() % static_cast<std::uint64_t>(base));
  }
  std::size_t pick(std::size_t count) { return generator_() % count; }

  Gemm gemm() { return {.m = extent(20), .n = extent(17), .k = extent(17), .batch = extent(3)}; }

  Attention attention() {
    Attention a{.implementation = static_cast<kernel::AttentionKernel>(pick(4)),
                .direction = static_cast<kernel::Direction>(pick(2)),
                .sequences = extent(3),
                .head_dim = 8 * extent(6),
                .queries = extent(20)};
    a.kv_heads = extent(4);
    a.heads = a.kv_heads * extent(3);
    a.keys = a.queries + static_cast<std::int64_t>(pick(2)) * extent(20);
    return a;
  }

 private:
  std::mt19937 generator_{kSeed};
};

std::int64_t causal(std::int64_t queries, std::int64_t keys) {
  return queries * keys - queries * (queries - 1) / 2;
}

std::string text_of(const Attention& a) {
  return fmt::format("{} {} s{} h{}/{} d{} {}x{} pairs {}", name_of(a.implementation), name_of(a.direction),
                     a.sequences, a.heads, a.kv_heads, a.head_dim, a.queries, a.keys, a.pairs);
}

void expect_above_data_sheet(const Kernel& kernel, double seconds, const std::string& what) {
  const double flops = executed_flops(kernel).value() / 989e12;
  const double bytes = static_cast<double>(traffic(kernel).value()) / 3.35e12;
  EXPECT_GE(seconds, std::max(flops, bytes)) << what << ", seed " << kSeed;
}

TEST(CostProperty, GemmsGrowWithEveryExtentAndObeyTheDataSheet) {
  const spec::Gpu gpu = hopper();
  for (const KernelProfile& profile : shipped_profiles()) {
    Shapes shapes;
    for (int i = 0; i < kShapes; ++i) {
      const Gemm gemm = shapes.gemm();
      const double before = gemm_seconds(gemm, gpu, profile);
      const std::string what = fmt::format("{}: {}x{}x{}", profile.name, gemm.m, gemm.n, gemm.k);
      expect_above_data_sheet(gemm, before, what);
      for (std::int64_t Gemm::*extent : {&Gemm::m, &Gemm::n, &Gemm::k, &Gemm::batch}) {
        Gemm larger = gemm;
        larger.*extent += shapes.extent(10);
        EXPECT_GE(gemm_seconds(larger, gpu, profile), before) << what << ", seed " << kSeed;
      }
    }
  }
}

TEST(CostProperty, AttentionGrowsWithEveryExtentAndObeysTheDataSheet) {
  const spec::Gpu gpu = hopper();
  for (const KernelProfile& profile : shipped_profiles()) {
    Shapes shapes;
    for (int i = 0; i < kShapes; ++i) {
      Attention a = shapes.attention();
      const bool masked = shapes.pick(2) == 0;
      const auto with_pairs = [&](Attention shape) {
        shape.pairs = masked ? causal(shape.queries, shape.keys) : shape.queries * shape.keys;
        return shape;
      };
      a = with_pairs(a);
      const double before = attention_seconds(a, gpu, profile);
      expect_above_data_sheet(a, before, text_of(a));
      std::vector<Attention> larger(5, a);
      larger[0].sequences += 1;
      larger[1].heads += a.kv_heads;
      larger[2].head_dim += 8;
      larger[3].keys += shapes.extent(12);
      larger[4].queries = std::min(a.keys, a.queries + shapes.extent(12));
      for (const Attention& shape : larger) {
        const Attention next = with_pairs(shape);
        // Rounding of a factor that cancels may cost the last bits.
        EXPECT_GE(attention_seconds(next, gpu, profile), before * (1.0 - 1e-12))
            << profile.name << ": " << text_of(a) << " -> " << text_of(next) << ", seed " << kSeed;
      }
    }
  }
}

// The diagonal's share falls with length: a causal square comes ever nearer to the full one's rate, short of the
// lasting factor. Enough heads that no SM waits for another.
TEST(CostProperty, ACausalSquareNearsTheFullRateWithLength) {
  const spec::Gpu gpu = hopper();
  for (const KernelProfile& profile : shipped_profiles()) {
    for (const AttentionProfile& entry : profile.attention) {
      double before = 0.0;
      for (std::int64_t s = 4096; s <= (std::int64_t{1} << 22); s *= 2) {
        Attention a{.implementation = entry.implementation,
                    .direction = entry.direction,
                    .heads = 512,
                    .kv_heads = 64,
                    .head_dim = 128,
                    .queries = s,
                    .keys = s,
                    .pairs = s * s};
        const double full = attention_seconds(a, gpu, profile);
        a.pairs = causal(s, s);
        const double ratio =
            full * static_cast<double>(a.pairs) / static_cast<double>(s * s) / attention_seconds(a, gpu, profile);
        EXPECT_GT(ratio, before) << profile.name << ": " << text_of(a);
        before = ratio;
      }
      EXPECT_NEAR(before, entry.masked_factor.value, 1e-3) << profile.name << ": " << name_of(entry.implementation);
    }
  }
}

TEST(CostProperty, UnmaskingPairsNeverSavesTime) {
  const spec::Gpu gpu = hopper();
  for (const KernelProfile& profile : shipped_profiles()) {
    Shapes shapes;
    for (int i = 0; i < kShapes; ++i) {
      Attention a = shapes.attention();
      const std::int64_t all = a.queries * a.keys;
      a.pairs =
          1 + static_cast<std::int64_t>(static_cast<double>(all - 1) * static_cast<double>(shapes.pick(100)) / 100.0);
      Attention more = a;
      more.pairs = std::min(all, a.pairs + a.queries * shapes.extent(8));
      EXPECT_GE(attention_seconds(more, gpu, profile), attention_seconds(a, gpu, profile) * (1.0 - 1e-12))
          << profile.name << ": " << text_of(a) << " -> " << more.pairs << ", seed " << kSeed;
    }
  }
}

}  // namespace
}  // namespace ulysim::cost
