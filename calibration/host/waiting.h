#pragma once

#include <cstdint>
#include <string>

namespace ulysim::calibration::host {

/// The monotonic clock: one for all processes of a machine, so instants of different ranks compare.
[[nodiscard]] double now_seconds();

/// Busy waiting that gives the core away and gives up: `pause` in a loop until what is waited for has come.
class Wait {
 public:
  explicit Wait(int peer) : peer_(peer) {}
  /// WorldError naming the peer after a minute.
  void pause();
  void reset() { rounds_ = 0; }

 private:
  int peer_;
  std::uint32_t rounds_{};
  double since_{};
};

inline constexpr double kPatienceSeconds = 60.0;
inline constexpr int kAnyPeer = -1;
[[noreturn]] void give_up_on(int peer);

}  // namespace ulysim::calibration::host
