#pragma once

#include <span>
#include <string>
#include <vector>

#include "calibration/fit_report.h"
#include "calibration/samples/sample.h"
#include "hw_models/cost/kernel_profile.h"
#include "hw_models/spec/cluster.h"

namespace ulysim::calibration {

/// A machine as samples of one backend, one number of ranks and one fabric describes it. The simulator counts
/// two bytes an element and these ranks move float32, so all bandwidths are those of elements, times two bytes.
struct ClusterFit {
  spec::Node node{};  ///< shared memory: one node of all ranks; else one rank a node, joined by `network`
  spec::Gpu gpu{};    ///< one rank; named NAME, profile NAME
  cost::KernelProfile profile{};
  std::vector<Covariance> covariances{};
  std::int64_t nodes{1};
};

/// From products, attention kernels, copies and collectives; layers are not looked at. Links are affine above 64 KiB
/// (below, a message fits into a queue and passes at another speed). InputError when samples of a kind are missing or
/// they mix fabrics.
[[nodiscard]] ClusterFit fit_cluster(std::span<const Sample> samples, const std::string& name);

/// What the fitted kernels and links say a layer takes, forward and backward, in seconds: its kernels, packing copies
/// and collectives, one after the other as the ranks run them.
[[nodiscard]] double predicted_layer_seconds(const LayerProbe& layer, int ranks, const ClusterFit& fit);

struct LayerComparison {
  LayerProbe layer{};
  double measured{};
  double spread{};
  double predicted{};
};

/// Every layer of the samples, which the fit has not seen.
[[nodiscard]] std::vector<LayerComparison> compare_layers(std::span<const Sample> samples, const ClusterFit& fit);
/// A table, and the median error.
[[nodiscard]] std::string to_text(const std::vector<LayerComparison>& comparisons);

/// Kernels, collectives and, not fitted, layers: errors by group and every residual.
[[nodiscard]] FitReport assess_cluster(std::span<const Sample> samples, const ClusterFit& fit);

/// The measured layers as a file for `ulysim validate`, which runs each through the engine: one row a layer, on the
/// node `fit.node.name` and the model that measured_model() gives.
[[nodiscard]] std::string write_measured_layers(std::span<const Sample> samples, const ClusterFit& fit);

/// A model of one layer with the heads of the measured ones, as a Hugging Face config.json. Layers of other heads are
/// not in write_measured_layers().
[[nodiscard]] std::string measured_model(std::span<const Sample> samples);
inline constexpr const char* kMeasuredModelFile = "model.json";

/// Catalogue files: gpus/NAME.yaml and nodes/NAME.yaml (the profile: write_profile).
[[nodiscard]] std::string write_gpu(const spec::Gpu& gpu);
[[nodiscard]] std::string write_node(const spec::Node& node);

}  // namespace ulysim::calibration
