// Which collective, over how many ranks. Logs mostly come without the command line that made them; what gives the
// collective away is the count (of the payload, or of a rank's part), the operation, the root, and that nccl-tests
// never checks an all-to-all or a send/recv in place (alltoall.cu, sendrecv.cu).

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "calibration/import/nccl_tests.h"

namespace ulysim::calibration {
namespace {

struct Answer {
  const CollectiveInfo* collective{};
  std::string from{};
};
struct Ranks {
  std::int64_t ranks{};
  std::string from{};
};

/// What the rows of a table have in common.
struct Evidence {
  std::optional<std::int64_t> ranks_by_count{};  ///< size / element / count where all rows agree; 1: of the payload
  bool reduces{};                                ///< a reduction is printed
  bool rooted{};                                 ///< root is a rank
  bool checked{};                                ///< out of place
  bool checked_in_place{};                       ///< and right
  Ratio ratio{.low = 0.0, .high = 1e300};        ///< busbw / algbw, intersected
};

/// A fraction is a relative error whatever the header says (it may be cut off); a reduction in half precision may err
/// by 1e-2, data that went astray by 1.
bool is_bad(double wrong, Check check) {
  return check == Check::relative_error || wrong < 1.0 ? wrong >= 0.1 : wrong > 0.0;
}

void narrow(Ratio& ratio, const std::optional<Half>& half) {
  if (half && half->algbw.value > 0.0) {
    const Ratio one = ratio_of(half->busbw, half->algbw);
    ratio.low = std::max(ratio.low, one.low);
    ratio.high = std::min(ratio.high, one.high);
  }
}

/// size / time has more digits than the bandwidth that is printed.
void narrow_by_time(Ratio& ratio, const std::optional<Half>& half, std::int64_t size) {
  if (!half) {
    return;
  }
  const double gb_s = static_cast<double>(size) / half->time_us.value / 1e3;
  const Printed exact{.value = gb_s, .half = gb_s * half->time_us.half / half->time_us.value};
  const Ratio one = ratio_of(half->busbw, exact);
  // Where algbw already holds the factor (all_gather before June 2020) the two do not meet; then the first stands.
  if (one.low <= ratio.high && one.high >= ratio.low) {
    ratio.low = std::max(ratio.low, one.low);
    ratio.high = std::min(ratio.high, one.high);
  }
}

Evidence evidence_of(const NcclTable& table) {
  Evidence out;
  bool counts_agree = true;
  bool in_place_seen = false;
  bool in_place_bad = false;
  for (const NcclRow& row : table.rows) {
    const std::int64_t elements = row.size / row.element_bytes;
    const bool whole = row.count > 0 && elements % row.count == 0;
    const std::int64_t ranks = whole ? elements / row.count : 0;
    counts_agree = counts_agree && whole && ranks == out.ranks_by_count.value_or(ranks);
    out.ranks_by_count = ranks;
    out.reduces = out.reduces || (!row.redop.empty() && row.redop != "none");
    out.rooted = out.rooted || row.root.value_or(-1) >= 0;
    out.checked = out.checked || (row.out_of_place && row.out_of_place->wrong.has_value());
    if (row.in_place && row.in_place->wrong) {
      in_place_seen = true;
      in_place_bad = in_place_bad || is_bad(*row.in_place->wrong, table.check);
    }
    narrow(out.ratio, row.out_of_place);
    narrow(out.ratio, row.in_place);
  }
  for (const NcclRow& row : table.rows) {
    narrow_by_time(out.ratio, row.out_of_place, row.size);
    narrow_by_time(out.ratio, row.in_place, row.size);
  }
  if (!counts_agree) {
    out.ranks_by_count.reset();
  }
  out.checked_in_place = in_place_seen && !in_place_bad;
  return out;
}

Answer answer(std::string_view name, std::string from) {
  return {.collective = find_collective(name), .from = std::move(from)};
}

/// No answer where the rows allow more than one.
Answer guess(const Evidence& evidence) {
  if (!evidence.ranks_by_count) {
    return {};
  }
  if (*evidence.ranks_by_count > 1) {
    if (evidence.rooted) {
      return {};
    }
    if (evidence.checked && !evidence.checked_in_place) {
      return answer("all_to_all", "count is a rank's part, not valid in place");
    }
    if (evidence.reduces) {
      return answer("reduce_scatter", "count is a rank's part, a reduction");
    }
    return evidence.checked_in_place ? answer("all_gather", "count is a rank's part, no reduction, valid in place")
                                     : Answer{};
  }
  if (evidence.rooted) {
    return evidence.reduces ? answer("reduce", "a root and a reduction") : answer("broadcast", "a root, no reduction");
  }
  if (evidence.ratio.low > 1.0 && evidence.ratio.low <= evidence.ratio.high) {
    return answer("all_reduce", "busbw above algbw");
  }
  if (evidence.ratio.low <= 1.0 && evidence.ratio.high >= 1.0 && evidence.checked) {
    return evidence.checked_in_place ? answer("all_reduce", "busbw as algbw (2 ranks), valid in place")
                                     : answer("send_recv", "busbw as algbw, no root, not valid in place");
  }
  return {};
}

std::optional<Answer> find_collective_of(const NcclTable& table, const Evidence& evidence, const ImportHints& hints,
                                         const Location& at, Diagnostics& diagnostics) {
  const CollectiveInfo* hinted = hints.collective ? find_collective(*hints.collective) : nullptr;
  if (hints.collective && hinted == nullptr) {
    diagnostics.error({.file = "command line"},
                      fmt::format("no collective '{}'; known: {}", shown(*hints.collective), known_collectives()));
    return std::nullopt;
  }
  if (!table.program.empty()) {
    const CollectiveInfo* named = find_collective(table.program);
    if (hinted != nullptr && hinted != named) {
      diagnostics.error(at, fmt::format("this is {}, not {}", named->name, hinted->name));
      return std::nullopt;
    }
    return Answer{.collective = named, .from = "the program's name"};
  }
  if (hinted != nullptr) {
    return Answer{.collective = hinted, .from = "--collective"};
  }
  Answer guessed = guess(evidence);
  if (guessed.collective == nullptr) {
    diagnostics.error(at, "the file does not name the collective and its rows fit several; say --collective NAME");
    return std::nullopt;
  }
  return guessed;
}

/// Of the groups that NCCL_TESTS_SPLIT makes, each of which runs by itself.
std::optional<Ranks> listed_ranks(const NcclTable& table, const Location& at, Diagnostics& diagnostics) {
  std::map<std::int64_t, std::int64_t> members;
  for (const std::int64_t group : table.rank_groups) {
    ++members[group];
  }
  if (members.empty()) {
    return std::nullopt;
  }
  const std::int64_t first = members.begin()->second;
  if (!std::all_of(members.begin(), members.end(), [&](const auto& group) { return group.second == first; })) {
    diagnostics.error(at, "groups of several sizes ran at once: their figures cannot be told apart");
  }
  return Ranks{.ranks = first, .from = members.size() == 1 ? "the list of devices" : "the list of devices, per group"};
}

std::optional<Ranks> find_ranks(const NcclTable& table, const CollectiveInfo& collective, const Evidence& evidence,
                                const ImportHints& hints, const Location& at, Diagnostics& diagnostics) {
  std::optional<Ranks> found = listed_ranks(table, at, diagnostics);
  const auto take = [&](std::int64_t ranks, std::string from) {
    if (found && found->ranks != ranks) {
      diagnostics.error(at, fmt::format("{} ranks by {}, {} by {}", found->ranks, found->from, ranks, from));
    } else if (!found) {
      found = Ranks{.ranks = ranks, .from = std::move(from)};
    }
  };
  if (collective.count == CountOf::rank && evidence.ranks_by_count) {
    take(*evidence.ranks_by_count, "size over count");
  }
  if (hints.ranks) {
    take(*hints.ranks, "--ranks");
  }
  if (!found && collective.factor == BusFactor::twice_share) {
    if (const auto estimate = ranks_from(evidence.ratio)) {
      found = Ranks{.ranks = estimate->ranks,
                    .from = estimate->low == estimate->high ? std::string("busbw over algbw")
                                                            : fmt::format("busbw over algbw, which allows {} to {}",
                                                                          estimate->low, estimate->high)};
    }
  }
  if (!found) {
    diagnostics.error(at, "the file does not tell how many ranks took part; say --ranks N");
  } else if (found->ranks < 2) {
    diagnostics.error(at, "one rank alone communicates with nobody; was nccl-tests built with MPI=1?");
    found.reset();
  }
  return found;
}

/// Times and bandwidths of a row must belong together, else collective or ranks are not what they seem.
void check_half(const Half& half, const NcclRow& row, double factor, const Location& at, Diagnostics& diagnostics) {
  const double expected = static_cast<double>(row.size) / half.time_us.value / 1e3 * factor;
  const double tolerance = half.busbw.half + expected * (0.01 + half.time_us.half / half.time_us.value);
  if (std::abs(half.busbw.value - expected) > tolerance) {
    diagnostics.error(at, fmt::format("busbw {} GB/s does not follow from {} B in {} us (that is {:.4g})",
                                      half.busbw.value, row.size, half.time_us.value, expected));
  }
}

}  // namespace

void add_samples(const NcclTable& table, const ImportHints& hints, const std::string& file, ImportedFile& out,
                 Diagnostics& diagnostics) {
  const Location start{.file = file, .line = table.line, .column = 1};
  const Evidence evidence = evidence_of(table);
  const auto what = find_collective_of(table, evidence, hints, start, diagnostics);
  if (!what) {
    return;
  }
  const auto ranks = find_ranks(table, *what->collective, evidence, hints, start, diagnostics);
  if (!ranks) {
    return;
  }
  const double factor = bus_factor(*what->collective, ranks->ranks);
  const bool valid_in_place = what->collective->name != "all_to_all" && what->collective->name != "send_recv";
  for (const NcclRow& row : table.rows) {
    const Location at{.file = file, .line = row.line, .column = 1};
    const auto add = [&](const std::optional<Half>& half, bool in_place) {
      if (!half) {
        return;
      }
      if (half->wrong && is_bad(*half->wrong, table.check) && (!in_place || valid_in_place)) {
        diagnostics.error(
            at, fmt::format("the collective gave wrong results ({}): nothing to calibrate from", *half->wrong));
      }
      check_half(*half, row, factor, at, diagnostics);
      out.samples.push_back(
          {.probe = CollectiveProbe{.collective = what->collective->id, .bytes = row.size, .in_place = in_place},
           .gpu = table.gpu,
           .ranks = ranks->ranks,
           .seconds = half->time_us.value / 1e6,
           .printed_rate = half->busbw.value,
           .spread = half->cv_pct ? std::optional(*half->cv_pct / 100.0) : std::nullopt});
    };
    add(row.out_of_place, false);
    add(row.in_place, true);
    ++out.rows;
  }
  const bool first = out.collective.empty();
  const bool same = out.collective == what->collective->name && out.ranks == ranks->ranks;
  if (first) {
    out.collective = what->collective->name;
    out.collective_from = what->from;
    out.ranks = ranks->ranks;
    out.ranks_from = ranks->from;
    out.gpu = table.gpu;
  } else if (!same) {
    out.collective = "several";
    out.collective_from = "several runs in one file";
    out.ranks.reset();
    out.ranks_from.clear();
  }
}

}  // namespace ulysim::calibration
