#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "calibration/fit_parts.h"
#include "calibration/least_squares.h"
#include "hw_models/cost/roofline.h"

namespace ulysim::calibration {
namespace {

using cost::AttentionProfile;
using kernel::Attention;
using kernel::AttentionKernel;
using kernel::Direction;

// Used where no sample tells. H100: FlashAttention-2 backward/forward 322/370, FlashAttention-3 561/648 at 16K;
// cuDNN on H200 581/688 at 32K. Head size 64 against 128: FlashAttention-3 497/648.
constexpr double kBackwardRatio = 0.86;
constexpr double kHead64Ratio = 0.77;
constexpr double kMaskedFactor = 0.95;

const Attention& attention_of(const Sample& sample) {
  return std::get<Attention>(sample.kernels.front());
}
bool is_both(const Sample& sample) {
  return sample.kernels.size() == 2 && std::holds_alternative<Attention>(sample.kernels.back());
}
bool is_forward(const Sample& s) {
  return !is_both(s) && attention_of(s).direction == Direction::forward;
}
bool is_backward(const Sample& s) {
  return !is_both(s) && attention_of(s).direction == Direction::backward;
}
bool is_head_64(const Sample& s) {
  return attention_of(s).head_dim == 64;
}
bool is_masked(const Sample& s) {
  return attention_of(s).pairs < attention_of(s).queries * attention_of(s).keys;
}

template <class Predicate>
SampleList only(const SampleList& samples, Predicate predicate) {
  SampleList result;
  std::copy_if(samples.begin(), samples.end(), std::back_inserter(result),
               [&](const Sample* sample) { return predicate(*sample); });
  return result;
}

/// What one implementation's two directions are built from. What the samples of a direction cannot tell, it takes
/// from the other one.
struct Shape {
  double forward_128{};
  double backward_128{};
  double head_64_ratio{kHead64Ratio};
  double forward_masked{kMaskedFactor};
  double backward_masked{};
  double forward_saturation{};
  double backward_saturation{};
  double imbalance{};
};

/// A member of Shape that the samples can tell, with its range.
struct Free {
  double Shape::*member{};
  Unknown unknown{};
};

// The asymptote may not exceed the best rate that was measured: a curve through short samples says nothing about
// longer ones.
double best_fraction(const SampleList& samples, const spec::Gpu& gpu) {
  double best = 0.0;
  for (const Sample* sample : samples) {
    best = std::max(best, flops_of(*sample) / sample->seconds / gpu.bf16.value.value());
  }
  return best;
}

bool has_both_masks(const SampleList& samples) {
  const std::size_t masked = only(samples, is_masked).size();
  return masked > 0 && masked < samples.size();
}

std::vector<Free> free_members(const SampleList& samples, const spec::Gpu& gpu) {
  const SampleList forward = only(samples, is_forward);
  const SampleList backward = only(samples, [](const Sample& s) { return !is_forward(s); });
  const auto asymptote = [&](const SampleList& told_by) {
    const double ceiling = best_fraction(told_by, gpu);
    return Unknown{.start = 0.9 * ceiling, .low = 0.2 * ceiling, .high = ceiling};
  };
  constexpr Unknown kSaturation{.start = 200.0, .low = 0.0, .high = 4000.0};
  constexpr Unknown kMasked{.start = kMaskedFactor, .low = 0.5, .high = 1.0};
  std::vector<Free> free{
      {&Shape::forward_128, asymptote(forward.empty() ? samples : forward)},
      {&Shape::forward_saturation, kSaturation},
      {&Shape::imbalance, {.start = 0.5, .low = 0.0, .high = 1.0}},
  };
  if (!backward.empty()) {
    const SampleList alone = only(backward, is_backward);
    free.push_back({&Shape::backward_128, asymptote(alone.empty() ? backward : alone)});
    free.push_back({&Shape::backward_saturation, kSaturation});
  }
  if (!only(samples, is_head_64).empty()) {
    free.push_back({&Shape::head_64_ratio, {.start = kHead64Ratio, .low = 0.5, .high = 1.0}});
  }
  if (has_both_masks(samples)) {
    free.push_back({&Shape::forward_masked, kMasked});
    // Sums of both directions cannot tell their mask factors apart.
    if (has_both_masks(forward) && has_both_masks(backward)) {
      free.push_back({&Shape::backward_masked, kMasked});
    }
  }
  return free;
}

Shape completed(Shape shape) {
  const auto fill = [](double& value, double otherwise) { value = value > 0.0 ? value : otherwise; };
  fill(shape.backward_128, kBackwardRatio * shape.forward_128);
  fill(shape.backward_masked, shape.forward_masked);
  return shape;
}

void apply(const Shape& shape, AttentionProfile& forward, AttentionProfile& backward) {
  forward.efficiency_128.value = shape.forward_128;
  forward.efficiency_64.value = shape.forward_128 * shape.head_64_ratio;
  forward.saturation_keys.value = shape.forward_saturation;
  backward.efficiency_128.value = shape.backward_128;
  backward.efficiency_64.value = backward.efficiency_128.value * shape.head_64_ratio;
  backward.saturation_keys.value = shape.backward_saturation;
  forward.masked_factor.value = shape.forward_masked;
  backward.masked_factor.value = shape.backward_masked;
  forward.imbalance.value = shape.imbalance;
  backward.imbalance.value = shape.imbalance;
}

struct Entries {
  AttentionProfile forward{};
  AttentionProfile backward{};
};

Entries blank(AttentionKernel implementation, const cost::KernelProfile& profile) {
  const spec::Sourced<Duration> launch{
      .value = profile.gemm.launch.value, .source = "as the launch of a GEMM", .kind = spec::SourceKind::assumed};
  AttentionProfile forward{.implementation = implementation, .direction = Direction::forward, .launch = launch};
  AttentionProfile backward = forward;
  backward.direction = Direction::backward;
  return {.forward = forward, .backward = backward};
}

void describe(AttentionProfile& entry, const SampleList& samples, const SampleList& of_head_64,
              const SampleList& for_mask, double spread, const std::string& name) {
  const auto sourced = [&](double value, const SampleList& told_by, const char* otherwise) {
    return told_by.empty() ? assumed_value(rounded(value), otherwise) : fitted_value(rounded(value), told_by, name);
  };
  constexpr const char* kBackward = "no backward samples: 0.86 of forward, as FlashAttention-3 and cuDNN on H100, H200";
  entry.efficiency_128 = sourced(entry.efficiency_128.value, samples, kBackward);
  entry.efficiency_64 =
      sourced(entry.efficiency_64.value, of_head_64, "no samples of head size 64: 0.77 of 128, as FlashAttention-3");
  entry.efficiency_128.spread = spread;
  entry.efficiency_64.spread = spread;
  entry.saturation_keys = sourced(entry.saturation_keys.value, samples, kBackward);
  entry.imbalance = sourced(entry.imbalance.value, samples, kBackward);
  entry.masked_factor = sourced(entry.masked_factor.value, for_mask,
                                "no samples both full and causal: 0.95, as FlashAttention-3 on H100");
}

Entries fit_implementation(AttentionKernel implementation, const SampleList& samples, const spec::Gpu& gpu,
                           const cost::KernelProfile& base) {
  Entries entries = blank(implementation, base);
  cost::KernelProfile working = base;
  working.attention_sustained.value = 1.0;
  working.attention = {entries.forward, entries.backward};
  const std::vector<Free> free = free_members(samples, gpu);
  std::vector<Unknown> unknowns;
  for (const Free& member : free) {
    unknowns.push_back(member.unknown);
  }
  const auto shape_of = [&](const std::vector<double>& x) {
    Shape shape;
    for (std::size_t i = 0; i < free.size(); ++i) {
      shape.*free[i].member = x[i];
    }
    return completed(shape);
  };
  const Residuals residuals = [&](const std::vector<double>& x) {
    apply(shape_of(x), working.attention[0], working.attention[1]);
    std::vector<double> r;
    r.reserve(samples.size());
    for (const Sample* sample : samples) {
      double total = 0.0;
      for (const kernel::Kernel& kernel : sample->kernels) {
        total += cost::kernel_seconds(kernel, gpu, working);
      }
      r.push_back(std::log(total / sample->seconds));
    }
    return r;
  };
  const std::vector<double> x = least_squares(residuals, weights_by_source(samples), unknowns);
  Shape shape = shape_of(x);
  const SampleList backward = only(samples, [](const Sample& s) { return !is_forward(s); });
  if (backward.empty()) {
    shape.backward_saturation = shape.forward_saturation;
  }
  apply(shape, entries.forward, entries.backward);
  const double spread = rounded(robust_sigma(residuals(x)));
  const SampleList forward = only(samples, [](const Sample& s) { return !is_backward(s); });
  const SampleList for_mask = has_both_masks(samples) ? samples : SampleList{};
  describe(entries.forward, forward, only(forward, is_head_64), for_mask, spread, base.name);
  describe(entries.backward, backward, only(backward, is_head_64), for_mask, spread, base.name);
  return entries;
}

// Copies an implementation's entries for one that has no samples of its own.
Entries stand_in(AttentionKernel implementation, const Entries& from, const std::string& why) {
  Entries entries = from;
  for (AttentionProfile* entry : {&entries.forward, &entries.backward}) {
    entry->implementation = implementation;
    for (auto* value : {&entry->efficiency_64, &entry->efficiency_128, &entry->masked_factor, &entry->saturation_keys,
                        &entry->imbalance}) {
      value->source = why;
      value->kind = spec::SourceKind::assumed;
    }
  }
  return entries;
}

}  // namespace

void fit_attention(const SampleList& samples, const spec::Gpu& gpu, cost::KernelProfile& profile) {
  std::optional<Entries> flash_2;
  profile.attention.clear();
  for (const AttentionKernel implementation : {AttentionKernel::flash_attention_2, AttentionKernel::flash_attention_3,
                                               AttentionKernel::cudnn, AttentionKernel::sdpa}) {
    const SampleList own =
        only(samples, [&](const Sample& s) { return attention_of(s).implementation == implementation; });
    const bool has_forward = !only(own, [](const Sample& s) { return !is_backward(s); }).empty();
    Entries entries;
    if (has_forward) {
      entries = fit_implementation(implementation, own, gpu, profile);
    } else {
      ULYSIM_CHECK(flash_2.has_value(), "flash-attention-2 has no forward samples");
      entries = stand_in(implementation, *flash_2,
                         fmt::format("no samples of {} here: as flash-attention-2", cost::name_of(implementation)));
    }
    if (implementation == AttentionKernel::flash_attention_2) {
      flash_2 = entries;
    }
    profile.attention.push_back(entries.forward);
    profile.attention.push_back(entries.backward);
  }
}

}  // namespace ulysim::calibration
