#include "calibration/host/sequence_parallel.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace ulysim::calibration::host {

std::unique_ptr<LayerAttention> make_layer(const LayerProbe& probe, Transport& transport) {
  return probe.scheme == Scheme::ulysses ? make_ulysses(probe, transport) : make_ring(probe, transport);
}

std::string refusal(const LayerProbe& probe, int ranks) {
  if (probe.scheme == Scheme::gathered || probe.pass != Pass::both) {
    return "only whole layers of Ulysses and ring attention run here, forward and backward";
  }
  if (probe.kv_heads < 1 || probe.heads % probe.kv_heads != 0) {
    return fmt::format("{} heads do not divide by {} KV heads", probe.heads, probe.kv_heads);
  }
  if (probe.scheme == Scheme::ring) {
    return probe.tokens % (std::int64_t{2} * ranks) == 0
               ? std::string()
               : fmt::format("{} tokens do not divide into {} zigzag chunks", probe.tokens, 2 * ranks);
  }
  if (probe.tokens % ranks != 0) {
    return fmt::format("{} tokens do not divide by {} ranks", probe.tokens, ranks);
  }
  return probe.kv_heads % ranks == 0 ? std::string()
                                     : fmt::format("{} KV heads do not divide by {} ranks", probe.kv_heads, ranks);
}

std::int64_t computed_scores(const LayerProbe& probe, int ranks) {
  const HeadShape shape{probe.heads, probe.kv_heads, probe.head_dim, probe.mask};
  if (probe.scheme == Scheme::ulysses) {
    const ConstTokens all{.count = probe.tokens};
    return computed_pairs(shape, all, all) * (probe.heads / ranks);
  }
  const std::int64_t chunks = std::int64_t{2} * ranks;
  const std::int64_t chunk = probe.tokens / chunks;
  std::int64_t most = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    std::int64_t scores = 0;
    for (const std::int64_t mine : {std::int64_t{rank}, chunks - 1 - rank}) {
      for (std::int64_t other = 0; other < chunks; ++other) {
        scores += computed_pairs(shape, {.count = chunk, .position = mine * chunk},
                                 {.count = chunk, .position = other * chunk});
      }
    }
    most = std::max(most, scores * probe.heads);
  }
  return most;
}

}  // namespace ulysim::calibration::host
