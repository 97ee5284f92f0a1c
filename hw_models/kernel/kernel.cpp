#include "hw_models/kernel/kernel.h"

#include <array>

namespace ulysim::kernel {
namespace {

constexpr double kModelBackwardOverForward = 2.0;  // without the recomputed QK^T, PaLM app. B
constexpr std::int64_t kActivationBytes = 2;       // bf16
constexpr std::int64_t kAttentionBackwardLaunches = 3;

/// QKᵀ, dQ and dK have rows of d_qk, PV, dP and dV of d_v: five products instead of two (FlashAttention-2 §3.1).
double executed_backward_over_forward(const Attention& a) {
  const auto qk = static_cast<double>(a.head_dim);
  const auto v = static_cast<double>(value_head_dim(a));
  return (3.0 * qk + 2.0 * v) / (qk + v);
}

double attention_flops(const Attention& a, std::int64_t counted, double backward_factor) {
  const double pairs = static_cast<double>(counted) * static_cast<double>(a.sequences) * static_cast<double>(a.heads);
  const double forward = 2.0 * static_cast<double>(a.head_dim + value_head_dim(a)) * pairs;
  return a.direction == Direction::forward ? forward : backward_factor * forward;
}

double gemm_flops(const Gemm& g) {
  return 2.0 * static_cast<double>(g.batch) * static_cast<double>(g.m) * static_cast<double>(g.n) *
         static_cast<double>(g.k);
}

// nvfp4 packs two elements in a byte; the scales of the block formats are left out (1/16 to 1/32 of the operand).
std::int64_t operand_bytes(std::int64_t elements, Precision precision) {
  switch (precision) {
    case Precision::bf16:
      return 2 * elements;
    case Precision::fp8:
    case Precision::mxfp8:
      return elements;
    case Precision::nvfp4:
      return (elements + 1) / 2;
  }
  return 2 * elements;
}

std::int64_t gemm_bytes(const Gemm& g) {
  return g.batch * (operand_bytes(g.m * g.k + g.k * g.n, g.precision) + kActivationBytes * g.m * g.n);
}

std::int64_t attention_bytes(const Attention& a) {
  const std::int64_t query_side = a.heads * a.queries;  // Q, O; backward Q, O, dO, dQ
  const std::int64_t key_side = a.kv_heads * a.keys;    // K, V; backward K, V, dK, dV
  const std::int64_t passes = a.direction == Direction::forward ? 1 : 2;
  return kActivationBytes * a.sequences * (a.head_dim + value_head_dim(a)) * passes * (query_side + key_side);
}

}  // namespace

const char* name(Precision precision) {
  constexpr std::array<const char*, 4> kNames{"bf16", "fp8", "mxfp8", "nvfp4"};
  return kNames.at(static_cast<std::size_t>(precision));
}

std::int64_t value_head_dim(const Attention& attention) {
  return attention.v_head_dim.value_or(attention.head_dim);
}

Flops executed_flops(const Kernel& kernel) {
  if (const auto* gemm = std::get_if<Gemm>(&kernel)) {
    return Flops(gemm_flops(*gemm));
  }
  if (const auto* attention = std::get_if<Attention>(&kernel)) {
    return Flops(attention_flops(*attention, attention->executed_pairs(), executed_backward_over_forward(*attention)));
  }
  return Flops(0.0);
}

Flops model_flops(const Kernel& kernel) {
  if (const auto* attention = std::get_if<Attention>(&kernel)) {
    return Flops(attention_flops(*attention, attention->pairs, kModelBackwardOverForward));
  }
  return executed_flops(kernel);
}

Bytes traffic(const Kernel& kernel) {
  if (const auto* gemm = std::get_if<Gemm>(&kernel)) {
    return Bytes(gemm_bytes(*gemm));
  }
  if (const auto* attention = std::get_if<Attention>(&kernel)) {
    return Bytes(attention_bytes(*attention));
  }
  return std::get<MemoryBound>(kernel).traffic;
}

std::int64_t launches(const Kernel& kernel) {
  if (const auto* attention = std::get_if<Attention>(&kernel)) {
    return attention->direction == Direction::forward ? 1 : kAttentionBackwardLaunches;
  }
  if (const auto* memory = std::get_if<MemoryBound>(&kernel)) {
    return memory->launches;
  }
  return 1;
}

}  // namespace ulysim::kernel
