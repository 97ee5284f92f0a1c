// Send and receive: every position sends its whole payload to its successor, the last to the first. One hop of ring
// attention, and nccl-tests' sendrecv.
#include <memory>
#include <utility>

#include "sim/base/check.h"
#include "sim/collectives/algorithm.h"

namespace ulysim::collectives {
namespace {

class Shift final : public Algorithm {
 public:
  [[nodiscard]] std::string name() const override { return "shift"; }
  [[nodiscard]] std::string summary() const override { return "send/recv from every rank to the next of its group"; }
  [[nodiscard]] bool supports(Kind kind, const Group& /*group*/) const override { return kind == Kind::send_recv; }
  [[nodiscard]] FlowProgram lower(Kind kind, const Group& group) const override {
    ULYSIM_CHECK(supports(kind, group), "shift does not do {}", collectives::name(kind));
    const auto n = static_cast<std::uint32_t>(group.ranks.size());
    if (n < 2) {
      return {};
    }
    Step step;
    for (std::uint32_t from = 0; from < n; ++from) {
      step.transfers.push_back({.from = from, .to = (from + 1) % n});
    }
    FlowProgram program;
    program.steps.push_back(std::move(step));
    return program;
  }
};

}  // namespace

std::unique_ptr<const Algorithm> make_shift() {
  return std::make_unique<Shift>();
}

}  // namespace ulysim::collectives
