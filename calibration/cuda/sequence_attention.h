#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "calibration/cuda/communicator.h"

// Attention over a sequence that ranks share: the library that the calibrator times and that others may link.
//
// A process drives one or several ranks (Group). forward() and backward() give work to the lanes of their devices and
// return; backward() uses what the last forward() left behind. Work on Lane::compute that was given before is seen,
// and what is given to Lane::compute after finds the results. Buffers are made once, with the object.

namespace ulysim::calibration::cuda {

/// One sequence; batches are run one after the other. head_dim is a multiple of 8 and at most 256.
struct SequenceShape {
  std::int64_t tokens{};
  std::int64_t heads{};
  std::int64_t kv_heads{};
  std::int64_t head_dim{};
  Mask mask{Mask::causal};
};

/// The communicator's ranks that this process drives, in the order in which the communicator was given them.
struct Group {
  Communicator* communicator{};
  std::vector<Member> members{};
};

/// A rank's share: q, out, d_out, dq [tokens/world][heads][head_dim]; k, v, dk, dv [tokens/world][kv_heads][head_dim].
struct LocalTensors {
  const Bf16* q{};
  const Bf16* k{};
  const Bf16* v{};
  Bf16* out{};
  const Bf16* d_out{};
  Bf16* dq{};
  Bf16* dk{};
  Bf16* dv{};
};

/// Which tokens a rank holds: a contiguous part, or chunks r and 2·world − 1 − r (sequence_split.h).
enum class TokenOrder : std::uint8_t { contiguous, zigzag };

class SequenceAttention {
 public:
  SequenceAttention() = default;
  SequenceAttention(const SequenceAttention&) = delete;
  SequenceAttention& operator=(const SequenceAttention&) = delete;
  virtual ~SequenceAttention() = default;
  [[nodiscard]] virtual TokenOrder token_order() const = 0;
  /// One LocalTensors per member. Reads q, k, v; writes out.
  virtual void forward(std::span<const LocalTensors> tensors) = 0;
  /// Reads q, k, v, out, d_out; writes dq, dk, dv.
  virtual void backward(std::span<const LocalTensors> tensors) = 0;
};

enum class SequenceMethod : std::uint8_t { ulysses, ring, gathered };
[[nodiscard]] std::string_view name_of(SequenceMethod method);

/// Why this method cannot share this shape among `world` ranks, as a sentence for the user; nothing if it can.
[[nodiscard]] std::optional<std::string> why_not(SequenceMethod method, const SequenceShape& shape, int world);

/// Ulysses (arXiv:2309.14509): all-to-all to all tokens of some heads and back. KV heads are repeated where there are
/// fewer than ranks. Requires why_not() to be empty, as the two below.
[[nodiscard]] std::unique_ptr<SequenceAttention> make_ulysses(const SequenceShape& shape, Group group);
/// Ring attention (arXiv:2310.01889), zigzag: K and V travel around, their gradients travel behind them in fp32.
[[nodiscard]] std::unique_ptr<SequenceAttention> make_ring(const SequenceShape& shape, Group group);
/// K and V are gathered, their gradients reduced in fp32 (Llama 3, arXiv:2407.21783, section 3.3.2).
[[nodiscard]] std::unique_ptr<SequenceAttention> make_gathered(const SequenceShape& shape, Group group);
[[nodiscard]] std::unique_ptr<SequenceAttention> make_sequence_attention(SequenceMethod method,
                                                                         const SequenceShape& shape, Group group);

/// Plain attention in fp32 on any Device (attention_work.h): the referee.
[[nodiscard]] std::unique_ptr<LocalAttention> make_reference_attention(Device& device);

}  // namespace ulysim::calibration::cuda
