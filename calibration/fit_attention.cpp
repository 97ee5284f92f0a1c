#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "calibration/fit_parts.h"
#include "calibration/least_squares.h"
#include "hw_models/cost/roofline.h"

namespace ulysim::calibration {
namespace {

using cost::AttentionProfile;
using kernel::AttentionKernel;
using kernel::Direction;

// Used where no sample tells. H100: FlashAttention-2 backward/forward 322/370, FlashAttention-3 561/648 at 16K;
// cuDNN on H200 581/688 at 32K. Head size 64 against 128: FlashAttention-3 497/648.
constexpr double kBackwardRatio = 0.86;
constexpr double kHead64Ratio = 0.77;
// Forward, H100: FlashAttention-2 and -3 work tiles of 128 rows by 64 to 176 keys, half of each beyond the diagonal.
constexpr double kMaskedKeys = 128.0;
constexpr double kMostMaskedKeys = 1024.0;
// A loss at any length shows only where the diagonal's tiles no longer count: 1% of the keys of a row or less.
constexpr std::int64_t kLongEnough = 32768;

const AttentionProbe& attention_of(const Sample& sample) {
  return std::get<AttentionProbe>(sample.probe);
}
bool is_both(const Sample& s) {
  return attention_of(s).pass == Pass::both;
}
bool is_backward(const Sample& s) {
  return attention_of(s).pass == Pass::backward;
}
bool is_forward(const Sample& s) {
  return !is_both(s) && !is_backward(s);
}
bool is_head_64(const Sample& s) {
  return attention_of(s).head_dim == 64;
}
bool is_masked(const Sample& s) {
  return attention_of(s).mask == Mask::causal;
}

bool is_long_masked(const Sample& s) {
  return is_masked(s) && attention_of(s).queries >= kLongEnough;
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
  double forward_masked{1.0};
  double backward_masked{1.0};
  double forward_masked_keys{kMaskedKeys};
  double backward_masked_keys{kMaskedKeys};
  double forward_saturation{};
  double backward_saturation{};
  double imbalance{};
  double host_gap{};  // these two: Circumstances
  double burst_gain{1.0};
};

/// A member of Shape that the samples can tell, with its range.
struct Free {
  double Shape::*member{};
  Unknown unknown{};
  const char* name{};
};

// No call can have waited longer for the host than the shortest took.
double longest_host_gap(const SampleList& samples) {
  const SampleList waiting = only(samples, has_host_gap);
  const auto shortest = std::min_element(waiting.begin(), waiting.end(),
                                         [](const Sample* a, const Sample* b) { return a->seconds < b->seconds; });
  return shortest == waiting.end() ? 0.0 : (*shortest)->seconds;
}

// The asymptote may not exceed the best rate that was measured: a curve through short samples says nothing about
// longer ones. If that call waited for the host, its kernel was faster by no more than the longest such wait.
double best_fraction(const SampleList& samples, const spec::Gpu& gpu) {
  const auto rate = [](const Sample* s) { return flops_of(s->probe) / s->seconds; };
  const Sample* best = *std::max_element(samples.begin(), samples.end(),
                                         [&](const Sample* a, const Sample* b) { return rate(a) < rate(b); });
  const double gap = has_host_gap(*best) ? longest_host_gap(samples) : 0.0;
  const double alone = best->seconds > gap ? best->seconds - gap : best->seconds;
  return flops_of(best->probe) / alone / gpu.bf16.value.value();
}

// Bursts and long runs of one source, which are one machine and one way to measure, tell how much faster bursts are.
bool tells_of_bursts(const SampleList& samples) {
  return std::any_of(samples.begin(), samples.end(), [&](const Sample* burst) {
    return is_burst(*burst) && std::any_of(samples.begin(), samples.end(), [&](const Sample* run) {
             return is_sustained(*run) && run->source == burst->source;
           });
  });
}

// Sums of both directions tell of both.
SampleList telling_of(const SampleList& samples, Direction direction) {
  return only(samples,
              [&](const Sample& s) { return is_both(s) || is_backward(s) == (direction == Direction::backward); });
}

bool has_both_masks(const SampleList& samples) {
  const std::size_t masked = only(samples, is_masked).size();
  return masked > 0 && masked < samples.size();
}

bool has_long_masks(const SampleList& samples) {
  return has_both_masks(samples) && !only(samples, is_long_masked).empty();
}

/// The samples that tell of the mask's cost, by direction. One list for both where they cannot tell them apart (sums
/// of both, one direction alone); empty where none does.
struct MaskSamples {
  SampleList forward{};
  SampleList backward{};
  bool apart{};
};

template <class Predicate>
MaskSamples mask_samples(const SampleList& samples, Predicate tells) {
  MaskSamples result{.forward = telling_of(samples, Direction::forward),
                     .backward = telling_of(samples, Direction::backward)};
  result.apart = tells(only(samples, is_forward)) && tells(result.backward);
  if (result.apart) {
    return result;
  }
  const SampleList one = tells(result.forward) ? result.forward : result.backward;
  const SampleList told = tells(one) ? one : SampleList{};
  return {.forward = told, .backward = told};
}

std::vector<Free> free_members(const SampleList& samples, const spec::Gpu& gpu) {
  const SampleList forward = only(samples, is_forward);
  const SampleList backward = only(samples, [](const Sample& s) { return !is_forward(s); });
  const bool burst_gain = tells_of_bursts(samples);
  const auto asymptote = [&](const SampleList& told_by) {
    const SampleList runs = only(told_by, is_sustained);
    const double ceiling = best_fraction(burst_gain && !runs.empty() ? runs : told_by, gpu);
    return Unknown{.start = 0.9 * ceiling, .low = 0.2 * ceiling, .high = ceiling};
  };
  constexpr Unknown kSaturation{.start = 200.0, .low = 0.0, .high = 4000.0};
  constexpr Unknown kMaskedFactor{.start = 0.95, .low = 0.5, .high = 1.0};
  constexpr Unknown kExtraKeys{.start = kMaskedKeys, .low = 0.0, .high = kMostMaskedKeys};
  std::vector<Free> free{
      {&Shape::forward_128, asymptote(forward.empty() ? samples : forward), "forward efficiency_128"},
      {&Shape::forward_saturation, kSaturation, "forward saturation_keys"},
      {&Shape::imbalance, {.start = 0.5, .low = 0.0, .high = 1.0}, "imbalance"},
  };
  if (!backward.empty()) {
    const SampleList alone = only(backward, is_backward);
    free.push_back({&Shape::backward_128, asymptote(alone.empty() ? backward : alone), "backward efficiency_128"});
    free.push_back({&Shape::backward_saturation, kSaturation, "backward saturation_keys"});
  }
  if (!only(samples, is_head_64).empty()) {
    free.push_back(
        {&Shape::head_64_ratio, {.start = kHead64Ratio, .low = 0.5, .high = 1.0}, "efficiency_64 / efficiency_128"});
  }
  if (const double most = longest_host_gap(samples); most > 0.0) {
    free.push_back({&Shape::host_gap, {.start = 0.5 * most, .low = 0.0, .high = most}, "host gap s"});
  }
  if (burst_gain) {
    free.push_back({&Shape::burst_gain, {.start = 1.1, .low = 1.0, .high = 2.0}, "burst / sustained"});
  }
  const auto add_mask = [&](const MaskSamples& told_by, const Free& ahead, const Free& back) {
    if (!told_by.forward.empty()) {
      free.push_back(ahead);
    }
    if (told_by.apart) {
      free.push_back(back);
    }
  };
  add_mask(mask_samples(samples, has_both_masks), {&Shape::forward_masked_keys, kExtraKeys, "forward masked_keys"},
           {&Shape::backward_masked_keys, kExtraKeys, "backward masked_keys"});
  add_mask(mask_samples(samples, has_long_masks), {&Shape::forward_masked, kMaskedFactor, "forward masked_factor"},
           {&Shape::backward_masked, kMaskedFactor, "backward masked_factor"});
  return free;
}

Shape shape_of(const std::vector<Free>& free, const std::vector<double>& x) {
  Shape shape;
  for (std::size_t i = 0; i < free.size(); ++i) {
    shape.*free[i].member = x[i];
  }
  const auto fill = [&](double Shape::*member, double otherwise) {
    if (std::none_of(free.begin(), free.end(), [&](const Free& f) { return f.member == member; })) {
      shape.*member = otherwise;
    }
  };
  fill(&Shape::backward_128, kBackwardRatio * shape.forward_128);
  fill(&Shape::backward_saturation, shape.forward_saturation);
  fill(&Shape::backward_masked, shape.forward_masked);
  fill(&Shape::backward_masked_keys, shape.forward_masked_keys);
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
  forward.masked_keys.value = shape.forward_masked_keys;
  backward.masked_keys.value = shape.backward_masked_keys;
  forward.imbalance.value = shape.imbalance;
  backward.imbalance.value = shape.imbalance;
}

struct Entries {
  AttentionProfile forward{};
  AttentionProfile backward{};
  Covariance covariance{};
  Circumstances circumstances{};
};

Circumstances circumstances_of(const Shape& shape) {
  return {.host_gap = shape.host_gap, .burst_gain = shape.burst_gain};
}

Entries blank(AttentionKernel implementation, const cost::KernelProfile& profile) {
  const spec::Sourced<Duration> launch{
      .value = profile.gemm.launch.value, .source = "as the launch of a GEMM", .kind = spec::SourceKind::assumed};
  AttentionProfile forward{.implementation = implementation, .direction = Direction::forward, .launch = launch};
  AttentionProfile backward = forward;
  backward.direction = Direction::backward;
  return {.forward = forward, .backward = backward};
}

void describe(AttentionProfile& entry, const SampleList& samples, const SampleList& of_head_64,
              const SampleList& for_mask, const SampleList& for_long_mask, double spread, const std::string& name) {
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
  entry.masked_factor = sourced(entry.masked_factor.value, for_long_mask,
                                "no causal samples of 32K or more beside full ones: none, as cuDNN on H200, where "
                                "causal reaches full (cudnn-frontend: backward 581 against 572 TFLOP/s at 32K; forward "
                                "688 at 32K against 702 at 16K, the same keys per row)");
  entry.masked_keys = sourced(entry.masked_keys.value, for_mask, "no samples both full and causal: one tile");
}

Entries fit_implementation(AttentionKernel implementation, const SampleList& samples, const spec::Gpu& gpu,
                           const cost::KernelProfile& base) {
  Entries entries = blank(implementation, base);
  cost::KernelProfile working = base;
  working.attention_sustained.value = 1.0;
  working.attention = {entries.forward, entries.backward};
  const std::vector<Free> free = free_members(samples, gpu);
  std::vector<Unknown> unknowns;
  unknowns.reserve(free.size());
  for (const Free& member : free) {
    unknowns.push_back(member.unknown);
  }
  const TimedKernels timed(samples);
  const Residuals residuals = [&](const std::vector<double>& x) {
    const Shape shape = shape_of(free, x);
    apply(shape, working.attention[0], working.attention[1]);
    return timed.log_ratios(gpu, working, circumstances_of(shape));
  };
  const Estimate estimate = least_squares(residuals, weights_by_source(samples), unknowns);
  const std::vector<double>& x = estimate.values;
  entries.covariance = {.part = std::string(cost::name_of(implementation)), .values = x, .matrix = estimate.covariance};
  for (const Free& member : free) {
    entries.covariance.parameters.emplace_back(member.name);
  }
  apply(shape_of(free, x), entries.forward, entries.backward);
  entries.circumstances = circumstances_of(shape_of(free, x));
  const double spread = rounded(robust_sigma(residuals(x)));
  const SampleList forward = telling_of(samples, Direction::forward);
  const SampleList backward = telling_of(samples, Direction::backward);
  const MaskSamples mask = mask_samples(samples, has_both_masks);
  const MaskSamples long_mask = mask_samples(samples, has_long_masks);
  describe(entries.forward, forward, only(forward, is_head_64), mask.forward, long_mask.forward, spread, base.name);
  describe(entries.backward, backward, only(backward, is_head_64), mask.backward, long_mask.backward, spread,
           base.name);
  return entries;
}

// Copies an implementation's entries for one that has no samples of its own.
Entries stand_in(AttentionKernel implementation, const Entries& from, const std::string& why) {
  Entries entries = from;
  for (AttentionProfile* entry : {&entries.forward, &entries.backward}) {
    entry->implementation = implementation;
    for (auto* value : {&entry->efficiency_64, &entry->efficiency_128, &entry->masked_factor, &entry->masked_keys,
                        &entry->saturation_keys, &entry->imbalance}) {
      value->source = why;
      value->kind = spec::SourceKind::assumed;
    }
  }
  return entries;
}

}  // namespace

bool has_forward(const SampleList& attention) {
  return std::any_of(attention.begin(), attention.end(), [](const Sample* sample) { return !is_backward(*sample); });
}

AttentionFit fit_attention(const SampleList& samples, const spec::Gpu& gpu, cost::KernelProfile& profile) {
  using enum AttentionKernel;
  constexpr AttentionKernel kAll[] = {flash_attention_2, flash_attention_3, cudnn, sdpa};
  std::map<AttentionKernel, Entries> fitted;
  for (const AttentionKernel implementation : kAll) {
    const SampleList own =
        only(samples, [&](const Sample& s) { return attention_of(s).implementation == implementation; });
    if (has_forward(own)) {
      fitted.emplace(implementation, fit_implementation(implementation, own, gpu, profile));
    }
  }
  ULYSIM_CHECK(!fitted.empty(), "no attention kernel has forward samples");
  const AttentionKernel reference = fitted.begin()->first;
  std::vector<AttentionProfile> known;
  known.swap(profile.attention);
  AttentionFit result;
  for (const AttentionKernel implementation : kAll) {
    const auto own = fitted.find(implementation);
    const auto before = std::find_if(known.begin(), known.end(), [&](const AttentionProfile& entry) {
      return entry.implementation == implementation;
    });
    if (own != fitted.end()) {
      profile.attention.push_back(own->second.forward);
      profile.attention.push_back(own->second.backward);
      result.covariances.push_back(own->second.covariance);
      result.circumstances.emplace(implementation, own->second.circumstances);
    } else if (before != known.end()) {
      std::copy_n(before, 2, std::back_inserter(profile.attention));
    } else {
      const Entries entries = stand_in(
          implementation, fitted.at(reference),
          fmt::format("no samples of {} here: as {}", cost::name_of(implementation), cost::name_of(reference)));
      profile.attention.push_back(entries.forward);
      profile.attention.push_back(entries.backward);
    }
  }
  return result;
}

}  // namespace ulysim::calibration
