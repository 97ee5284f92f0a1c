#include "sim/scenario/grid_check.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace ulysim::scenario {
namespace {

/// So many combinations of a value are tried before it is called wrong in all of them.
constexpr std::size_t kMostTries = 64;

/// What is wrong with one plan at one point; empty when it can be read.
std::vector<Diagnostic> mistakes(const Grid& grid, std::size_t point, std::size_t plan, Library& library) {
  try {
    (void)scenario_at(grid, point, plan, library);
    return {};
  } catch (const InputError& error) {
    return error.diagnostics();
  }
}

/// At most `most` of 0 … count − 1, evenly spread.
std::vector<std::size_t> spread(std::size_t count, std::size_t most) {
  std::vector<std::size_t> numbers(std::min(count, most));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = i * count / numbers.size();
  }
  return numbers;
}

/// Finds what is wrong in all its combinations.
class Checker {
 public:
  Checker(const Grid& grid, const std::filesystem::path& data, Diagnostics& diagnostics)
      : grid_(grid), library_(data), diagnostics_(diagnostics) {}

  void check() {
    std::vector<std::size_t> plans(grid_.plans.size());
    bool any = false;
    for (std::size_t plan = 0; plan < plans.size(); ++plan) {
      plans[plan] = plan;
      any = can_be_read(spread(grid_.points(), tries_), {plan}) || any;
    }
    // Where nothing can be read the fault is the base's: one look at each value tells its own.
    tries_ = any ? tries_ : 1;
    for (std::size_t axis = 0; axis < grid_.axes.size(); ++axis) {
      for (std::size_t value = 0; value < grid_.axes[axis].values.size(); ++value) {
        (void)can_be_read(points_with(axis, value), plans);
      }
    }
  }

 private:
  /// Points that have this value, spread over the combinations of the other axes.
  [[nodiscard]] std::vector<std::size_t> points_with(std::size_t axis, std::size_t value) const {
    std::size_t faster = 1;
    for (std::size_t a = axis + 1; a < grid_.axes.size(); ++a) {
      faster *= grid_.axes[a].values.size();
    }
    const std::size_t values = grid_.axes[axis].values.size();
    std::vector<std::size_t> points = spread(grid_.points() / values, tries_);
    for (std::size_t& point : points) {
      point = (point / faster * values + value) * faster + point % faster;
    }
    return points;
  }

  /// Whether one of the combinations can; else reports what is wrong with the first.
  bool can_be_read(const std::vector<std::size_t>& points, const std::vector<std::size_t>& plans) {
    std::vector<Diagnostic> first;
    for (const std::size_t point : points) {
      for (const std::size_t plan : plans) {
        std::vector<Diagnostic> found = mistakes(grid_, point, plan, library_);
        if (found.empty()) {
          return true;
        }
        if (first.empty()) {
          first = std::move(found);
        }
      }
    }
    report(first);
    return false;
  }

  /// The same mistake of the base is met at every point, and told once.
  void report(const std::vector<Diagnostic>& found) {
    for (const Diagnostic& d : found) {
      const std::string text = to_string(d);
      if (std::none_of(diagnostics_.list().begin(), diagnostics_.list().end(),
                       [&](const Diagnostic& other) { return to_string(other) == text; })) {
        diagnostics_.error(d.where, d.message);
      }
    }
  }

  const Grid& grid_;
  Library library_;
  Diagnostics& diagnostics_;
  std::size_t tries_{kMostTries};
};

}  // namespace

void check_combinations(const Grid& grid, const std::filesystem::path& data, Diagnostics& diagnostics) {
  Checker(grid, data, diagnostics).check();
}

}  // namespace ulysim::scenario
