// How good a fit is, whatever was fitted: a Fitter makes a Predictor of samples, and samples are scored by it.

#include "calibration/fit_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <utility>
#include <variant>

#include "calibration/fit_parts.h"
#include "calibration/samples/names.h"
#include "sim/base/diagnostics.h"

namespace ulysim::calibration {
namespace {

constexpr double kLargeGemmFlops = 1e10;
constexpr std::uint32_t kSeed = 20260;

std::string_view shown_pass(const AttentionProbe& p) {
  return name_of(p.pass == Pass::forward_kv_write || p.pass == Pass::forward_host_gap ? Pass::forward : p.pass);
}

std::string_view regime_of(const Sample& sample) {
  return sample.regime ? name_of(*sample.regime) : "not said how long";
}

std::string collective_name(const CollectiveProbe& p) {
  return fmt::format("{}{}", info_of(p.collective).name,
                     p.via == Via::library ? "" : fmt::format(" {}", name_of(p.via)));
}

std::string group_of(const Sample& sample) {
  if (std::holds_alternative<GemmProbe>(sample.probe)) {
    if (is_sustained(sample)) {
      return "gemm sustained";
    }
    return flops_of(sample.probe) >= kLargeGemmFlops ? "gemm >= 10 GFLOP" : "gemm < 10 GFLOP";
  }
  if (const auto* attention = std::get_if<AttentionProbe>(&sample.probe)) {
    return fmt::format("{} {} d{}", name_of(attention->implementation), shown_pass(*attention), attention->head_dim);
  }
  if (const auto* run = std::get_if<CollectiveProbe>(&sample.probe)) {
    return collective_name(*run);
  }
  return std::holds_alternative<CopyProbe>(sample.probe) ? "copy" : "layer";
}

// Members of one family resemble each other: shapes that differ only in their length, sizes of one sweep.
std::string family_of(const Sample& sample) {
  if (const auto* gemm = std::get_if<GemmProbe>(&sample.probe)) {
    return fmt::format("{}x{}", gemm->n, gemm->k);
  }
  if (const auto* a = std::get_if<AttentionProbe>(&sample.probe)) {
    return fmt::format("{}:{} {}", a->heads, a->kv_heads, name_of(a->mask));
  }
  if (const auto* run = std::get_if<CollectiveProbe>(&sample.probe)) {
    return fmt::format("{} {} {} {} {}", collective_name(*run), sample.ranks, sample.fabric, sample.software,
                       sample.source);
  }
  const auto* copy = std::get_if<CopyProbe>(&sample.probe);
  return copy != nullptr ? fmt::format("{}", copy->bytes) : "";
}

/// The part that each sample belongs to; families of every group are spread evenly over the parts. A group of one
/// family has nothing to hold out: -1.
std::vector<int> parts_of(std::span<const Sample> samples, int folds) {
  std::map<std::string, std::vector<std::string>> families;
  for (const Sample& sample : samples) {
    auto& of_group = families[group_of(sample)];
    if (std::find(of_group.begin(), of_group.end(), family_of(sample)) == of_group.end()) {
      of_group.push_back(family_of(sample));
    }
  }
  std::mt19937 generator(kSeed);
  std::map<std::pair<std::string, std::string>, int> part;
  for (auto& [group, names] : families) {
    // Written out: std::shuffle draws differently in every standard library.
    for (std::size_t i = names.size(); i > 1; --i) {
      std::swap(names[i - 1], names[generator() % i]);
    }
    for (std::size_t i = 0; i < names.size(); ++i) {
      part[{group, names[i]}] = names.size() == 1 ? -1 : static_cast<int>(i) % folds;
    }
  }
  std::vector<int> result;
  result.reserve(samples.size());
  for (const Sample& sample : samples) {
    result.push_back(part[{group_of(sample), family_of(sample)}]);
  }
  return result;
}

/// Predictions of the samples that `is_out` names, by a fit to the others; none where those are too few for a fit.
template <class IsOut>
void predict_held_out(std::span<const Sample> samples, const Fitter& fitter, IsOut is_out,
                      std::vector<std::optional<double>>& predictions) {
  std::vector<Sample> rest;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (!is_out(i)) {
      rest.push_back(samples[i]);
    }
  }
  if (rest.size() == samples.size()) {
    return;
  }
  try {
    const Predictor predict = fitter(rest);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      if (is_out(i)) {
        predictions[i] = predict(samples[i]);
      }
    }
  } catch (const InputError&) {
    return;
  }
}

/// Between the two nearest where it falls between them.
double quantile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

struct Errors {
  std::vector<double> fitted{};
  std::vector<double> held_out{};

