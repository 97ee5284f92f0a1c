#include "calibration/host/waiting.h"

#include <fmt/format.h>
#include <sched.h>

#include <ctime>

#include "sim/base/check.h"

namespace ulysim::calibration::host {
namespace {

// A neighbour on another core answers within microseconds; one that waits for this core needs it.
constexpr std::uint32_t kSpins = 256;

}  // namespace

double now_seconds() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

void give_up_on(int peer) {
  const std::string who = peer == kAnyPeer ? std::string("the other ranks") : fmt::format("rank {}", peer);
  throw WorldError(fmt::format("waited {:.0f} s for {}", kPatienceSeconds, who));
}

void Wait::pause() {
  ++rounds_;
  if (rounds_ < kSpins) {
    return;
  }
  if (rounds_ == kSpins) {
    since_ = now_seconds();
  }
  sched_yield();
  if (rounds_ % kSpins == 0 && now_seconds() - since_ > kPatienceSeconds) {
    give_up_on(peer_);
  }
}

}  // namespace ulysim::calibration::host
