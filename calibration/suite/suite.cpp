#include "calibration/suite/suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "calibration/samples/statistics.h"
#include "sim/base/check.h"

namespace ulysim::calibration {
namespace {

constexpr int kDigits = 6;  ///< of a time; no clock here knows more

void say(Progress progress, const std::string& line) {
  if (progress == Progress::on_stderr) {
    fmt::print(stderr, "{}\n", line);
  }
}

void check(Backend& backend, const Plan& plan, const SuiteOptions& options) {
  double worst = 0.0;
  std::size_t passed = 0;
  for (const Probe& probe : plan.check) {
    double error = 0.0;
    try {
      error = backend.verify(probe);
    } catch (const ImpossibleProbe& why) {
      say(options.progress, fmt::format("not checked: {}: {}", describe(probe), why.what()));
      continue;
    }
    if (!(error <= options.tolerance)) {
      throw WorldError(
          fmt::format("{} computes {} wrong: the relative error is {:.2g}, allowed are {:.0g}; nothing was timed",
                      backend.name(), describe(probe), error, options.tolerance));
    }
    worst = std::max(worst, error);
    ++passed;
  }
  say(options.progress,
      fmt::format("{} checks against the reference passed, worst relative error {:.1e}", passed, worst));
}

struct Measured {
  Summary summary{};
  int repetitions{};
};

Measured measure(Backend& backend, const Probe& probe, const SuiteOptions& options) {
  const double once = summary_of(backend.measure(probe, {.warm_up = 1, .timed = 1})).median;
  const auto fitting = static_cast<int>(std::clamp(options.seconds_per_probe / once, 1.0, 1e6));
  const int timed = std::clamp(fitting, options.fewest, std::max(options.fewest, options.most));
  Measured best{.repetitions = timed};
  for (int attempt = 0; attempt < options.tries; ++attempt) {
    const Summary summary = summary_of(backend.measure(probe, {.warm_up = options.warm_up, .timed = timed}));
    if (attempt == 0 || summary.spread < best.summary.spread) {
      best.summary = summary;
    }
    if (best.summary.spread <= options.calm_spread) {
      break;
    }
  }
  return best;
}

std::string summary_line(const Sample& sample) {
  const auto rate = shown_rate(sample);
  return fmt::format("{}: {:.4g} ms{}, spread {:.1f}%", describe(sample.probe), sample.seconds * 1e3,
                     rate ? fmt::format(", {:.4g} {}", rate->value, rate->unit) : "",
                     sample.spread.value_or(0.0) * 100.0);
}

}  // namespace

std::vector<Sample> run_suite(Backend& backend, const Plan& plan, const SuiteOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const auto is_late = [&] {
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    return options.seconds && spent.count() > *options.seconds;
  };
  SampleFile file(options.file, options.existing);
  check(backend, plan, options);
  std::vector<Sample> samples;
  std::size_t left_out = 0;
  for (std::size_t i = 0; i < plan.measure.size(); ++i) {
    Sample sample{.probe = plan.measure[i],
                  .gpu = backend.machine(),
                  .ranks = backend.ranks(),
                  .fabric = backend.fabric(),
                  .software = backend.software(),
                  .source = fmt::format("measured by ulysim calibrate run --backend {}", backend.name())};
    if (const Sample* known = file.find(sample)) {
      samples.push_back(*known);
      continue;
    }
    if (is_late()) {
      ++left_out;
      continue;
    }
    const std::string place = fmt::format("[{}/{}]", i + 1, plan.measure.size());
    try {
      const Measured measured = measure(backend, sample.probe, options);
      const PowerState state = backend.power_state();
      sample.seconds = rounded(measured.summary.median, kDigits);
      sample.spread = rounded(measured.summary.spread, 2);
      sample.runs = measured.repetitions;
      sample.clock_mhz = state.clock_mhz;
      sample.power_w = state.power_w;
    } catch (const ImpossibleProbe& why) {
      say(options.progress, fmt::format("{} left out: {}: {}", place, describe(sample.probe), why.what()));
      ++left_out;
      continue;
    }
    file.append(sample);
    say(options.progress, fmt::format("{} {}", place, summary_line(sample)));
    samples.push_back(std::move(sample));
  }
  if (left_out > 0) {
    say(options.progress, fmt::format("{} of {} left out", left_out, plan.measure.size()));
  }
  return samples;
}

}  // namespace ulysim::calibration