  void add(const Sample& sample, const std::optional<double>& by_all, const std::optional<double>& by_others) {
    if (by_all) {
      fitted.push_back(std::abs(*by_all / sample.seconds - 1.0));
    }
    if (by_others) {
      held_out.push_back(std::abs(*by_others / sample.seconds - 1.0));
    }
  }

  [[nodiscard]] GroupErrors summary(const std::string& name) {
    std::sort(fitted.begin(), fitted.end());
    std::sort(held_out.begin(), held_out.end());
    GroupErrors group{.name = name, .points = fitted.size()};
    if (!fitted.empty()) {
      group.median = quantile(fitted, 0.5);
      group.p90 = quantile(fitted, 0.9);
      group.worst = fitted.back();
    }
    if (!held_out.empty()) {
      group.held_out_median = quantile(held_out, 0.5);
      group.held_out_p90 = quantile(held_out, 0.9);
    }
    return group;
  }
};

/// A time as the rate that people compare, where there is one.
Residual residual_of(const Sample& sample, double predicted, const std::optional<double>& held_out) {
  const auto rate = shown_rate(sample);
  const auto shown = [&](double seconds) { return rate ? rate->value * sample.seconds / seconds : seconds * 1e3; };
  const bool collective = std::holds_alternative<CollectiveProbe>(sample.probe);
  return {
      .group = group_of(sample),
      .label = collective ? fmt::format("{}, {} ranks", describe(sample.probe), sample.ranks) : describe(sample.probe),
      .measured = shown(sample.seconds),
      .fitted = shown(predicted),
      .held_out = held_out ? std::optional(shown(*held_out)) : std::nullopt,
      .unit = !rate        ? "ms"
              : collective ? "GB/s"
                           : "TFLOP/s"};
}

}  // namespace

FitReport assess(std::span<const Sample> samples, const Fitter& fitter, int folds) {
  const Predictor by_all = fitter(samples);
  const std::vector<int> parts = parts_of(samples, folds);
  std::vector<std::optional<double>> held_out(samples.size());
  for (int fold = 0; fold < folds; ++fold) {
    predict_held_out(
        samples, fitter, [&](std::size_t i) { return parts[i] == fold; }, held_out);
  }
  FitReport report;
  std::map<std::string, Errors> groups;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const auto predicted = by_all(samples[i]);
    if (predicted) {
      groups[group_of(samples[i])].add(samples[i], predicted, held_out[i]);
      report.residuals.push_back(residual_of(samples[i], *predicted, held_out[i]));
    }
  }
  for (auto& [name, errors] : groups) {
    report.groups.push_back(errors.summary(name));
  }
  return report;
}

GroupErrors over_all(const std::string& name, std::span<const Residual> residuals) {
  Errors errors;
  for (const Residual& r : residuals) {
    errors.fitted.push_back(std::abs(r.measured / r.fitted - 1.0));
    if (r.held_out) {
      errors.held_out.push_back(std::abs(r.measured / *r.held_out - 1.0));
    }
  }
  return errors.summary(name);
}

std::vector<GroupErrors> assess_extrapolation(std::span<const Sample> samples, const Fitter& fitter, std::int64_t up_to,
                                              std::int64_t from) {
  const auto queries = [&](std::size_t i) {
    const auto* attention = std::get_if<AttentionProbe>(&samples[i].probe);
    return attention == nullptr ? 0 : attention->queries;
  };
  std::vector<std::optional<double>> held_out(samples.size());
  predict_held_out(
      samples, fitter, [&](std::size_t i) { return queries(i) > up_to; }, held_out);
  const Predictor by_all = fitter(samples);
  std::map<std::string, std::map<std::string_view, Errors>> by_regime;
  std::map<std::string, Errors> groups;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (queries(i) >= from) {
      const std::string_view pass = shown_pass(std::get<AttentionProbe>(samples[i].probe));
      const std::string name = fmt::format("attention {} >= {}K, from <= {}K", pass, from / 1024, up_to / 1024);
      for (Errors* const errors : {&groups[name], &by_regime[name][regime_of(samples[i])]}) {
        errors->add(samples[i], by_all(samples[i]), held_out[i]);
      }
    }
  }
  std::vector<GroupErrors> result;
  for (auto& [name, errors] : groups) {
    result.push_back(errors.summary(name));
    if (auto& apart = by_regime.at(name); apart.size() > 1) {
      for (auto& [regime, some] : apart) {
        result.push_back(some.summary(fmt::format("{}, {}", name, regime)));
      }
    }
  }
  return result;
}

}  // namespace ulysim::calibration
