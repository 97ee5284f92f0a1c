#include "sim/network/flow_network.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "sim/base/check.h"

namespace ulysim::network {
namespace {

// Rounded up: work left never takes no time, and at the instant returned nothing is left. The product comes before
// the division so that round sizes at round rates give the exact picosecond.
Duration time_to_move(double bytes, double rate) {
  const double picoseconds = bytes * kPicosecondsPerSecond / rate;
  if (!(picoseconds <= kLongestSeconds * kPicosecondsPerSecond)) {
    throw RangeError(fmt::format("a transfer of {} bytes at {} B/s takes longer than 100 days", bytes, rate));
  }
  return Duration(static_cast<std::int64_t>(std::ceil(picoseconds)));
}

}  // namespace

FlowNetwork::FlowNetwork(std::vector<double> capacities)
    : solver_(std::move(capacities)), carried_(solver_.capacities().size(), 0.0) {}

FlowNetwork::Handle FlowNetwork::start(std::span<const Crossing> crossings, double wire_bytes) {
  ULYSIM_CHECK(wire_bytes > 0.0 && wire_bytes <= std::numeric_limits<double>::max(), "a flow of {} bytes", wire_bytes);
  Handle handle{};
  if (free_.empty()) {
    handle = static_cast<Handle>(flows_.size());
    flows_.emplace_back();
    free_.reserve(flows_.capacity());  // so that completions never allocate
  } else {
    handle = free_.back();
    free_.pop_back();
  }
  flows_[handle] = {
      .crossings = crossings, .total = wire_bytes, .left = wire_bytes, .since = now_, .finish = now_, .active = true};
  active_.push_back(handle);
  dirty_ = true;
  return handle;
}

double FlowNetwork::left_now(const Flow& flow) const {
  const double moved = flow.rate * (static_cast<double>((now_ - flow.since).value()) / kPicosecondsPerSecond);
  return std::max(0.0, flow.left - moved);
}

void FlowNetwork::credit(Flow& flow, double moved) {
  for (const Crossing& crossing : flow.crossings) {
    carried_[crossing.link] += static_cast<double>(crossing.flows) * (moved - flow.credited);
  }
  flow.credited = moved;
}

void FlowNetwork::settle() {
  if (!dirty_) {
    return;
  }
  classes_.clear();
  for (const Handle handle : active_) {
    classes_.push_back(flows_[handle].crossings);
  }
  solver_.solve(classes_, rates_);
  next_.reset();
  for (std::size_t i = 0; i < active_.size(); ++i) {
    Flow& flow = flows_[active_[i]];
    if (rates_[i] != flow.rate) {
      flow.left = left_now(flow);
      flow.since = now_;
      flow.rate = rates_[i];
      flow.finish = now_ + time_to_move(flow.left, flow.rate);
    }
    next_ = next_ ? std::min(*next_, flow.finish) : flow.finish;
  }
  dirty_ = false;
}

std::optional<Instant> FlowNetwork::next_completion() {
  settle();
  return next_;
}

void FlowNetwork::advance(Instant to, std::vector<Handle>& completed) {
  settle();
  ULYSIM_CHECK(to >= now_, "the network's clock goes back from {} to {} ps", now_.value(), to.value());
  ULYSIM_CHECK(!next_ || to <= *next_, "the network's clock jumps from {} to {} ps over a completion at {} ps",
               now_.value(), to.value(), next_->value());
  now_ = to;
  if (!next_ || to < *next_) {
    return;
  }
  std::size_t kept = 0;
  for (const Handle handle : active_) {
    Flow& flow = flows_[handle];
    if (flow.finish == now_) {
      credit(flow, flow.total);
      flow.active = false;
      completed.push_back(handle);
      free_.push_back(handle);
    } else {
      active_[kept++] = handle;
    }
  }
  active_.resize(kept);
  dirty_ = true;
}

double FlowNetwork::rate(Handle handle) {
  ULYSIM_CHECK(handle < flows_.size() && flows_[handle].active, "flow {} is not active", handle);
  settle();
  return flows_[handle].rate;
}

void FlowNetwork::loads(std::vector<double>& by_link) {
  settle();
  by_link.assign(carried_.size(), 0.0);
  for (const Handle handle : active_) {
    for (const Crossing& crossing : flows_[handle].crossings) {
      by_link[crossing.link] += static_cast<double>(crossing.flows) * flows_[handle].rate;
    }
  }
}

std::span<const double> FlowNetwork::carried() {
  for (const Handle handle : active_) {
    Flow& flow = flows_[handle];
    credit(flow, flow.total - left_now(flow));
  }
  return carried_;
}

}  // namespace ulysim::network
