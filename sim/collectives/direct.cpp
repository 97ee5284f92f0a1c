// Direct all-to-all: every position sends its n−1 pieces at once, as NCCL does with a group of ncclSend and ncclRecv
// (nccl-tests' alltoall, torch.distributed.all_to_all_single). The network shares the links among the flows.
#include <memory>
#include <utility>

#include "sim/base/check.h"
#include "sim/collectives/algorithm.h"

namespace ulysim::collectives {
namespace {

class Direct final : public Algorithm {
 public:
  [[nodiscard]] std::string name() const override { return "direct"; }
  [[nodiscard]] std::string summary() const override { return "all-to-all with every pair of ranks at once"; }
  [[nodiscard]] bool supports(Kind kind, const Group& /*group*/) const override { return kind == Kind::all_to_all; }
  [[nodiscard]] FlowProgram lower(Kind kind, const Group& group) const override {
    ULYSIM_CHECK(supports(kind, group), "direct does not do {}", collectives::name(kind));
    const auto n = static_cast<std::uint32_t>(group.ranks.size());
    if (n < 2) {
      return {};
    }
    Step step;
    step.transfers.reserve(std::size_t{n} * (n - 1));
    for (std::uint32_t from = 0; from < n; ++from) {
      for (std::uint32_t s = 1; s < n; ++s) {
        step.transfers.push_back({.from = from, .to = (from + s) % n});
      }
    }
    FlowProgram program{.divisor = n};
    program.steps.push_back(std::move(step));
    return program;
  }
};

}  // namespace

std::unique_ptr<const Algorithm> make_direct() {
  return std::make_unique<Direct>();
}

}  // namespace ulysim::collectives
