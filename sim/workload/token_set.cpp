#include "sim/workload/token_set.h"

#include <algorithm>
#include <limits>

#include "sim/base/check.h"

namespace ulysim::workload {

namespace {

// Pairs of two long sequences pass 2^63 before the end result does.
__extension__ using Wide = __int128;

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  const std::int64_t q = a / b;
  return q * b > a ? q - 1 : q;
}

/// Pairs (i, j), i in [first, first+n), j in [0, m), with j <= i.
Wide below_diagonal(std::int64_t first, std::int64_t n, std::int64_t m) {
  // i < 0 sees none, 0 <= i < m-1 sees i+1, later ones all m.
  const std::int64_t end = first + n;
  const std::int64_t rise_begin = std::clamp<std::int64_t>(0, first, end);
  const std::int64_t rise_end = std::clamp<std::int64_t>(m - 1, rise_begin, end);
  const Wide rising = rise_end - rise_begin;
  return rising * (static_cast<Wide>(rise_begin) + rise_end + 1) / 2 +
         static_cast<Wide>(end - rise_end) * m * (end > 0 ? 1 : 0);
}

/// The positions of `range` in [from, to).
TokenRange clipped(const TokenRange& range, std::int64_t from, std::int64_t to) {
  const std::int64_t skipped = from <= range.first ? 0 : (from - range.first + range.step - 1) / range.step;
  return {.first = range.first + skipped * range.step, .end = std::min(range.end, to), .step = range.step};
}

std::int64_t last_of(const TokenRange& range) {
  return range.first + (range.count() - 1) * range.step;
}

/// A stretch of positions outside which its own see nothing.
struct Stretch {
  std::int64_t from{};
  std::int64_t to{};
};

Stretch chunk_at(std::int64_t position, std::int64_t chunk) {
  const std::int64_t from = position / chunk * chunk;
  return {.from = from, .to = from + chunk};
}

Stretch document_at(std::int64_t position, const std::vector<std::int64_t>& ends) {
  const std::int64_t period = position / ends.back() * ends.back();
  const auto next = std::upper_bound(ends.begin(), ends.end(), position - period);
  return {.from = period + (next == ends.begin() ? 0 : *(next - 1)), .to = period + *next};
}

/// Calls `visit` with the parts of q and k in each stretch that has positions of both.
template <class StretchAt, class Visit>
void each_stretch(const TokenRange& q, const TokenRange& k, StretchAt stretch_at, Visit visit) {
  const std::int64_t end = std::min(q.end, k.end);
  std::int64_t position = std::max(q.first, k.first);
  while (true) {
    const Stretch stretch = stretch_at(position);
    if (stretch.from >= end) {
      return;
    }
    const TokenRange queries = clipped(q, stretch.from, stretch.to);
    const TokenRange keys = clipped(k, stretch.from, stretch.to);
    if (queries.count() > 0 && keys.count() > 0) {
      visit(queries, keys);
    }
    position = stretch.to;
    if (position >= end) {
      return;
    }
  }
}

/// The parts of q and k that share a document and a chunk.
template <class Visit>
void each_part(const TokenRange& q, const TokenRange& k, const Mask& mask, Visit visit) {
  const auto by_chunk = [&](const TokenRange& queries, const TokenRange& keys) {
    if (!mask.chunk) {
      visit(queries, keys);
      return;
    }
    each_stretch(
        queries, keys, [&](std::int64_t at) { return chunk_at(at, *mask.chunk); }, visit);
  };
  if (q.count() == 0 || k.count() == 0) {
    return;
  }
  if (!mask.documents) {
    by_chunk(q, k);
    return;
  }
  each_stretch(
      q, k, [&](std::int64_t at) { return document_at(at, *mask.documents); }, by_chunk);
}

/// Pairs of one document and chunk, without a block pattern.
Wide pairs(const TokenRange& q, const TokenRange& k, const Mask& mask) {
  const std::int64_t n = q.count();
  const std::int64_t m = k.count();
  if (mask.kind == Mask::Kind::full) {
    return static_cast<Wide>(n) * m;
  }
  ULYSIM_CHECK(q.step == k.step, "token ranges of steps {} and {}", q.step, k.step);
  // In units of the step, key j is seen by query i when j <= i + floor((q.first − k.first)/step).
  Wide seen = below_diagonal(floor_div(q.first - k.first, q.step), n, m);
  if (mask.window) {
    seen -= below_diagonal(floor_div(q.first - *mask.window - k.first, q.step), n, m);
  }
  return seen;
}

struct WidePairs {
  Wide unmasked{};
  Wide computed{};
};

/// Keys of `k` in the blocks [from, to) that the row of blocks keeps.
std::int64_t keys_of(const TokenRange& k, const BlockSparse& pattern, std::int64_t row, Stretch blocks) {
  const std::int64_t whole = pattern.block / k.step;
  std::int64_t sum = kept_blocks(pattern, row, blocks.from, blocks.to) * whole;
  // The first and the last block of the range may lie in it in part only.
  const std::int64_t first = k.first / pattern.block;
  const std::int64_t last = last_of(k) / pattern.block;
  for (const std::int64_t edge : {first, last}) {
    const std::int64_t missing = whole - clipped(k, edge * pattern.block, (edge + 1) * pattern.block).count();
    if (missing > 0 && edge >= blocks.from && edge < blocks.to && kept_blocks(pattern, row, edge, edge + 1) > 0) {
      sum -= missing;
    }
    if (first == last) {
      break;
    }
  }
  return sum;
}

WidePairs sparse_pairs(const TokenRange& q, const TokenRange& k, const Mask& mask) {
  const BlockSparse& pattern = *mask.sparse;
  ULYSIM_CHECK(q.step == k.step && pattern.block % q.step == 0, "token ranges of steps {} and {} in blocks of {}",
               q.step, k.step, pattern.block);
  const bool causal = mask.kind == Mask::Kind::causal;
  const std::int64_t first = k.first / pattern.block;
  const std::int64_t end = last_of(k) / pattern.block + 1;
  WidePairs sum;
  const std::int64_t begin = std::max(q.first / pattern.block, causal ? first : 0);
  for (std::int64_t row = begin; row <= last_of(q) / pattern.block; ++row) {
    const TokenRange own_q = clipped(q, row * pattern.block, (row + 1) * pattern.block);
    const std::int64_t rows = own_q.count();
    std::int64_t keys = keys_of(k, pattern, row, {.from = first, .to = std::min(end, row)});
    if (!causal) {
      keys += keys_of(k, pattern, row, {.from = std::max(first, row + 1), .to = end});
    }
    sum.unmasked += static_cast<Wide>(rows) * keys;
    sum.computed += static_cast<Wide>(rows) * keys;
    const TokenRange own_k = clipped(k, row * pattern.block, (row + 1) * pattern.block);
    if (rows > 0 && own_k.count() > 0) {
      sum.unmasked += pairs(own_q, own_k, {.kind = mask.kind});
      sum.computed += static_cast<Wide>(rows) * own_k.count();
    }
  }
  return sum;
}

std::int64_t count_union(std::vector<Stretch>& stretches) {
  std::sort(stretches.begin(), stretches.end(), [](const Stretch& a, const Stretch& b) { return a.from < b.from; });
  std::int64_t sum = 0;
  std::int64_t covered = 0;
  for (const Stretch& each : stretches) {
    sum += std::max<std::int64_t>(0, each.to - std::max(each.from, covered));
    covered = std::max(covered, each.to);
  }
  return sum;
}

/// By how many steps the newest and the oldest key that query number 0 may see lie ahead of key number 0.
struct Reach {
  std::int64_t newest{};
  std::int64_t oldest{};
};

Reach reach_of(const TokenRange& q, const TokenRange& k, const Mask& mask) {
  constexpr std::int64_t kEver = std::numeric_limits<std::int64_t>::max() / 4;
  if (mask.kind == Mask::Kind::full) {
    return {.newest = kEver, .oldest = -kEver};
  }
  ULYSIM_CHECK(q.step == k.step, "token ranges of steps {} and {}", q.step, k.step);
  return {.newest = floor_div(q.first - k.first, q.step),
          .oldest = mask.window ? floor_div(q.first - *mask.window - k.first, q.step) + 1 : -kEver};
}

/// Queries that see a key of `k`: number a does when [a+oldest, a+newest] meets [0, count of k).
Stretch rows(const TokenRange& q, const TokenRange& k, const Reach& reach) {
  if (reach.oldest > reach.newest) {
    return {};
  }
  return {.from = std::max<std::int64_t>(0, -reach.newest), .to = std::min(q.count(), k.count() - reach.oldest)};
}

/// Keys that a query of `q` sees: number b when some a of q has a+oldest <= b <= a+newest.
Stretch columns(const TokenRange& q, const TokenRange& k, const Reach& reach) {
  if (reach.oldest > reach.newest) {
    return {};
  }
  return {.from = std::max<std::int64_t>(0, reach.oldest), .to = std::min(k.count(), q.count() + reach.newest)};
}

/// `part` numbers the positions of `inner`; the same as numbers of `outer`, of which inner is a part.
Stretch numbered(Stretch part, const TokenRange& inner, const TokenRange& outer) {
  const std::int64_t before = (inner.first - outer.first) / outer.step;
  return {.from = part.from + before, .to = part.to + before};
}

/// The mask as the rectangle sees it: a local block pattern is a window, other patterns leave nothing out.
Mask without_pattern(Mask mask) {
  if (mask.sparse && mask.kind == Mask::Kind::causal && mask.sparse->global == 0 && !mask.sparse->stride &&
      !mask.sparse->density) {
    mask.window = mask.sparse->local * mask.sparse->block;
  }
  mask.sparse.reset();
  return mask;
}

}  // namespace

