#include "calibration/samples/collective.h"

#include <array>
#include <string>

namespace ulysim::calibration {
namespace {

// In the order of the enumeration.
constexpr std::array<CollectiveInfo, 9> kCollectives{{
    {Collective::all_reduce, "all_reduce", "all_reduce", BusFactor::twice_share, CountOf::payload},
    {Collective::all_gather, "all_gather", "all_gather", BusFactor::share, CountOf::rank},
    {Collective::reduce_scatter, "reduce_scatter", "reduce_scatter", BusFactor::share, CountOf::rank},
    {Collective::all_to_all, "all_to_all", "alltoall", BusFactor::share, CountOf::rank},
    {Collective::send_recv, "send_recv", "sendrecv", BusFactor::whole, CountOf::payload},
    {Collective::broadcast, "broadcast", "broadcast", BusFactor::whole, CountOf::payload},
    {Collective::reduce, "reduce", "reduce", BusFactor::whole, CountOf::payload},
    {Collective::gather, "gather", "gather", BusFactor::share, CountOf::rank},
    {Collective::scatter, "scatter", "scatter", BusFactor::share, CountOf::rank},
}};

/// Spellings of PyTorch that are none of the names above (torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp).
struct Alias {
  std::string_view text{};
  std::string_view name{};
};
constexpr std::array<Alias, 10> kAliases{{{"allgatherbase", "all_gather"},
                                          {"allgatherintotensorcoalesced", "all_gather"},
                                          {"allgathercoalesced", "all_gather"},
                                          {"reducescatterbase", "reduce_scatter"},
                                          {"reducescattertensorcoalesced", "reduce_scatter"},
                                          {"allreducecoalesced", "all_reduce"},
                                          {"alltoallv", "all_to_all"},
                                          {"alltoallbase", "all_to_all"},
                                          {"send", "send_recv"},
                                          {"recv", "send_recv"}}};

/// Letters only, lower case.
std::string plain(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c >= 'A' && c <= 'Z') {
      out += static_cast<char>(c - 'A' + 'a');
    } else if (c >= 'a' && c <= 'z') {
      out += c;
    } else if (c != '_') {
      return {};
    }
  }
  return out;
}

const CollectiveInfo* by_name(std::string_view letters) {
  for (const CollectiveInfo& info : kCollectives) {
    if (plain(info.name) == letters) {
      return &info;
    }
  }
  return nullptr;
}

}  // namespace

const CollectiveInfo& info_of(Collective collective) {
  return kCollectives.at(static_cast<std::size_t>(collective));
}

const CollectiveInfo* find_collective(std::string_view text) {
  std::string letters = plain(text);
  if (letters.ends_with("perf")) {
    letters.resize(letters.size() - 4);
  }
  for (const Alias& alias : kAliases) {
    if (alias.text == letters) {
      letters = plain(alias.name);
    }
  }
  return by_name(letters);
}

double bus_factor(const CollectiveInfo& collective, std::int64_t ranks) {
  const auto n = static_cast<double>(ranks);
  switch (collective.factor) {
    case BusFactor::twice_share:
      return 2.0 * (n - 1.0) / n;
    case BusFactor::share:
      return (n - 1.0) / n;
    case BusFactor::whole:
      break;
  }
  return 1.0;
}

std::string_view known_collectives() {
  return "all_reduce, all_gather, reduce_scatter, all_to_all, send_recv, broadcast, reduce, gather, scatter";
}

}  // namespace ulysim::calibration
