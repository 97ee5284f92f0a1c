#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine/traffic_graph.h"

namespace ulysim::engine {

/// Lists of numbers by index in one array (compressed rows), each in the order in which it was filled.
class Adjacency {
 public:
  Adjacency() = default;
  Adjacency(std::size_t rows, std::size_t entries) : begin_(rows + 1, 0), entries_(entries) {}

  /// `visit(add)` calls add(row, entry) for every entry; it is run twice, to count and to write.
  template <class Visit>
  void fill(Visit visit) {
    visit([this](std::size_t row, std::uint64_t) { ++begin_[row + 1]; });
    for (std::size_t row = 1; row < begin_.size(); ++row) {
      begin_[row] += begin_[row - 1];
    }
    std::vector<std::size_t> next(begin_.begin(), begin_.end() - 1);
    visit([&](std::size_t row, std::uint64_t entry) { entries_[next[row]++] = entry; });
  }

  [[nodiscard]] std::span<const std::uint64_t> of(std::size_t row) const {
    return std::span(entries_).subspan(begin_[row], begin_[row + 1] - begin_[row]);
  }

 private:
  std::vector<std::size_t> begin_{0};
  std::vector<std::uint64_t> entries_;
};

/// The transfers that cross each link, a transfer as often as it crosses it.
[[nodiscard]] inline Adjacency transfers_by_link(const TrafficGraph& graph, std::size_t links) {
  Adjacency out(links, graph.transfer_links.size());
  out.fill([&](auto add) {
    for (std::size_t t = 0; t < graph.transfers.size(); ++t) {
      for (std::size_t k = graph.transfers[t].links_begin; k < graph.transfers[t].links_end; ++k) {
        add(graph.transfer_links[k].index(), t);
      }
    }
  });
  return out;
}

}  // namespace ulysim::engine
