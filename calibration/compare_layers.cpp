// A layer in the equations of hw_models/cost and of the links: kernels, copies and collectives in the order in which a
// rank runs them, on one thread, so that times add up.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "calibration/fit_cluster.h"
#include "calibration/samples/statistics.h"
#include "hw_models/cost/roofline.h"

namespace ulysim::calibration {
namespace {

using kernel::Direction;

// As the catalogue's profiles count: two bytes an element.
constexpr std::int64_t kElementBytes = 2;

class LayerCost {
 public:
  LayerCost(const LayerProbe& layer, int ranks, const ClusterFit& fit)
      : layer_(layer),
        ranks_(ranks),
        fit_(&fit),
        query_bytes_(layer.tokens / ranks * layer.heads * layer.head_dim * kElementBytes),
        kv_bytes_(layer.tokens / ranks * layer.kv_heads * layer.head_dim * kElementBytes) {}

  /// Q, K, V to heads, the output back; the gradients mirrored: four exchanges each way.
  [[nodiscard]] double ulysses() const {
    const double exchanges = 2.0 * exchange(query_bytes_) + 2.0 * exchange(kv_bytes_);
    kernel::Attention attention = whole();
    attention.heads /= ranks_;
    attention.kv_heads /= ranks_;
    return 2.0 * exchanges + both_directions(attention);
  }

  /// Rank 0 of the zigzag; all ranks have as much. Chunk pairs that the mask hides are not called.
  [[nodiscard]] double ring() const {
    double total = 0.0;
    const std::int64_t chunks = std::int64_t{2} * ranks_;
    for (const std::int64_t mine : {std::int64_t{0}, chunks - 1}) {
      for (std::int64_t other = 0; other < chunks; ++other) {
        if (layer_.mask == Mask::full || other <= mine) {
          total += both_directions(pair(layer_.mask == Mask::causal && other == mine));
        }
      }
    }
    const double kv = shift(2 * kv_bytes_);
    total += 2.0 * (ranks_ - 1) * kv + ranks_ * kv + 2.0 * copy(2 * kv_bytes_);
    return total;
  }

 private:
  [[nodiscard]] kernel::Attention whole() const {
    return {.heads = layer_.heads,
            .kv_heads = layer_.kv_heads,
            .head_dim = layer_.head_dim,
            .queries = layer_.tokens,
            .keys = layer_.tokens,
            .pairs = pairs_of(layer_.mask, layer_.tokens, layer_.tokens)};
  }

  [[nodiscard]] kernel::Attention pair(bool on_diagonal) const {
    kernel::Attention attention = whole();
    const std::int64_t chunk = layer_.tokens / ranks_ / 2;
    attention.queries = attention.keys = chunk;
    attention.pairs = pairs_of(on_diagonal ? Mask::causal : Mask::full, chunk, chunk);
    return attention;
  }

  [[nodiscard]] double both_directions(kernel::Attention attention) const {
    double total = 0.0;
    for (const Direction direction : {Direction::forward, Direction::backward}) {
      attention.direction = direction;
      total += cost::kernel_seconds(attention, fit_->gpu, fit_->profile);
    }
    return total;
  }

  [[nodiscard]] double copy(std::int64_t bytes) const {
    return cost::kernel_seconds(kernel::MemoryBound{.traffic = Bytes(2 * bytes)}, fit_->gpu, fit_->profile);
  }

  [[nodiscard]] double transfer(double bytes, const spec::Sourced<double>& efficiency) const {
    const spec::Transport& transport = fit_->nodes > 1 ? fit_->node.network : fit_->node.nvlink;
    const double rate =
        fit_->nodes > 1 ? fit_->node.nic_bandwidth.value.value() : fit_->node.nvlink_bandwidth.value.value();
    return seconds(transport.base_latency.value) + bytes / (rate * efficiency.value);
  }

