#include "tools/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "reports/text.h"
#include "sim/base/format.h"
#include "tools/terminal.h"

namespace ulysim::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kPatience = std::chrono::seconds(1);
constexpr auto kRedraw = std::chrono::milliseconds(200);
constexpr const char* kErase = "\r\x1b[K";

std::string count(std::size_t value) {
  return human_count(static_cast<std::int64_t>(value));
}

/// "45 s", "3 min 20 s", "2 h 5 min".
std::string time_text(double seconds) {
  const auto whole = std::llround(seconds);
  if (whole < 60) {
    return fmt::format("{} s", whole);
  }
  return whole < 3600 ? fmt::format("{} min {} s", whole / 60, whole % 60)
                      : fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

std::string rate_text(double per_second) {
  return per_second >= 10.0  ? fmt::format("{}/s", count(static_cast<std::size_t>(per_second)))
         : per_second >= 0.1 ? fmt::format("{:.1f}/s", per_second)
                             : fmt::format("{} each", time_text(1.0 / per_second));
}

/// Straight to the terminal: no buffer is left half written when the program dies.
void to_terminal(const std::string& text) {
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace

std::string progress_text(const ProgressState& state, const std::string& unit) {
  const double share = static_cast<double>(state.done) / static_cast<double>(std::max<std::size_t>(state.total, 1));
  std::string text =
      fmt::format("{} of {} {} ({:.0f}%)", count(state.done), count(state.total), unit, std::floor(share * 100.0));
  if (state.done == 0 || !(state.seconds > 0.0)) {
    return text;
  }
  text += ", " + rate_text(static_cast<double>(state.done) / state.seconds);
  const double left = state.seconds * (1.0 / share - 1.0);
  return left < 1.0 ? text : text + fmt::format(", {} left", time_text(left));
}

Progress::Progress(const Arguments& arguments, std::string unit) : unit_(std::move(unit)) {
  if (!arguments.quiet && stderr_is_terminal()) {
    drawer_.emplace([this] { draw(); });
  }
}

Progress::~Progress() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  ended_.notify_all();
  drawer_.reset();
}

study::OnProgress Progress::teller() {
  return [this](std::size_t done, std::size_t total) { tell(done, total); };
}

void Progress::tell(std::size_t done, std::size_t total) {
  total_ = total;
  done_ = done;
}

void Progress::draw() {
  const auto begin = Clock::now();
  std::unique_lock lock(mutex_);
  bool drawn = false;
  for (auto wait = std::chrono::milliseconds(kPatience); !ended_.wait_for(lock, wait, [this] { return over_; });
       wait = kRedraw) {
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    const std::string text = progress_text({.done = done_, .total = total_, .seconds = seconds}, unit_);
    to_terminal(kErase + reports::shortened(text, stderr_width() - 1));
    drawn = true;
  }
  if (drawn) {
    to_terminal(kErase);
  }
}

}  // namespace ulysim::tools
