#pragma once

#include <cstdint>
#include <string_view>

namespace ulysim::calibration {

enum class Collective : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  send_recv,
  broadcast,
  reduce,
  gather,
  scatter
};

/// What the bus bandwidth of nccl-tests (doc/PERFORMANCE.md) is to size / time, over n ranks.
enum class BusFactor : std::uint8_t {
  twice_share,  ///< 2(n−1)/n
  share,        ///< (n−1)/n
  whole         ///< 1
};

/// How nccl-tests prints a collective's `count`: of the whole payload, or of one rank's part of it.
enum class CountOf : std::uint8_t { payload, rank };

struct CollectiveInfo {
  Collective id{};
  std::string_view name{};  ///< as everywhere in ulysim: "all_to_all"
  std::string_view test{};  ///< of nccl-tests, without "_perf": "alltoall"
  BusFactor factor{BusFactor::whole};
  CountOf count{CountOf::payload};
};

[[nodiscard]] const CollectiveInfo& info_of(Collective collective);

/// By name, by nccl-tests' name, or by PyTorch's ("_allgather_base", "all_to_allv"); underscores and case do not
/// matter. nullptr when it is none of them.
[[nodiscard]] const CollectiveInfo* find_collective(std::string_view text);

/// Bus bandwidth / (size / time).
[[nodiscard]] double bus_factor(const CollectiveInfo& collective, std::int64_t ranks);

/// "all_reduce, all_gather, …" for messages.
[[nodiscard]] std::string_view known_collectives();

}  // namespace ulysim::calibration
