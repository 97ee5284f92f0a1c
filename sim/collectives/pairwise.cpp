// Pairwise all-to-all: n−1 steps, in step s position i sends to i+s (mod n). Every step is a permutation, so no
// receiver is met by two senders; it pays n−1 latencies where `direct` pays one. Thakur, Rabenseifner and Gropp, Int.
// J. High Perform. Comput. Appl. 19(1), 2005 (MPICH's long-message algorithm).
#include <memory>
#include <utility>

#include "sim/base/check.h"
#include "sim/collectives/algorithm.h"

namespace ulysim::collectives {
namespace {

class Pairwise final : public Algorithm {
 public:
  [[nodiscard]] std::string name() const override { return "pairwise"; }
  [[nodiscard]] std::string summary() const override { return "all-to-all in n-1 steps, each a permutation"; }
  [[nodiscard]] bool supports(Kind kind, const Group& /*group*/) const override { return kind == Kind::all_to_all; }
  [[nodiscard]] FlowProgram lower(Kind kind, const Group& group) const override {
    ULYSIM_CHECK(supports(kind, group), "pairwise does not do {}", collectives::name(kind));
    const auto n = static_cast<std::uint32_t>(group.ranks.size());
    if (n < 2) {
      return {};
    }
    FlowProgram program{.divisor = n};
    for (std::uint32_t s = 1; s < n; ++s) {
      Step step;
      step.transfers.reserve(n);
      for (std::uint32_t from = 0; from < n; ++from) {
        step.transfers.push_back({.from = from, .to = (from + s) % n});
      }
      program.steps.push_back(std::move(step));
    }
    return program;
  }
};

}  // namespace

std::unique_ptr<const Algorithm> make_pairwise() {
  return std::make_unique<Pairwise>();
}

}  // namespace ulysim::collectives
