#include "calibration/suite/suite.h"

namespace ulysim::calibration {
namespace {

struct GemmShape {
  std::int64_t m{};  ///< tokens
  std::int64_t n{};
  std::int64_t k{};
};
// A large square first (the ceiling), then the projections of Llama-3-8B and -70B, forward and of weight gradients.
constexpr GemmShape kGemms[] = {
    {8192, 8192, 8192},   {16384, 16384, 8192}, {2048, 4096, 4096},  {8192, 4096, 4096},
    {8192, 6144, 4096},   {8192, 28672, 4096},  {8192, 4096, 14336}, {32768, 4096, 4096},
    {32768, 28672, 4096}, {32768, 4096, 14336}, {8192, 10240, 8192}, {8192, 57344, 8192},
    {8192, 8192, 28672},  {4096, 4096, 32768},  {512, 4096, 4096},   {8192, 128256, 4096},
};

struct AttentionShape {
  std::int64_t queries{};
  std::int64_t keys{};
  std::int64_t heads{};
  std::int64_t kv_heads{};
  std::int64_t head_dim{};
  Mask mask{};
};
// 64:8 heads first, for which cuDNN's own figures are public; then Llama-3-8B's heads, whole and as a rank of eight
// has them, and what a ring does off the diagonal.
constexpr AttentionShape kAttention[] = {
    {4096, 4096, 64, 8, 128, Mask::causal},   {8192, 8192, 64, 8, 128, Mask::causal},
    {16384, 16384, 64, 8, 128, Mask::causal}, {32768, 32768, 64, 8, 128, Mask::causal},
    {2048, 2048, 32, 8, 128, Mask::causal},   {8192, 8192, 32, 8, 128, Mask::causal},
    {65536, 65536, 4, 1, 128, Mask::causal},  {131072, 131072, 4, 1, 128, Mask::causal},
    {8192, 8192, 32, 8, 128, Mask::full},     {8192, 4096, 32, 8, 128, Mask::full},
    {4096, 8192, 32, 8, 128, Mask::full},     {8192, 8192, 32, 32, 64, Mask::causal},
};

AttentionProbe probe_of(const AttentionShape& shape, Pass pass) {
  return {.implementation = kernel::AttentionKernel::cudnn,
          .pass = pass,
          .mask = shape.mask,
          .heads = shape.heads,
          .kv_heads = shape.kv_heads,
          .head_dim = shape.head_dim,
          .queries = shape.queries,
          .keys = shape.keys};
}

void add_copies(std::vector<Probe>& probes, SuiteSize size) {
  constexpr std::int64_t kMebi = std::int64_t{1} << 20;
  for (const std::int64_t bytes : size == SuiteSize::quick
                                      ? std::vector<std::int64_t>{16 * kMebi}
                                      : std::vector<std::int64_t>{kMebi, 16 * kMebi, 256 * kMebi, 1024 * kMebi}) {
    for (const CopyPath path :
         {CopyPath::memory, CopyPath::kernel, CopyPath::host_to_device, CopyPath::device_to_host}) {
      probes.emplace_back(CopyProbe{.path = path, .bytes = bytes});
    }
  }
  // 4K and 64K tokens of 32 heads of 128 in bf16.
  for (const std::int64_t bytes : {32 * kMebi, 512 * kMebi}) {
    probes.emplace_back(CopyProbe{.path = CopyPath::pack, .bytes = bytes});
    probes.emplace_back(CopyProbe{.path = CopyPath::unpack, .bytes = bytes});
  }
}

void add_collectives(std::vector<Probe>& probes, std::int64_t largest, int ranks) {
  constexpr std::int64_t kSmallest = std::int64_t{64} << 10;
  constexpr CollectiveProbe kKinds[] = {
      {.collective = Collective::all_to_all},
      {.collective = Collective::all_to_all, .via = Via::grouped},
      {.collective = Collective::all_to_all, .via = Via::symmetric},
      {.collective = Collective::send_recv},
      {.collective = Collective::all_gather},
      {.collective = Collective::reduce_scatter},
      {.collective = Collective::all_reduce},
  };
  for (CollectiveProbe probe : kKinds) {
    for (std::int64_t size = kSmallest; size <= largest; size *= 4) {
      // Whole 16-byte vectors for every rank, whatever their number.
      const std::int64_t whole = std::int64_t{16} * ranks;
      probe.bytes = size / whole * whole;
      probes.emplace_back(probe);
    }
  }
}

void add_layers(std::vector<Probe>& probes, const std::vector<std::int64_t>& tokens_of_a_rank, int ranks) {
  for (const std::int64_t tokens : tokens_of_a_rank) {
    for (const Scheme scheme : {Scheme::ulysses, Scheme::ring, Scheme::gathered}) {
      for (const Pass pass : {Pass::forward, Pass::backward}) {
        probes.emplace_back(LayerProbe{
            .scheme = scheme, .pass = pass, .tokens = tokens * ranks, .heads = 32, .kv_heads = 8, .head_dim = 128});
      }
    }
  }
}

}  // namespace

Plan cuda_plan(SuiteSize size, int ranks) {
  constexpr kernel::Precision kBf16 = kernel::Precision::bf16;
  const bool quick = size == SuiteSize::quick;
  Plan plan;
  plan.check = {
      GemmProbe{.m = 192, .n = 128, .k = 256, .precision = kBf16},
      CopyProbe{.path = CopyPath::memory, .bytes = 1 << 20}, CopyProbe{.path = CopyPath::kernel, .bytes = 1 << 20},
      CopyProbe{.path = CopyPath::pack, .bytes = 1 << 20}, CopyProbe{.path = CopyPath::unpack, .bytes = 1 << 20}};
  for (const Mask mask : {Mask::causal, Mask::full}) {
    plan.check.emplace_back(probe_of({1024, 1024, 8, 2, 128, mask}, Pass::both));
  }
  if (ranks > 1) {
    add_collectives(plan.check, std::int64_t{64} << 10, ranks);
    for (const Scheme scheme : {Scheme::ulysses, Scheme::ring, Scheme::gathered}) {
      plan.check.emplace_back(LayerProbe{
          .scheme = scheme, .tokens = std::int64_t{512} * ranks, .heads = 32, .kv_heads = 8, .head_dim = 128});
    }
  }
  add_copies(plan.measure, size);
  for (const GemmShape& shape : kGemms) {
    plan.measure.emplace_back(GemmProbe{.m = shape.m, .n = shape.n, .k = shape.k, .precision = kBf16});
    if (quick) {
      break;
    }
  }
  for (const AttentionShape& shape : kAttention) {
    plan.measure.emplace_back(probe_of(shape, Pass::forward));
    plan.measure.emplace_back(probe_of(shape, Pass::backward));
    if (quick) {
      break;
    }
  }
  if (ranks > 1) {
    add_collectives(plan.measure, std::int64_t{1} << (quick ? 20 : 30), ranks);
    add_layers(plan.measure, quick ? std::vector<std::int64_t>{2048} : std::vector<std::int64_t>{2048, 8192, 32768},
               ranks);
  }
  return plan;
}

}  // namespace ulysim::calibration
