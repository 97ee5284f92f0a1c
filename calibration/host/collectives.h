#pragma once

#include <span>
#include <vector>

#include "calibration/host/transport.h"

namespace ulysim::calibration::host {

/// Block p of `send` goes to rank p, block p of `receive` comes from rank p: pairwise, one peer a step.
/// Both are size() equal blocks and do not overlap.
void all_to_all(Transport& transport, std::span<const float> send, std::span<float> receive);

/// `receive` is every rank's `send` in rank order: a ring of size() − 1 steps.
void all_gather(Transport& transport, std::span<const float> send, std::span<float> receive);

/// `receive` is the sum over ranks of their block for this rank: a ring of size() − 1 steps. `work` is as `send`.
void reduce_scatter(Transport& transport, std::span<const float> send, std::span<float> receive, std::span<float> work);

/// `send` to the next rank, `receive` from the previous; a copy where there is no other rank.
void shift(Transport& transport, std::span<const float> send, std::span<float> receive);

}  // namespace ulysim::calibration::host
