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

Wide pairs(const TokenRange& q, const TokenRange& k, const Mask& mask) {
  const std::int64_t n = q.count();
  const std::int64_t m = k.count();
  if (n == 0 || m == 0) {
    return 0;
  }
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

/// Positions of a range by number: [from, to).
struct Interval {
  std::int64_t from{};
  std::int64_t to{};
};

std::int64_t count_union(std::vector<Interval>& intervals) {
  std::sort(intervals.begin(), intervals.end(), [](const Interval& a, const Interval& b) { return a.from < b.from; });
  std::int64_t sum = 0;
  std::int64_t covered = 0;
  for (const Interval& each : intervals) {
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
  ULYSIM_CHECK(q.step == k.step, "token ranges of steps {} and {}", q.step, k.step);
  constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min() / 4;
  return {.newest = floor_div(q.first - k.first, q.step),
          .oldest = mask.window ? floor_div(q.first - *mask.window - k.first, q.step) + 1 : kNever};
}

/// Queries that see a key of `k`: number a does when [a+oldest, a+newest] meets [0, count of k).
Interval rows(const TokenRange& q, const TokenRange& k, const Reach& reach) {
  if (reach.oldest > reach.newest) {
    return {};
  }
  return {.from = std::max<std::int64_t>(0, -reach.newest), .to = std::min(q.count(), k.count() - reach.oldest)};
}

/// Keys that a query of `q` sees: number b when some a of q has a+oldest <= b <= a+newest.
Interval columns(const TokenRange& q, const TokenRange& k, const Reach& reach) {
  if (reach.oldest > reach.newest) {
    return {};
  }
  return {.from = std::max<std::int64_t>(0, reach.oldest), .to = std::min(k.count(), q.count() + reach.newest)};
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

std::int64_t count_pairs(const TokenSet& queries, const TokenSet& keys, const Mask& mask) {
  Wide sum = 0;
  for (const TokenRange& q : queries) {
    for (const TokenRange& k : keys) {
      sum += pairs(q, k, mask);
    }
  }
  if (sum > std::numeric_limits<std::int64_t>::max()) {
    throw RangeError("attention over so many tokens has more pairs than can be counted");
  }
  return static_cast<std::int64_t>(sum);
}

Rectangle bounding_rectangle(const TokenSet& queries, const TokenSet& keys, const Mask& mask) {
  Rectangle box;
  if (mask.kind == Mask::Kind::full) {
    for (const TokenRange& q : queries) {
      box.queries += q.count();
    }
    for (const TokenRange& k : keys) {
      box.keys += k.count();
    }
    return box;
  }
  for (const TokenRange& q : queries) {
    std::vector<Interval> seeing;
    for (const TokenRange& k : keys) {
      seeing.push_back(rows(q, k, reach_of(q, k, mask)));
    }
    box.queries += count_union(seeing);
  }
  for (const TokenRange& k : keys) {
    std::vector<Interval> seen;
    for (const TokenRange& q : queries) {
      seen.push_back(columns(q, k, reach_of(q, k, mask)));
    }
    box.keys += count_union(seen);
  }
  return box;
}

}  // namespace ulysim::workload
