#pragma once

#include <stop_token>
#include <thread>

namespace ulysim::tools {

/// While this lives, Ctrl-C and SIGTERM ask for a stop instead of ending the program; the second one ends it. To be
/// made before other threads are, which inherit that they do not take the signals.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  [[nodiscard]] std::stop_token token() const { return asked_.get_token(); }
  [[nodiscard]] bool happened() const { return asked_.stop_requested(); }

 private:
  std::stop_source asked_;
  std::jthread watcher_;
};

}  // namespace ulysim::tools
