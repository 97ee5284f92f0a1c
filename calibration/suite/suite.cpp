#include "calibration/suite/suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>

#include "calibration/suite/probe_text.h"
#include "calibration/suite/statistics.h"
#include "sim/base/check.h"
#include "sim/base/diagnostics.h"

namespace ulysim::calibration {
namespace {

namespace fs = std::filesystem;

/// The samples file: rows are appended and flushed one by one.
class SampleFile {
 public:
  SampleFile(const fs::path& path, Existing existing) : path_(path) {
    if (fs::exists(path)) {
      if (existing == Existing::refuse) {
        throw InputError({{.where = {.file = path.string()}, .message = "exists; pass --resume to go on with it"}});
      }
      std::vector<ProbeSample> samples = load_probe_samples(path);
      for (ProbeSample& sample : samples) {
        keep(std::move(sample));
      }
      drop_torn_line();
    }
    out_.open(path, std::ios::binary | std::ios::app);
    if (out_.tellp() == 0) {
      out_ << sample_header() << '\n';
    }
    flush();
  }

  [[nodiscard]] const ProbeSample* find(const std::string& key) const {
    const auto found = rows_.find(key);
    return found == rows_.end() ? nullptr : &found->second;
  }

  void append(ProbeSample sample) {
    out_ << sample_row(sample);
    flush();
    keep(std::move(sample));
  }

 private:
  void keep(ProbeSample sample) {
    std::string key = key_of(sample.probe, sample.ranks, sample.fabric);
    rows_.insert_or_assign(std::move(key), std::move(sample));
  }

  void flush() {
    out_.flush();
    if (!out_) {
      throw WorldError(fmt::format("cannot write {}", path_.string()));
    }
  }

  void drop_torn_line() const {
    std::ifstream in(path_, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    const std::size_t last = text.rfind('\n');
    fs::resize_file(path_, last == std::string::npos ? 0 : last + 1);
  }

  fs::path path_;
  std::ofstream out_;
  std::map<std::string, ProbeSample> rows_;
};

void say(Progress progress, const std::string& line) {
  if (progress == Progress::on_stderr) {
    fmt::print(stderr, "{}\n", line);
  }
}

std::string label_of(const Probe& probe) {
  return kind_of(probe) + " " + shape_of(probe);
}

void check(Backend& backend, const Plan& plan, const SuiteOptions& options) {
  double worst = 0.0;
  for (const Probe& probe : plan.check) {
    const double error = backend.verify(probe);
    if (!(error <= options.tolerance)) {
      throw WorldError(
          fmt::format("{} computes {} wrong: the relative error is {:.2g}, allowed are {:.0g}; nothing "
                      "was timed",
                      backend.name(), label_of(probe), error, options.tolerance));
    }
    worst = std::max(worst, error);
  }
  say(options.progress,
      fmt::format("{} checks against the reference passed, worst relative error {:.1e}", plan.check.size(), worst));
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

}  // namespace

std::vector<ProbeSample> run_suite(Backend& backend, const Plan& plan, const SuiteOptions& options) {
  SampleFile file(options.file, options.existing);
  check(backend, plan, options);
  std::vector<ProbeSample> samples;
  const std::string source = fmt::format("{} backend on {}", backend.name(), backend.machine());
  for (std::size_t i = 0; i < plan.measure.size(); ++i) {
    const Probe& probe = plan.measure[i];
    const std::string key = key_of(probe, backend.ranks(), backend.fabric());
    if (file.find(key) == nullptr) {
      const Measured measured = measure(backend, probe, options);
      file.append({.probe = probe,
                   .ranks = backend.ranks(),
                   .fabric = backend.fabric(),
                   .seconds = measured.summary.median,
                   .spread = measured.summary.spread,
                   .repetitions = measured.repetitions,
                   .source = source});
      say(options.progress,
          fmt::format("[{}/{}] {}: {:.4g} ms, spread {:.1f}%", i + 1, plan.measure.size(), label_of(probe),
                      measured.summary.median * 1e3, measured.summary.spread * 100.0));
    }
    samples.push_back(*file.find(key));
  }
  return samples;
}

}  // namespace ulysim::calibration
