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

std::int64_t last(const TokenRange& range) {
  return range.first + (range.count() - 1) * range.step;
}

/// How many positions of `range` lie in [low, high].
std::int64_t count_between(const TokenRange& range, std::int64_t low, std::int64_t high) {
  const std::int64_t from = std::max<std::int64_t>(0, floor_div(low - range.first + range.step - 1, range.step));
  const std::int64_t to = std::min(range.count() - 1, floor_div(high - range.first, range.step));
  return std::max<std::int64_t>(0, to - from + 1);
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
  std::int64_t first_key = std::numeric_limits<std::int64_t>::max();
  std::int64_t last_key = -1;
  std::int64_t first_query = first_key;
  std::int64_t last_query = -1;
  for (const TokenRange& k : keys) {
    first_key = std::min(first_key, k.first);
    last_key = std::max(last_key, last(k));
  }
  for (const TokenRange& q : queries) {
    first_query = std::min(first_query, q.first);
    last_query = std::max(last_query, last(q));
  }
  const std::int64_t reach = mask.window ? *mask.window - 1 : std::numeric_limits<std::int64_t>::max() / 4;
  for (const TokenRange& q : queries) {
    box.queries += count_between(q, first_key, last_key + reach);
  }
  for (const TokenRange& k : keys) {
    box.keys += count_between(k, first_query - reach, last_query);
  }
  return box;
}

}  // namespace ulysim::workload
