#pragma once

#include <span>
#include <string>
#include <vector>

#include "calibration/suite/sample_table.h"
#include "hw_models/cost/kernel_profile.h"
#include "hw_models/spec/cluster.h"

namespace ulysim::calibration {

/// A machine as a samples file of one backend, one number of ranks and one fabric describes it. The simulator counts
/// two bytes an element and these ranks move float32, so all bandwidths are those of elements, times two bytes.
struct ClusterFit {
  spec::Node node{};  ///< shared memory: one node of all ranks; else one rank a node, joined by `network`
  spec::Gpu gpu{};    ///< one rank; named NAME, profile NAME
  cost::KernelProfile profile{};
  std::int64_t nodes{1};
};

/// From products, attention kernels, copies and collectives; layers are not looked at. Links are affine above 64 KiB
/// (below, a message fits into a queue and passes at another speed). InputError when samples of a kind are missing or
/// the file mixes fabrics.
[[nodiscard]] ClusterFit fit_cluster(std::span<const ProbeSample> samples, const std::string& name);

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
[[nodiscard]] std::vector<LayerComparison> compare_layers(std::span<const ProbeSample> samples, const ClusterFit& fit);
/// A table, and the median error.
[[nodiscard]] std::string to_text(const std::vector<LayerComparison>& comparisons);

/// Catalogue files: gpus/NAME.yaml and nodes/NAME.yaml (the profile: write_profile).
[[nodiscard]] std::string write_gpu(const spec::Gpu& gpu);
[[nodiscard]] std::string write_node(const spec::Node& node);

}  // namespace ulysim::calibration
