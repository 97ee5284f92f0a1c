#include "sim/network/max_min.h"

#include <limits>
#include <utility>

#include "sim/base/check.h"

namespace ulysim::network {

MaxMin::MaxMin(std::vector<double> capacities) : capacities_(std::move(capacities)), loads_(capacities_.size()) {
  for (std::size_t link = 0; link < capacities_.size(); ++link) {
    ULYSIM_CHECK(capacities_[link] > 0.0 && capacities_[link] <= std::numeric_limits<double>::max(),
                 "link class {} has a capacity of {} B/s", link, capacities_[link]);
  }
}

// Counts the flows of every link and lists the classes that cross it, so that a level visits only what it freezes.
void MaxMin::load(std::span<const std::span<const Crossing>> classes) {
  for (const std::uint32_t link : loaded_) {
    loads_[link] = {};
  }
  loaded_.clear();
  touched_.clear();
  std::size_t crossings = 0;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    ULYSIM_CHECK(!classes[i].empty(), "flow class {} crosses no link", i);
    for (const Crossing& crossing : classes[i]) {
      ULYSIM_CHECK(crossing.link < loads_.size() && crossing.flows > 0,
                   "flow class {}: {} flows on link class {} of {}", i, crossing.flows, crossing.link, loads_.size());
      Load& load = loads_[crossing.link];
      if (load.unfrozen == 0) {
        loaded_.push_back(crossing.link);
      }
      load.unfrozen += crossing.flows;
      ++load.users_end;
    }
    crossings += classes[i].size();
  }
  users_.resize(crossings);
  std::size_t begin = 0;
  for (const std::uint32_t link : loaded_) {
    Load& load = loads_[link];
    const std::size_t users = load.users_end;
    load.left = capacities_[link];
    load.share = load.left / static_cast<double>(load.unfrozen);
    load.users_begin = begin;
    load.users_end = begin;
    begin += users;
  }
  for (std::size_t i = 0; i < classes.size(); ++i) {
    for (const Crossing& crossing : classes[i]) {
      users_[loads_[crossing.link].users_end++] = static_cast<std::uint32_t>(i);
    }
  }
  live_.assign(loaded_.begin(), loaded_.end());
  frozen_.assign(classes.size(), 0);
}

// Equation (2), and the links where it is attained; drops links whose flows are all frozen on the way.
double MaxMin::next_level() {
  double level = std::numeric_limits<double>::infinity();
  full_.clear();
  std::size_t kept = 0;
  for (const std::uint32_t link : live_) {
    const Load& load = loads_[link];
    if (load.unfrozen == 0) {
      continue;
    }
    live_[kept++] = link;
    if (load.share < level) {
      level = load.share;
      full_.clear();
    }
    if (load.share == level) {
      full_.push_back(link);
    }
  }
  live_.resize(kept);
  return level;
}

void MaxMin::solve(std::span<const std::span<const Crossing>> classes, std::vector<double>& rates) {
  load(classes);
  rates.resize(classes.size());
  std::size_t open = classes.size();
  while (open > 0) {
    const double level = next_level();
    ULYSIM_CHECK(level > 0.0 && !full_.empty(), "a max-min level of {} B/s with {} classes open", level, open);
    for (const std::uint32_t link : full_) {
      for (std::size_t k = loads_[link].users_begin; k < loads_[link].users_end; ++k) {
        const std::uint32_t i = users_[k];
        if (frozen_[i] != 0) {
          continue;
        }
        frozen_[i] = 1;
        rates[i] = level;
        --open;
        for (const Crossing& crossing : classes[i]) {
          Load& load = loads_[crossing.link];
          if (load.freezing == 0) {
            touched_.push_back(crossing.link);
          }
          load.freezing += crossing.flows;
        }
      }
    }
    // One subtraction per link: its operands do not depend on how the flows are grouped into classes.
    for (const std::uint32_t link : touched_) {
      Load& load = loads_[link];
      load.left -= static_cast<double>(load.freezing) * level;
      load.unfrozen -= load.freezing;
      load.freezing = 0;
      if (load.unfrozen > 0) {
        load.share = load.left / static_cast<double>(load.unfrozen);
      }
    }
    touched_.clear();
  }
}

}  // namespace ulysim::network
