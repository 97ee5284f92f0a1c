#include "calibration/host/host_backend.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "calibration/host/reference.h"
#include "calibration/host/sequence_parallel.h"

namespace ulysim::calibration::host {
namespace {

std::string processor() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) {
      return line.substr(std::min(line.size(), line.find(": ") + 2));
    }
  }
  return "unknown processor";
}

/// Why a probe cannot run here; empty when it can.
class Refusal {
 public:
  explicit Refusal(int ranks) : ranks_(ranks) {}
  std::string operator()(const GemmProbe& p) const {
    return p.batch == 1 && !p.precision ? "" : "only single products in float32 run here";
  }
  std::string operator()(const AttentionProbe& p) const {
    const bool one_pass = p.pass == Pass::forward || p.pass == Pass::backward;
    return one_pass && p.sequences == 1 && p.queries == p.keys ? "" : "only one pass over one sequence runs here";
  }
  std::string operator()(const CopyProbe& p) const {
    return p.path == CopyPath::memory ? "" : "only copies within memory run here";
  }
  std::string operator()(const CollectiveProbe& p) const {
    const bool known = p.collective == Collective::all_to_all || p.collective == Collective::all_gather ||
                       p.collective == Collective::reduce_scatter || p.collective == Collective::send_recv;
    return known && !p.in_place && p.via == Via::library ? "" : "this collective does not run here";
  }
  std::string operator()(const LayerProbe& p) const { return refusal(p, ranks_); }

 private:
  int ranks_;
};

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

  [[nodiscard]] std::string software() const override { return "ulysim-calibrate-host, Eigen, float32"; }

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
    const std::string why = std::visit(Refusal(options_.ranks), probe);
    if (!why.empty()) {
      throw ImpossibleProbe(why);
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
