#pragma once

#include <cstdint>

#include "calibration/cuda/sequence_attention.h"

namespace ulysim::calibration::cuda {

struct CheckedCase {
  SequenceMethod method{};
  SequenceShape shape{};
  int world{};
  std::uint64_t seed{};
};

/// Who computes: all ranks share one device; `tested` is what every rank uses, `referee` what its result is held to.
struct CheckedParts {
  Device* device{};
  LocalAttention* tested{};
  LocalAttention* referee{};
};

/// ‖result − referee‖ / ‖referee‖, the norm over all ranks; not a number if anything was left unwritten.
struct CheckedErrors {
  double out{};
  double dq{};
  double dk{};
  double dv{};
};

/// The same on the ranks of a group, of which this process may drive some: errors of what its members hold. Every
/// process computes the undivided result, on its first member's device. All processes call this with the same case.
[[nodiscard]] CheckedErrors check_ranks(const CheckedCase& checked, const Group& group, LocalAttention& referee);

/// Runs forward and backward on fresh normal random inputs (never zeros), outputs poisoned, in `world` virtual ranks
/// and undivided. Requires why_not() to be empty.
[[nodiscard]] CheckedErrors check_virtual_ranks(const CheckedCase& checked, const CheckedParts& parts);

}  // namespace ulysim::calibration::cuda
