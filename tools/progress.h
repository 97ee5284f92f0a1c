#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "sim/study/study.h"
#include "tools/command.h"

namespace ulysim::tools {

/// How far a study is, on one line of stderr: only on a terminal, not with --quiet, only when it takes over a second;
/// erased at the end.
class Progress {
 public:
  /// `unit` is what is counted, in the plural: "points".
  Progress(const Arguments& arguments, std::string unit);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// For a study to call; refers to this object.
  [[nodiscard]] study::OnProgress teller();
  void tell(std::size_t done, std::size_t total);

 private:
  void draw();

  std::string unit_;
  std::atomic<std::size_t> done_{0};
  std::atomic<std::size_t> total_{0};
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_{false};
  std::optional<std::jthread> drawer_;  ///< absent when nothing is to be seen
};

/// "1,234 of 5,040 points (24%), 812/s, 5 s left". Nothing is said of what is not known yet: of a rate while
/// nothing is done, of the rest while under a second is left.
struct ProgressState {
  std::size_t done{};
  std::size_t total{};
  double seconds{};  ///< since the first unit began
};
[[nodiscard]] std::string progress_text(const ProgressState& state, const std::string& unit);

}  // namespace ulysim::tools
