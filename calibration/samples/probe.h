#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "calibration/samples/collective.h"
#include "hw_models/kernel/kernel.h"

namespace ulysim::calibration {

enum class Mask : std::uint8_t { full, causal };

/// C[m,n] = A[m,k] · B[k,n], `batch` times.
struct GemmProbe {
  std::int64_t m{};
  std::int64_t n{};
  std::int64_t k{};
  std::int64_t batch{1};
  std::optional<kernel::Precision> precision{};  ///< absent: what the backend computes in (the host: float32)
  friend bool operator==(const GemmProbe&, const GemmProbe&) = default;
};

/// What is timed as one. A serving layer's forward also writes K and V of every token to its cache. A profiler that
/// counts a call from its first kernel's start to its last one's end has the host's way between them inside:
/// TransformerEngine starts the kernel of the dropout's seed before it looks for the plan of the attention
/// (fused_attn_fwd, transformer_engine/pytorch/csrc/extensions/attention.cpp); its backward starts all kernels at once.
enum class Pass : std::uint8_t { forward, backward, both, forward_kv_write, forward_host_gap };

/// One fused attention kernel (or two: `both`), every sequence a rectangle of scores.
struct AttentionProbe {
  kernel::AttentionKernel implementation{kernel::AttentionKernel::flash_attention_2};
  Pass pass{Pass::forward};
  Mask mask{Mask::full};
  std::int64_t sequences{1};
  std::int64_t heads{};
  std::int64_t kv_heads{};
  std::int64_t head_dim{};
  std::int64_t queries{};
  std::int64_t keys{};
  friend bool operator==(const AttentionProbe&, const AttentionProbe&) = default;
};

/// memory: within a rank's memory, by the fastest means (copy engine, memcpy); kernel: the same by a kernel of ours;
/// pack, unpack: heads sorted by the rank that they go to, and back; the others between a GPU and page-locked memory.
enum class CopyPath : std::uint8_t { memory, kernel, pack, unpack, host_to_device, device_to_host };

/// Reads `bytes` and writes as many.
struct CopyProbe {
  CopyPath path{CopyPath::memory};
  std::int64_t bytes{};
  friend bool operator==(const CopyProbe&, const CopyProbe&) = default;
};

/// How a collective was called. library: by its own function; grouped: as sends and receives; symmetric: by its own
/// function on buffers that all ranks registered as one window (NCCL 2.28: the copy engines move them).
enum class Via : std::uint8_t { library, grouped, symmetric };

/// `bytes` as nccl-tests counts them: the larger of what a rank sends and receives; the message to the next rank while
/// one comes from the previous (send_recv).
struct CollectiveProbe {
  Collective collective{Collective::all_to_all};
  std::int64_t bytes{};
  bool in_place{};
  Via via{Via::library};
  friend bool operator==(const CollectiveProbe&, const CollectiveProbe&) = default;
};

enum class Scheme : std::uint8_t { ulysses, ring, gathered };

/// Attention of one layer, the sequence spread over all ranks: what a step really runs.
struct LayerProbe {
  Scheme scheme{Scheme::ulysses};
  Pass pass{Pass::both};
  Mask mask{Mask::causal};
  std::int64_t tokens{};  ///< of the whole sequence
  std::int64_t heads{};
  std::int64_t kv_heads{};
  std::int64_t head_dim{};
  friend bool operator==(const LayerProbe&, const LayerProbe&) = default;
};

/// What can be measured, on every rank at once.
using Probe = std::variant<GemmProbe, AttentionProbe, CopyProbe, CollectiveProbe, LayerProbe>;

/// "gemm", "attention", "copy", "collective", "layer", in the order of the variant.
[[nodiscard]] std::span<const std::string_view> probe_kinds();
[[nodiscard]] std::string_view kind_of(const Probe& probe);

/// Whether sizes are such that bytes, pairs and FLOPs stay within 64 bits, and a causal rectangle leaves no row without
/// keys. All that is read from files passes this.
[[nodiscard]] bool is_measurable(const Probe& probe);

/// For people: "gemm 512 x 512 x 512", "attention forward causal, 2048 tokens, 8:8 heads of 64", "all_to_all 65536 B".
[[nodiscard]] std::string describe(const Probe& probe);

/// The kernels that are timed, as the cost model knows them: none for collectives and layers.
[[nodiscard]] std::vector<kernel::Kernel> kernels_of(const Probe& probe);

/// Executed FLOPs of kernels_of().
[[nodiscard]] double flops_of(const Probe& probe);

/// Unmasked pairs of a rectangle, per head and sequence. A causal square counts its diagonal; the keys beyond the
/// queries of a longer rectangle precede them.
[[nodiscard]] std::int64_t pairs_of(Mask mask, std::int64_t queries, std::int64_t keys);

}  // namespace ulysim::calibration
