#pragma once

#include <cstdint>
#include <cstring>
#include <variant>

#include "calibration/cuda/attention_work.h"
#include "calibration/cuda/element.h"

// Every kernel of ours is a struct with size() items and an operator() that does item i. The GPU runs the items in
// parallel, the tests run the same struct in a loop on the host: index arithmetic is checked without a GPU.
// Pointers point into the memory of the device that runs it; tokens-major tensors are [tokens][heads][head_dim].

namespace ulysim::calibration::cuda {

/// How `heads` heads spread over `peers` ranks: heads/peers each, or, with fewer heads than ranks, every head on
/// peers/heads ranks. Requires that one divides the other.
class HeadSplit {
 public:
  HeadSplit() = default;
  HeadSplit(std::int64_t heads, std::int64_t peers)
      : heads_(heads),
        per_peer_(heads >= peers ? heads / peers : 1),
        replicas_(heads >= peers ? 1 : peers / heads),
        peers_(peers) {}
  ULYSIM_ANYWHERE [[nodiscard]] Divider heads() const { return heads_; }
  ULYSIM_ANYWHERE [[nodiscard]] Divider per_peer() const { return per_peer_; }
  ULYSIM_ANYWHERE [[nodiscard]] Divider replicas() const { return replicas_; }
  ULYSIM_ANYWHERE [[nodiscard]] std::int64_t peers() const { return peers_; }

 private:
  Divider heads_{};
  Divider per_peer_{};
  Divider replicas_{};
  std::int64_t peers_{};
};

/// [tokens][heads][head_dim] → [peers][tokens][heads per peer][head_dim]: what an all-to-all sends (Ulysses,
/// arXiv:2309.14509, section 3). One item is 16 bytes of the result; fewer than 2³¹ items.
struct PackHeads {
  const Vector16* from{};
  Vector16* to{};
  Divider tokens{};
  HeadSplit split{};
  Divider vectors{};  ///< per head: head_dim / 8

  ULYSIM_ANYWHERE [[nodiscard]] std::int64_t size() const {
    return split.peers() * tokens.divisor() * split.per_peer().divisor() * vectors.divisor();
  }
  ULYSIM_ANYWHERE void operator()(std::int64_t i) const {
    const auto item = static_cast<std::uint32_t>(i);
    const std::uint32_t all_heads = vectors.divide(item);
    const std::uint32_t vector = item - all_heads * vectors.divisor();
    const std::uint32_t row = split.per_peer().divide(all_heads);
    const std::uint32_t head = all_heads - row * split.per_peer().divisor();
    const std::uint32_t peer = tokens.divide(row);
    const std::uint32_t token = row - peer * tokens.divisor();
    const std::uint32_t first_head = split.replicas().divide(peer) * split.per_peer().divisor();
    to[i] = from[(token * split.heads().divisor() + first_head + head) * vectors.divisor() + vector];
  }
};

/// The inverse of PackHeads. What replicas of one head hold is added up, as gradients of K and V need it.
struct UnpackHeads {
  const Vector16* from{};
  Vector16* to{};
  Divider tokens{};
  HeadSplit split{};
  Divider vectors{};

