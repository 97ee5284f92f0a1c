#pragma once

#include <cstddef>
#include <map>
#include <optional>

#include "sim/results/run_result.h"
#include "sim/study/legal_lengths.h"
#include "sim/study/machine.h"

namespace ulysim::study {

/// One length, tried.
struct Probe {
  results::PlanResult plan{};  ///< Detail::memory; without figures when it cannot run
  std::string out_of_range{};  ///< a time leaves the simulator's range: no such step is trained
  [[nodiscard]] bool fits() const { return plan.fits(); }
};

/// Looks for the longest legal length at which one plan fits. Every length is simulated once; the next one to try
/// comes from a line through the memory of those that are known, so that a handful are enough, and from bisection
/// where memory moves in steps.
class LengthSearch {
 public:
  LengthSearch(const scenario::Scenario& scenario, const Machine& machine, scenario::PlanEntry entry);

  /// The index of a length that fits while the next one does not (or is beyond the last); 0 when the shortest does
  /// not. `start` is tried first: 1 … lengths().count().
  [[nodiscard]] std::size_t longest(std::size_t start);

  /// Simulated when it is not known yet.
  [[nodiscard]] const Probe& probe(std::size_t index);
  [[nodiscard]] scenario::PlanEntry entry_at(std::size_t index) const;
  [[nodiscard]] const LegalLengths& lengths() const { return lengths_; }
  [[nodiscard]] std::size_t simulated() const { return probes_.size(); }

 private:
  [[nodiscard]] std::size_t guess(std::size_t fits, std::size_t too_long);
  [[nodiscard]] std::optional<double> where_full(std::size_t from, std::size_t to) const;

  const scenario::Scenario& scenario_;
  const Machine& machine_;
  scenario::PlanEntry entry_;
  LegalLengths lengths_;
  std::map<std::size_t, Probe> probes_;
};

}  // namespace ulysim::study