  /// Pack or unpack, and an all-to-all.
  [[nodiscard]] double exchange(std::int64_t bytes) const {
    if (ranks_ == 1) {
      return 2.0 * copy(bytes);
    }
    const spec::Transport& transport = fit_->nodes > 1 ? fit_->node.network : fit_->node.nvlink;
    return copy(bytes) + transfer(static_cast<double>(bytes) * (ranks_ - 1) / ranks_, transport.all_to_all_efficiency);
  }

  [[nodiscard]] double shift(std::int64_t bytes) const {
    const spec::Transport& transport = fit_->nodes > 1 ? fit_->node.network : fit_->node.nvlink;
    return transfer(static_cast<double>(bytes), transport.p2p_efficiency);
  }

  LayerProbe layer_;
  int ranks_;
  const ClusterFit* fit_;
  std::int64_t query_bytes_;
  std::int64_t kv_bytes_;
};

}  // namespace

double predicted_layer_seconds(const LayerProbe& layer, int ranks, const ClusterFit& fit) {
  const LayerCost cost(layer, ranks, fit);
  return layer.scheme == Scheme::ulysses ? cost.ulysses() : cost.ring();
}

std::vector<LayerComparison> compare_layers(std::span<const Sample> samples, const ClusterFit& fit) {
  std::vector<LayerComparison> comparisons;
  for (const Sample& sample : samples) {
    if (const auto* layer = std::get_if<LayerProbe>(&sample.probe)) {
      comparisons.push_back({.layer = *layer,
                             .measured = sample.seconds,
                             .spread = sample.spread.value_or(0.0),
                             .predicted = predicted_layer_seconds(*layer, static_cast<int>(sample.ranks), fit)});
    }
  }
  return comparisons;
}

std::string to_text(const std::vector<LayerComparison>& comparisons) {
  if (comparisons.empty()) {
    return "no layers in the samples to hold the fit against\n";
  }
  std::string text = "layers, which the fit has not seen (forward and backward)\n";
  std::vector<double> errors;
  for (const LayerComparison& c : comparisons) {
    const double error = c.predicted / c.measured - 1.0;
    errors.push_back(std::abs(error));
    text += fmt::format("  {:<70} measured {:>9.3f} ms +-{:>4.1f}%  predicted {:>9.3f} ms  {:>+6.1f}%\n",
                        describe(c.layer), c.measured * 1e3, c.spread * 100.0, c.predicted * 1e3, error * 100.0);
  }
  text += fmt::format("median error {:.1f}%\n", summary_of(errors).median * 100.0);
  return text;
}

FitReport assess_cluster(std::span<const Sample> samples, const ClusterFit& fit) {
  std::vector<Sample> kernels;
  std::vector<Sample> collectives;
  std::vector<Sample> layers;
  for (Sample sample : samples) {
    if (std::holds_alternative<LayerProbe>(sample.probe)) {
      layers.push_back(std::move(sample));
    } else if (std::holds_alternative<CollectiveProbe>(sample.probe)) {
      collectives.push_back(std::move(sample));
    } else if (!std::holds_alternative<CopyProbe>(sample.probe)) {
      sample.gpu = fit.gpu.name;
      kernels.push_back(std::move(sample));
    }
  }
  constexpr int kFolds = 4;
  FitReport report = assess(kernels, kernel_fitter(fit.gpu), kFolds);
  report.name = fit.gpu.name;
  report.parameters = parameters_of(fit.profile);
  report.covariances = fit.covariances;
  add_collectives(collectives, spec::SourceKind::measured, report);
  const Fitter unseen = [&fit](std::span<const Sample>) -> Predictor {
    return [&fit](const Sample& sample) {
      return std::optional(
          predicted_layer_seconds(std::get<LayerProbe>(sample.probe), static_cast<int>(sample.ranks), fit));
    };
  };
  add(assess(layers, unseen, 1), report);
  return report;
}

}  // namespace ulysim::calibration
