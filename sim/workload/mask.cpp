#include "sim/workload/mask.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/check.h"
#include "sim/base/mix.h"

namespace ulysim::workload {

namespace {

/// Numbers of [from, to), from >= 0, that are `residue` modulo `step`.
std::int64_t count_congruent(std::int64_t from, std::int64_t to, std::int64_t residue, std::int64_t step) {
  const auto below = [&](std::int64_t end) { return end <= residue ? 0 : (end - residue + step - 1) / step; };
  return to <= from ? 0 : below(to) - below(from);
}

std::int64_t overlap(std::int64_t a, std::int64_t b, std::int64_t from, std::int64_t to) {
  return std::max<std::int64_t>(0, std::min(b, to) - std::max(a, from));
}

/// Blocks before the row's own: `kept` of them, at floor((m·row + offset) / kept) for m = 0 … kept−1.
std::int64_t picked_blocks(const BlockSparse& pattern, std::int64_t row, std::int64_t from, std::int64_t to) {
  const auto visible = static_cast<double>(row + 1);
  const auto wanted = std::lround(*pattern.density * visible);
  const std::int64_t kept = std::clamp<std::int64_t>(wanted - 1, 0, row);
  if (kept == 0) {
    return 0;
  }
  const auto offset = static_cast<std::int64_t>(mixed(pattern.seed ^ mixed(static_cast<std::uint64_t>(row))) %
                                                static_cast<std::uint64_t>(row));
  const auto below = [&](std::int64_t end) {  // m·row + offset < end·kept
    const std::int64_t room = end * kept - offset;
    return room <= 0 ? 0 : std::min(kept, (room + row - 1) / row);
  };
  return below(to) - below(from);
}

}  // namespace

std::int64_t kept_blocks(const BlockSparse& pattern, std::int64_t row, std::int64_t from, std::int64_t to) {
  if (to <= from) {
    return 0;
  }
  if (pattern.density) {
    ULYSIM_CHECK(to <= row, "a block pattern by density looks ahead of block {}", row);
    return picked_blocks(pattern, row, from, to);
  }
  if (row < pattern.global) {
    return to - from;
  }
  const std::int64_t near = row - pattern.local + 1;
  const std::int64_t far = row + pattern.local;
  const std::int64_t global = overlap(0, pattern.global, from, to);
  from = std::max(from, pattern.global);
  std::int64_t kept = global + overlap(near, far, from, to);
  if (pattern.stride) {
    kept += count_congruent(from, std::min(to, near), row % *pattern.stride, *pattern.stride) +
            count_congruent(std::max(from, far), to, row % *pattern.stride, *pattern.stride);
  }
  return kept;
}

bool operator==(const Mask& a, const Mask& b) {
  const bool same_documents =
      a.documents == b.documents || (a.documents && b.documents && *a.documents == *b.documents);
  return a.kind == b.kind && a.window == b.window && a.chunk == b.chunk && a.sparse == b.sparse && same_documents;
}

std::string describe(const BlockSparse& pattern) {
  if (pattern.density) {
    return fmt::format("block {}, density {}, seed {}", pattern.block, *pattern.density, pattern.seed);
  }
  std::string text = fmt::format("block {}, local {}", pattern.block, pattern.local);
  if (pattern.global > 0) {
    text += fmt::format(", global {}", pattern.global);
  }
  if (pattern.stride) {
    text += fmt::format(", stride {}", *pattern.stride);
  }
  return text;
}

std::string describe(const Mask& mask) {
  std::string text = mask.kind == Mask::Kind::causal ? "causal" : "full";
  if (mask.window) {
    text += fmt::format(" window={}", *mask.window);
  }
  if (mask.chunk) {
    text += fmt::format(" chunk={}", *mask.chunk);
  }
  if (mask.sparse) {
    text += fmt::format(" sparse ({})", describe(*mask.sparse));
  }
  if (mask.documents) {
    text += fmt::format(", {} documents", mask.documents->size());
  }
  return text;
}

}  // namespace ulysim::workload
