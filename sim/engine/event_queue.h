#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/base/quantity.h"

namespace ulysim::engine {

/// Something that will happen at an instant that is known already. What `subject` and `version` count is the kind's.
struct Event {
  enum class Kind : std::uint8_t {
    kernel_ends,    ///< subject: lane; void unless the lane still has this version
    issued,         ///< subject: lane, whose next op the host has issued by now
    latency_spent,  ///< subject: activity, whose first flows start
    tail_spent,     ///< subject: activity, which ends
  };
  Instant at{};
  std::uint64_t sequence{};  ///< breaks ties: first pushed, first out
  std::uint32_t subject{};
  std::uint32_t version{};
  Kind kind{Kind::kernel_ends};
};

/// Binary heap by (instant, sequence).
class EventQueue {
 public:
  void push(Instant at, Event::Kind kind, std::uint32_t subject, std::uint32_t version) {
    heap_.push_back({.at = at, .sequence = pushed_++, .subject = subject, .version = version, .kind = kind});
    std::push_heap(heap_.begin(), heap_.end(), Later{});
  }
  [[nodiscard]] bool empty() const { return heap_.empty(); }
  [[nodiscard]] Instant next() const { return heap_.front().at; }  ///< requires not empty
  Event pop() {
    std::pop_heap(heap_.begin(), heap_.end(), Later{});
    const Event event = heap_.back();
    heap_.pop_back();
    return event;
  }

 private:
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return a.at != b.at ? b.at < a.at : b.sequence < a.sequence;
    }
  };
  std::vector<Event> heap_;
  std::uint64_t pushed_{};
};

}  // namespace ulysim::engine