TokenSet ring_tokens(std::int64_t tokens, Layout layout, std::int64_t ring, std::int64_t rings) {
  if (rings == 1) {
    return {{.first = 0, .end = tokens}};
  }
  switch (layout) {
    case Layout::contiguous: {
      const std::int64_t part = tokens / rings;
      return {{.first = ring * part, .end = (ring + 1) * part}};
    }
    case Layout::zigzag: {
      const std::int64_t part = tokens / (2 * rings);
      const std::int64_t mirror = 2 * rings - 1 - ring;
      return {{.first = ring * part, .end = (ring + 1) * part}, {.first = mirror * part, .end = (mirror + 1) * part}};
    }
    case Layout::striped:
      return {{.first = ring, .end = tokens, .step = rings}};
  }
  return {};
}

PairCount pair_count(const TokenSet& queries, const TokenSet& keys, const Mask& mask) {
  WidePairs sum;
  for (const TokenRange& q : queries) {
    for (const TokenRange& k : keys) {
      each_part(q, k, mask, [&](const TokenRange& part_q, const TokenRange& part_k) {
        if (mask.sparse) {
          const WidePairs part = sparse_pairs(part_q, part_k, mask);
          sum.unmasked += part.unmasked;
          sum.computed += part.computed;
        } else {
          const Wide part = pairs(part_q, part_k, mask);
          sum.unmasked += part;
          sum.computed += part;
        }
      });
    }
  }
  if (sum.computed > std::numeric_limits<std::int64_t>::max()) {
    throw RangeError("attention over so many tokens has more pairs than can be counted");
  }
  return {.unmasked = static_cast<std::int64_t>(sum.unmasked), .computed = static_cast<std::int64_t>(sum.computed)};
}

std::int64_t count_pairs(const TokenSet& queries, const TokenSet& keys, const Mask& mask) {
  return pair_count(queries, keys, mask).unmasked;
}

Rectangle bounding_rectangle(const TokenSet& queries, const TokenSet& keys, const Mask& mask) {
  const Mask plain = without_pattern(mask);
  Rectangle box;
  for (const TokenRange& q : queries) {
    std::vector<Stretch> seeing;
    for (const TokenRange& k : keys) {
      each_part(q, k, plain, [&](const TokenRange& part_q, const TokenRange& part_k) {
        seeing.push_back(numbered(rows(part_q, part_k, reach_of(part_q, part_k, plain)), part_q, q));
      });
    }
    box.queries += count_union(seeing);
  }
  for (const TokenRange& k : keys) {
    std::vector<Stretch> seen;
    for (const TokenRange& q : queries) {
      each_part(q, k, plain, [&](const TokenRange& part_q, const TokenRange& part_k) {
        seen.push_back(numbered(columns(part_q, part_k, reach_of(part_q, part_k, plain)), part_k, k));
      });
    }
    box.keys += count_union(seen);
  }
  return box;
}

}  // namespace ulysim::workload