  ULYSIM_ANYWHERE [[nodiscard]] std::int64_t size() const {
    return std::int64_t{tokens.divisor()} * split.heads().divisor() * vectors.divisor();
  }
  ULYSIM_ANYWHERE void operator()(std::int64_t i) const {
    const auto item = static_cast<std::uint32_t>(i);
    const std::uint32_t all_heads = vectors.divide(item);
    const std::uint32_t vector = item - all_heads * vectors.divisor();
    const std::uint32_t token = split.heads().divide(all_heads);
    const std::uint32_t head = all_heads - token * split.heads().divisor();
    const std::uint32_t holder = split.per_peer().divide(head);
    const std::uint32_t per_peer = split.per_peer().divisor();
    const std::uint32_t head_there = head - holder * per_peer;
    const std::uint32_t replicas = split.replicas().divisor();
    const auto at = [&](std::uint32_t replica) {
      const std::uint32_t peer = holder * replicas + replica;
      return ((peer * tokens.divisor() + token) * per_peer + head_there) * vectors.divisor() + vector;
    };
    if (replicas == 1) {
      to[i] = from[at(0)];
      return;
    }
    Floats8 sum = to_floats(from[at(0)]);
    for (std::uint32_t replica = 1; replica < replicas; ++replica) {
      const Floats8 more = to_floats(from[at(replica)]);
      for (int j = 0; j < 8; ++j) {
        sum.value[j] += more.value[j];
      }
    }
    to[i] = to_vector(sum);
  }
};

enum class ChunkOrder : std::uint8_t { zigzag_to_natural, natural_to_zigzag };

/// Copies the 2·world chunks of a sequence between their natural order and the order in which ranks hold them: rank r
/// holds chunks r and 2·world − 1 − r, so that every rank sees the same share of a causal mask.
struct CopyChunks {
  const Vector16* from{};
  Vector16* to{};
  std::int64_t chunk_vectors{};
  std::int64_t world{};
  ChunkOrder order{};

  ULYSIM_ANYWHERE [[nodiscard]] std::int64_t zigzag_of(std::int64_t chunk) const {
    return chunk < world ? 2 * chunk : 2 * (2 * world - 1 - chunk) + 1;
  }
  ULYSIM_ANYWHERE [[nodiscard]] std::int64_t size() const { return 2 * world * chunk_vectors; }
  ULYSIM_ANYWHERE void operator()(std::int64_t i) const {
    const std::int64_t zigzag = zigzag_of(i / chunk_vectors) * chunk_vectors + i % chunk_vectors;
    if (order == ChunkOrder::zigzag_to_natural) {
      to[i] = from[zigzag];
    } else {
      to[zigzag] = from[i];
    }
  }
};

struct Fill {
  float* to{};
  float value{};
  std::int64_t count{};
  ULYSIM_ANYWHERE [[nodiscard]] std::int64_t size() const { return count; }
  ULYSIM_ANYWHERE void operator()(std::int64_t i) const { to[i] = value; }
};

struct Round {
  const float* from{};
  Bf16* to{};
  std::int64_t count{};
  ULYSIM_ANYWHERE [[nodiscard]] std::int64_t size() const { return count; }
  ULYSIM_ANYWHERE void operator()(std::int64_t i) const { to[i] = to_bf16(from[i]); }
};

struct AddRounded {
  const Bf16* from{};
  float* sum{};
  std::int64_t count{};
  ULYSIM_ANYWHERE [[nodiscard]] std::int64_t size() const { return count; }
  ULYSIM_ANYWHERE void operator()(std::int64_t i) const { sum[i] += to_float(from[i]); }
};

struct AddFloats {
  const float* from{};
  float* sum{};
  std::int64_t count{};
  ULYSIM_ANYWHERE [[nodiscard]] std::int64_t size() const { return count; }
  ULYSIM_ANYWHERE void operator()(std::int64_t i) const { sum[i] += from[i]; }
};

/// Reads and writes `count` vectors: the ceiling of what memory gives a kernel of ours.
struct CopyVectors {
  const Vector16* from{};
  Vector16* to{};
  std::int64_t count{};
  ULYSIM_ANYWHERE [[nodiscard]] std::int64_t size() const { return count; }
  ULYSIM_ANYWHERE void operator()(std::int64_t i) const { to[i] = from[i]; }
};

/// What a device does in parallel, one item after the other.
template <class Items>
void run_on_host(const Items& items) {
  for (std::int64_t i = 0; i < items.size(); ++i) {
    items(i);
  }
}

using Work = std::variant<PackHeads, UnpackHeads, CopyChunks, Fill, Round, AddRounded, AddFloats, CopyVectors, MergeOut,
                          MergeStats, SliceStats, ReferenceForward, ReferenceDelta, ReferenceQueryGradient,
                          ReferenceKeyGradient>;

}  // namespace ulysim::calibration::cuda
