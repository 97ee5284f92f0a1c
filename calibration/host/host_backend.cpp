#include "calibration/host/host_backend.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "calibration/host/reference.h"
#include "calibration/host/sequence_parallel.h"
#include "sim/base/check.h"

namespace ulysim::calibration::host {
namespace {

std::string processor() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) {
      std::string model = line.substr(std::min(line.size(), line.find(": ") + 2));
      std::replace(model.begin(), model.end(), ',', ' ');
      return model;
    }
  }
  return "unknown processor";
}

class HostBackend final : public Backend {
 public:
  explicit HostBackend(const HostOptions& options) : options_(options), processes_(options) {}

  [[nodiscard]] std::string_view name() const override { return "host"; }
  [[nodiscard]] int ranks() const override { return options_.ranks; }
  [[nodiscard]] std::string fabric() const override {
    switch (options_.fabric) {
      case Fabric::shared_memory:
        return "shared-memory";
      case Fabric::tcp_loopback:
        return "tcp-loopback";
      case Fabric::tcp_namespaces:
        return "tcp-" + options_.rate;
    }
    return {};
  }
  [[nodiscard]] std::string machine() const override {
    return fmt::format("{} ({} cores)", processor(), sysconf(_SC_NPROCESSORS_ONLN));
  }

  [[nodiscard]] double verify(const Probe& probe) override {
    require_possible(probe);
    std::vector<ErrorNorm> sums;
    for (const std::vector<double>& answer : processes_.ask({.action = Action::verify, .probe = probe})) {
      sums.resize(answer.size() / 2);
      for (std::size_t i = 0; i < sums.size(); ++i) {
        sums[i] += ErrorNorm{.difference = answer[2 * i], .reference = answer[2 * i + 1]};
      }
    }
    double worst = 0.0;
    for (const ErrorNorm& sum : sums) {
      const double error = relative_error(sum);
      // A NaN stays one.
      worst = error <= worst ? worst : error;
    }
    return worst;
  }

  [[nodiscard]] std::vector<double> measure(const Probe& probe, Repetitions repetitions) override {
    require_possible(probe);
    const auto answers = processes_.ask({.probe = probe, .repetitions = repetitions});
    std::vector<double> seconds;
    for (std::size_t i = 0; i < static_cast<std::size_t>(repetitions.timed); ++i) {
      double start = answers[0].at(2 * i);
      double end = answers[0].at(2 * i + 1);
      for (const std::vector<double>& answer : answers) {
        start = std::min(start, answer.at(2 * i));
        end = std::max(end, answer.at(2 * i + 1));
      }
      seconds.push_back(end - start);
    }
    return seconds;
  }

 private:
  void require_possible(const Probe& probe) const {
    if (const auto* layer = std::get_if<LayerProbe>(&probe)) {
      const std::string why = refusal(*layer, options_.ranks);
      if (!why.empty()) {
        throw WorldError("host backend: " + why);
      }
    }
  }

  HostOptions options_;
  RankProcesses processes_;
};

}  // namespace

std::unique_ptr<Backend> make_host_backend(const HostOptions& options) {
  return std::make_unique<HostBackend>(options);
}

}  // namespace ulysim::calibration::host
