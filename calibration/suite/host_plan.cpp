#include "calibration/suite/suite.h"

namespace ulysim::calibration {
namespace {

// Eight heads of 64: the layer of a small model. Divides by 1, 2, 4 and 8 ranks.
constexpr std::int64_t kHeads = 8;
constexpr std::int64_t kHeadDim = 64;

void add_layers(std::vector<Probe>& probes, const std::vector<std::int64_t>& lengths, int ranks) {
  for (const Mask mask : {Mask::full, Mask::causal}) {
    for (const std::int64_t tokens : lengths) {
      for (const Scheme scheme : {Scheme::ulysses, Scheme::ring}) {
        if (tokens % (std::int64_t{2} * ranks) == 0 && kHeads % ranks == 0) {
          probes.emplace_back(LayerProbe{.scheme = scheme,
                                         .mask = mask,
                                         .tokens = tokens,
                                         .heads = kHeads,
                                         .kv_heads = kHeads,
                                         .head_dim = kHeadDim});
        }
      }
    }
  }
}

// Heads as Ulysses leaves them on a rank and as the ring does: a kernel on strided heads runs at another rate.
void add_attention(std::vector<Probe>& probes, const std::vector<std::int64_t>& lengths, int ranks) {
  std::vector<std::int64_t> head_counts{kHeads};
  if (ranks > 1 && kHeads % ranks == 0) {
    head_counts.push_back(kHeads / ranks);
  }
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    for (const Mask mask : {Mask::full, Mask::causal}) {
      for (const std::int64_t heads : head_counts) {
        for (const std::int64_t tokens : lengths) {
          probes.emplace_back(AttentionProbe{.pass = pass,
                                             .mask = mask,
                                             .heads = heads,
                                             .kv_heads = heads,
                                             .head_dim = kHeadDim,
                                             .queries = tokens,
                                             .keys = tokens});
        }
      }
    }
  }
}

void add_collectives(std::vector<Probe>& probes, std::int64_t most_bytes, int ranks) {
  if (ranks == 1) {
    return;
  }
  for (const Collective collective :
       {Collective::all_to_all, Collective::send_recv, Collective::all_gather, Collective::reduce_scatter}) {
    for (std::int64_t bytes = 1024; bytes <= most_bytes; bytes *= 4) {
      probes.emplace_back(CollectiveProbe{.collective = collective, .bytes = bytes * ranks / 2});
    }
  }
}

}  // namespace

Plan host_plan(SuiteSize size, int ranks) {
  const bool quick = size == SuiteSize::quick;
  Plan plan;
  plan.check = {GemmProbe{.m = 65, .n = 33, .k = 129}, CopyProbe{.bytes = 4096}};
  add_attention(plan.check, {192}, ranks);
  add_collectives(plan.check, 4096, ranks);
  add_layers(plan.check, {std::int64_t{64} * ranks}, ranks);
  for (const std::int64_t n : quick ? std::vector<std::int64_t>{128, 256} : std::vector<std::int64_t>{256, 512, 1024}) {
    plan.measure.emplace_back(GemmProbe{.m = n, .n = n, .k = n});
    plan.measure.emplace_back(GemmProbe{.m = 2 * n, .n = n, .k = n / 2});
  }
  for (std::int64_t bytes = 16384; bytes <= (quick ? std::int64_t{1} << 20 : std::int64_t{1} << 24); bytes *= 4) {
    plan.measure.emplace_back(CopyProbe{.bytes = bytes});
  }
  add_attention(plan.measure,
                quick ? std::vector<std::int64_t>{128, 320} : std::vector<std::int64_t>{192, 384, 640, 896}, ranks);
  add_collectives(plan.measure, quick ? std::int64_t{1} << 18 : std::int64_t{1} << 24, ranks);
  add_layers(plan.measure, quick ? std::vector<std::int64_t>{512} : std::vector<std::int64_t>{1024, 1536, 2048}, ranks);
  return plan;
}

}  // namespace ulysim::calibration
