// Measured layers as rows that `ulysim validate` reads (scenarios/published/README.md): the loop from a measurement to
// its prediction by the engine, on the cluster that was fitted to the other samples.

#include <fmt/format.h>

#include <algorithm>

#include "calibration/fit_cluster.h"
#include "calibration/samples/names.h"

namespace ulysim::calibration {
namespace {

bool has_same_heads(const LayerProbe& a, const LayerProbe& b) {
  return a.heads == b.heads && a.kv_heads == b.kv_heads && a.head_dim == b.head_dim;
}

/// Whole layers, forward and backward, of one kind of heads: the first one's.
std::vector<const Sample*> whole_layers(std::span<const Sample> samples) {
  std::vector<const Sample*> layers;
  for (const Sample& sample : samples) {
    const auto* layer = std::get_if<LayerProbe>(&sample.probe);
    if (layer != nullptr && layer->pass == Pass::both && layer->scheme != Scheme::gathered &&
        (layers.empty() || has_same_heads(*layer, std::get<LayerProbe>(layers.front()->probe)))) {
      layers.push_back(&sample);
    }
  }
  return layers;
}

std::string row_of(const Sample& sample) {
  const auto& layer = std::get<LayerProbe>(sample.probe);
  const std::string plan = layer.scheme == Scheme::ulysses ? fmt::format("{{ulysses: {}}}", sample.ranks)
                                                           : fmt::format("{{ring: {}}}", sample.ranks);
  return fmt::format(
      "  - {{id: {}-{}-{}, metric: sequence_attention_s, measured: {:.6g}, plan: {},\n"
      "     set: {{training: {{sequence_length: {}, attention: {{implementation: flash-attention-2, mask: {}}}}}}}}}\n",
      name_of(layer.scheme), name_of(layer.mask), layer.tokens, sample.seconds, plan, layer.tokens,
      name_of(layer.mask));
}

}  // namespace

std::string measured_model(std::span<const Sample> samples) {
  const auto layers = whole_layers(samples);
  const auto& layer = std::get<LayerProbe>(layers.front()->probe);
  return fmt::format(
      "{{\"model_type\": \"llama\", \"hidden_size\": {}, \"intermediate_size\": {}, \"num_hidden_layers\": 1,\n"
      " \"num_attention_heads\": {}, \"num_key_value_heads\": {}, \"head_dim\": {}, \"vocab_size\": 1024,\n"
      " \"max_position_embeddings\": 1048576, \"tie_word_embeddings\": false}}\n",
      layer.heads * layer.head_dim, layer.heads * layer.head_dim, layer.heads, layer.kv_heads, layer.head_dim);
}

std::string write_measured_layers(std::span<const Sample> samples, const ClusterFit& fit) {
  const auto layers = whole_layers(samples);
  if (layers.empty()) {
    return "";
  }
  std::string text = fmt::format(
      "source: {{name: {0}, title: \"layers that ulysim calibrate run measured\", repository: \"one's own\"}}\n"
      "notes: >-\n"
      "  Attention of one layer over all ranks, forward and backward, of which the fit of {0} has seen nothing.\n"
      "base:\n"
      "  model: {1}\n"
      "  cluster: {{node: {0}, nodes: {2}}}\n"
      "  training: {{recompute: none, framework: calibrate-host}}\n"
      "rows:\n",
      fit.node.name, kMeasuredModelFile, fit.nodes);
  for (const Sample* layer : layers) {
    text += row_of(*layer);
  }
  return text;
}

}  // namespace ulysim::calibration
