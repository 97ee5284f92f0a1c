#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <utility>
#include <variant>

#include "calibration/fit.h"
#include "calibration/fit_parts.h"
#include "hw_models/cost/roofline.h"

namespace ulysim::calibration {
namespace {

constexpr double kLargeGemmFlops = 1e10;
constexpr std::uint32_t kSplitSeed = 20260;

bool timed_together(const Sample& sample) {
  return sample.kernels.size() == 2 && std::holds_alternative<kernel::Attention>(sample.kernels.back());
}

std::string group_of(const Sample& sample) {
  if (std::holds_alternative<kernel::Gemm>(sample.kernels.front())) {
    if (sample.regime == Regime::sustained) {
      return "gemm sustained";
    }
    return flops_of(sample) >= kLargeGemmFlops ? "gemm >= 10 GFLOP" : "gemm < 10 GFLOP";
  }
  const auto& a = std::get<kernel::Attention>(sample.kernels.front());
  return fmt::format("{} {} d{}", cost::name_of(a.implementation),
                     timed_together(sample) ? "both" : cost::name_of(a.direction), a.head_dim);
}

// Shapes of one family differ only in their length, and so resemble each other.
std::string family_of(const Sample& sample) {
  if (const auto* gemm = std::get_if<kernel::Gemm>(&sample.kernels.front())) {
    return fmt::format("{}x{}", gemm->n, gemm->k);
  }
  const auto& a = std::get<kernel::Attention>(sample.kernels.front());
  return fmt::format("{}:{} {}", a.heads, a.kv_heads, a.pairs == a.queries * a.keys ? "full" : "causal");
}

// Half of the families of every group, so that both halves can be fitted.
std::vector<bool> first_half(std::span<const Sample> samples) {
  std::map<std::string, std::vector<std::string>> families;
  for (const Sample& sample : samples) {
    auto& of_group = families[group_of(sample)];
    if (std::find(of_group.begin(), of_group.end(), family_of(sample)) == of_group.end()) {
      of_group.push_back(family_of(sample));
    }
  }
  std::mt19937 generator(kSplitSeed);
  std::map<std::pair<std::string, std::string>, bool> in_first;
  for (auto& [group, names] : families) {
    // Written out: std::shuffle draws differently in every standard library.
    for (std::size_t i = names.size(); i > 1; --i) {
      std::swap(names[i - 1], names[generator() % i]);
    }
    for (std::size_t i = 0; i < names.size(); ++i) {
      in_first[{group, names[i]}] = i % 2 == 0;
    }
  }
  std::vector<bool> result;
  for (const Sample& sample : samples) {
    result.push_back(in_first[{group_of(sample), family_of(sample)}]);
  }
  return result;
}

double quantile(std::vector<double> sorted, double share) {
  const auto index = static_cast<std::size_t>(std::lround(share * static_cast<double>(sorted.size() - 1)));
  return sorted.at(index);
}

Errors errors_of(std::vector<double> values) {
  if (values.empty()) {
    return {};
  }
  std::sort(values.begin(), values.end());
  return {.samples = values.size(), .median = quantile(values, 0.5), .p90 = quantile(values, 0.9)};
}

double relative_error(const Sample& sample, const spec::Gpu& gpu, const cost::KernelProfile& profile) {
  return std::abs(predicted_seconds(sample, gpu, profile) - sample.seconds) / sample.seconds;
}

}  // namespace

double predicted_seconds(const Sample& sample, const spec::Gpu& gpu, const cost::KernelProfile& profile) {
  double total = 0.0;
  for (const kernel::Kernel& kernel : sample.kernels) {
    if (sample.regime == Regime::burst && std::holds_alternative<kernel::Gemm>(kernel)) {
      cost::KernelProfile burst{.gemm = profile.gemm, .memory_bound = profile.memory_bound};
      burst.gemm.sustained.value = 1.0;
      total += cost::kernel_seconds(kernel, gpu, burst);
    } else {
      total += cost::kernel_seconds(kernel, gpu, profile);
    }
  }
  return total;
}

FitReport assess_fit(std::span<const Sample> samples, const spec::Gpu& gpu) {
  const std::vector<bool> in_first = first_half(samples);
  std::vector<Sample> halves[2];
  for (std::size_t i = 0; i < samples.size(); ++i) {
    halves[in_first[i] ? 0 : 1].push_back(samples[i]);
  }
  const cost::KernelProfile all = fit_profile(samples, gpu);
  const cost::KernelProfile by_half[2] = {fit_profile(halves[0], gpu), fit_profile(halves[1], gpu)};
  std::map<std::string, std::pair<std::vector<double>, std::vector<double>>> groups;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    auto& [fitted, held_out] = groups[group_of(samples[i])];
    fitted.push_back(relative_error(samples[i], gpu, all));
    held_out.push_back(relative_error(samples[i], gpu, by_half[in_first[i] ? 1 : 0]));
  }
  FitReport report;
  for (auto& [group, values] : groups) {
    report.groups.push_back({.group = group, .fitted = errors_of(values.first), .held_out = errors_of(values.second)});
  }
  return report;
}

std::string to_text(const FitReport& report) {
  std::string text =
      "relative error of the predicted time           fitted          held-out half\n"
      "group                          samples   median    p90      median    p90\n";
  for (const GroupErrors& g : report.groups) {
    text +=
        fmt::format("{:<30} {:>7}   {:>5.1f}%  {:>5.1f}%     {:>5.1f}%  {:>5.1f}%\n", g.group, g.fitted.samples,
                    100.0 * g.fitted.median, 100.0 * g.fitted.p90, 100.0 * g.held_out.median, 100.0 * g.held_out.p90);
  }
  return text;
}

}  // namespace ulysim::calibration
