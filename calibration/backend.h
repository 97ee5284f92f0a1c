#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "hw_models/kernel/kernel.h"

namespace ulysim::calibration {

enum class Mask : std::uint8_t { full, causal };

/// C[m,n] = A[m,k] · B[k,n], on every rank at once.
struct GemmProbe {
  std::int64_t m{};
  std::int64_t n{};
  std::int64_t k{};
};

/// One fused attention kernel on one sequence, on every rank at once.
struct AttentionProbe {
  kernel::Direction direction{kernel::Direction::forward};
  Mask mask{Mask::full};
  std::int64_t heads{};
  std::int64_t kv_heads{};
  std::int64_t head_dim{};
  std::int64_t tokens{};  ///< queries and keys
};

/// A copy inside a rank's memory: reads `bytes` and writes as many.
struct CopyProbe {
  std::int64_t bytes{};
};

enum class Collective : std::uint8_t { all_to_all, all_gather, reduce_scatter, send_recv };

/// `bytes` as nccl-tests counts them: the rank's whole send buffer (all-to-all, reduce-scatter), its whole receive
/// buffer (all-gather), the message to the next rank while one comes from the previous (send_recv).
struct CollectiveProbe {
  Collective collective{Collective::all_to_all};
  std::int64_t bytes{};
};

enum class Scheme : std::uint8_t { ulysses, ring };

/// Attention of one layer, forward and backward, the sequence spread over all ranks: what a step really runs.
struct LayerProbe {
  Scheme scheme{Scheme::ulysses};
  Mask mask{Mask::causal};
  std::int64_t tokens{};  ///< of the whole sequence
  std::int64_t heads{};
  std::int64_t kv_heads{};
  std::int64_t head_dim{};
};

using Probe = std::variant<GemmProbe, AttentionProbe, CopyProbe, CollectiveProbe, LayerProbe>;

struct Repetitions {
  int warm_up{};
  int timed{};
};

/// Something that can be measured: processes on this machine, GPUs.
/// Contract: `verify` before anything is timed; the same probe always does the same work on the same seeded inputs;
/// failures of a rank or a library end as WorldError with one sentence that names the rank.
class Backend {
 public:
  virtual ~Backend() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  [[nodiscard]] virtual int ranks() const = 0;
  [[nodiscard]] virtual std::string fabric() const = 0;   ///< what joins the ranks: "shared-memory"
  [[nodiscard]] virtual std::string machine() const = 0;  ///< processor or GPU; no host name, no commas
  /// Largest ‖result − reference‖ / ‖reference‖ over all outputs and ranks; the reference runs in one process.
  [[nodiscard]] virtual double verify(const Probe& probe) = 0;
  /// Seconds of each timed repetition: from the first rank's start, after a barrier, to the last rank's end.
  [[nodiscard]] virtual std::vector<double> measure(const Probe& probe, Repetitions repetitions) = 0;
};

}  // namespace ulysim::calibration
