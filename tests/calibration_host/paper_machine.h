#pragma once

#include <string>
#include <variant>
#include <vector>

#include "calibration/suite/suite.h"

namespace ulysim::calibration {

/// 100 GFLOP/s products, attention at 80 forward and 60 backward, 10 GB/s copies; links: 20 us and 1 GB/s for
/// all-to-all and rings, 0.8 GB/s for send/recv.
struct PaperMachine {
  double operator()(const GemmProbe& p) const { return 2e-6 + 2.0 * static_cast<double>(p.m * p.n * p.k) / 100e9; }
  double operator()(const AttentionProbe& p) const {
    const auto t = static_cast<double>(p.queries);
    const double pairs = p.mask == Mask::full ? t * t : t * t - t * (t - 1.0) / 2.0;
    const auto width = static_cast<double>(p.heads * p.head_dim);
    return p.pass == Pass::forward ? 4.0 * pairs * width / 80e9 : 10.0 * pairs * width / 60e9;
  }
  double operator()(const CopyProbe& p) const { return 2.0 * static_cast<double>(p.bytes) / 10e9; }
  double operator()(const CollectiveProbe& p) const {
    const auto bytes = static_cast<double>(p.bytes);
    return p.collective == Collective::send_recv ? 20e-6 + bytes / 0.8e9 : 20e-6 + bytes / 2.0 / 1e9;
  }
  /// The same parts, one after the other: two ranks.
  double operator()(const LayerProbe& p) const {
    const auto width = static_cast<double>(p.heads * p.head_dim);
    const auto t = static_cast<double>(p.tokens);
    const double pairs = p.mask == Mask::full ? t * t : t * t - t * (t - 1.0) / 2.0;
    const double local_bytes = 4.0 * t / 2.0 * width;
    const double kernels = pairs * width / 2.0 * (4.0 / 80e9 + 10.0 / 60e9);
    if (p.scheme == Scheme::ulysses) {
      return kernels + 8.0 * (2.0 * local_bytes / 10e9 + 20e-6 + local_bytes / 2.0 / 1e9);
    }
    return kernels + 4.0 * (20e-6 + 2.0 * local_bytes / 0.8e9) + 2.0 * (2.0 * 2.0 * local_bytes / 10e9);
  }
};

inline std::vector<Sample> samples_of(const std::string& fabric) {
  std::vector<Sample> samples;
  for (const Probe& probe : host_plan(SuiteSize::standard, 2).measure) {
    samples.push_back({.probe = probe,
                       .gpu = "paper",
                       .ranks = 2,
                       .fabric = fabric,
                       .software = "pencil",
                       .seconds = std::visit(PaperMachine(), probe),
                       .spread = 0.0,
                       .runs = 5,
                       .source = "arithmetic"});
  }
  return samples;
}

}  // namespace ulysim::calibration
