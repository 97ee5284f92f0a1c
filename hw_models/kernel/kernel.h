#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "sim/base/quantity.h"

namespace ulysim::kernel {

/// Arithmetic of a GEMM's inputs; accumulation is always wider.
enum class Precision : std::uint8_t { bf16, fp8, mxfp8, nvfp4 };
[[nodiscard]] const char* name(Precision precision);

/// C[m,n] += A[m,k] · B[k,n], `batch` times.
struct Gemm {
  std::int64_t m{};
  std::int64_t n{};
  std::int64_t k{};
  std::int64_t batch{1};
  Precision precision{Precision::bf16};
};

enum class AttentionKernel : std::uint8_t { flash_attention_2, flash_attention_3, cudnn, sdpa };
enum class Direction : std::uint8_t { forward, backward };

/// One call of a fused attention kernel. Its work is the exact number of unmasked (query, key) pairs.
struct Attention {
  AttentionKernel implementation{AttentionKernel::flash_attention_2};
  Direction direction{Direction::forward};
  std::int64_t sequences{1};  ///< independent sequences in the call
  std::int64_t heads{};       ///< query heads
  std::int64_t kv_heads{};
  std::int64_t head_dim{};                   ///< of Q and K
  std::optional<std::int64_t> v_head_dim{};  ///< of V and O, where it differs (multi-head latent attention)
  std::int64_t queries{};                    ///< rows of the score rectangle, per sequence
  std::int64_t keys{};                       ///< columns
  std::int64_t pairs{};  ///< unmasked elements, per head and sequence; queries·keys when nothing is masked
  /// What the kernel computes for them, where that is more: block-sparse kernels compute every kept block whole.
  std::optional<std::int64_t> computed_pairs{};

  [[nodiscard]] std::int64_t executed_pairs() const { return computed_pairs.value_or(pairs); }
};

/// Element-wise and reduction kernels: limited by the bytes that they move, or by their launches.
struct MemoryBound {
  Bytes traffic{};           ///< read plus written
  std::int64_t launches{1};  ///< kernels that share this traffic
};

using Kernel = std::variant<Gemm, Attention, MemoryBound>;

/// Elements of a head of V and of the output.
[[nodiscard]] std::int64_t value_head_dim(const Attention& attention);

/// Executed FLOPs: GEMM 2·m·n·k; attention forward 2·(d_qk + d_v)·executed pairs per head (two products), backward
/// 2·(3·d_qk + 2·d_v)·pairs (a flash kernel recomputes QKᵀ; FlashAttention-2, arXiv 2307.08691 §3.1), which is 2.5
/// times the forward when the two are equal; memory-bound kernels count none.
[[nodiscard]] Flops executed_flops(const Kernel& kernel);

/// Model FLOPs: as executed, but only unmasked pairs count, and attention backward is twice its forward (PaLM, arXiv
/// 2204.02311 app. B).
[[nodiscard]] Flops model_flops(const Kernel& kernel);

/// Least bytes to and from memory: operands once, bf16 activations; attention reads Q, K, V and writes O
/// (backward reads them with dO and writes dQ, dK, dV).
[[nodiscard]] Bytes traffic(const Kernel& kernel);

/// Kernels launched: 1 for a GEMM or an attention forward, 3 for an attention backward
/// (FlashAttention: dO·O, main loop, dQ conversion).
[[nodiscard]] std::int64_t launches(const Kernel& kernel);

}  // namespace ulysim::kernel
