#include "calibration/cuda/cuda_backend.h"

#include <array>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "calibration/cuda/power.h"
#include "sim/base/check.h"

namespace ulysim::calibration::cuda {
namespace {

enum class Action : std::uint8_t { verify, measure, end };

/// What rank 0 asks of every process; crosses as it lies in memory (one program, started several times).
struct Order {
  Action action{Action::end};
  Probe probe{};
  Repetitions repetitions{};
};
static_assert(std::is_trivially_copyable_v<Order>);

/// One process' part of every order. All processes go through the same collectives whatever happens on one of them.
class Worker {
 public:
  explicit Worker(const Rig& rig) : rig_(&rig) {}

  /// On rank 0 the order itself, elsewhere what rank 0 gave.
  [[nodiscard]] Order share(const Order& order) const {
    std::array<std::byte, sizeof(Order)> bytes{};
    std::memcpy(bytes.data(), &order, sizeof order);
    rig_->communicator->from_rank_zero(bytes);
    Order shared;
    std::memcpy(static_cast<void*>(&shared), bytes.data(), sizeof shared);
    return shared;
  }

  [[nodiscard]] double verify(const Probe& probe) const {
    double own = 0.0;
    try {
      own = std::visit([this](const auto& kind) { return cuda::verify(*rig_, kind); }, probe);
    } catch (const WorldError&) {
      throw;
    } catch (const std::runtime_error& error) {
      throw ImpossibleProbe(error.what());  // refused before anything was exchanged, by all alike
    }
    // A maximum may drop a NaN.
    constexpr double kWrong = 1e300;
    return rig_->communicator->largest({own <= kWrong ? own : kWrong}).front();
  }

  /// Buffers and plans are kept for the next order on the same probe. Where one process cannot prepare, none runs.
  [[nodiscard]] std::vector<double> measure(const Order& order) {
    if (!prepared_ || prepared_->first != order.probe) {
      prepared_.reset();
      std::string why;
      try {
        prepared_.emplace(order.probe,
                          std::visit([this](const auto& kind) { return prepare(*rig_, kind); }, order.probe));
      } catch (const std::runtime_error& error) {
        if (rig_->communicator->world() > 1 && std::holds_alternative<LayerProbe>(order.probe)) {
          throw;  // impossible for all alike, or failed in a collective that the others wait in
        }
        why = error.what();
      }
      if (rig_->communicator->largest({prepared_ ? 0.0 : 1.0}).front() > 0.0) {
        prepared_.reset();
        throw ImpossibleProbe(why.empty() ? "another rank cannot" : why);
      }
    }
    return time_batches(*rig_, prepared_->second, order.repetitions.warm_up, order.repetitions.timed);
  }

 private:
  const Rig* rig_;
  std::optional<std::pair<Probe, Iteration>> prepared_;
};

class CudaBackend final : public Backend {
 public:
  CudaBackend(const Rig& rig, CudaIdentity identity)
      : rig_(&rig), worker_(rig), identity_(std::move(identity)), power_(rig.devices.front()->facts()) {}
  ~CudaBackend() override {
    if (failed_) {
      return;  // The others wait in other collectives than this order's; they miss this process when it ends.
    }
    try {
      static_cast<void>(worker_.share({.action = Action::end}));
    } catch (const WorldError&) {
      // The others are gone already, and what ended them was told.
    }
  }

  [[nodiscard]] std::string_view name() const override { return "cuda"; }
  [[nodiscard]] int ranks() const override { return rig_->communicator->world(); }
  [[nodiscard]] std::string fabric() const override { return identity_.fabric; }
  [[nodiscard]] std::string machine() const override { return rig_->devices.front()->facts().name; }
  [[nodiscard]] std::string software() const override { return identity_.software; }
  [[nodiscard]] double verify(const Probe& probe) override {
    return unless_failed(
        [&] { return worker_.verify(worker_.share({.action = Action::verify, .probe = probe}).probe); });
  }
  [[nodiscard]] std::vector<double> measure(const Probe& probe, Repetitions repetitions) override {
    return unless_failed([&] {
      return worker_.measure(worker_.share({.action = Action::measure, .probe = probe, .repetitions = repetitions}));
    });
  }
  [[nodiscard]] PowerState power_state() override { return power_.read(); }

 private:
  template <class Call>
  std::invoke_result_t<Call> unless_failed(Call call) {
    try {
      return call();
    } catch (const ImpossibleProbe&) {
      throw;  // on every rank alike
    } catch (...) {
      failed_ = true;
      throw;
    }
  }

  const Rig* rig_;
  bool failed_{};
  Worker worker_;
  CudaIdentity identity_;
  PowerReader power_;
};

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(const Rig& rig, CudaIdentity identity) {
  return std::make_unique<CudaBackend>(rig, std::move(identity));
}

void follow(const Rig& rig) {
  Worker worker(rig);
  for (Order order = worker.share({}); order.action != Action::end; order = worker.share({})) {
    try {
      if (order.action == Action::verify) {
        static_cast<void>(worker.verify(order.probe));
      } else {
        static_cast<void>(worker.measure(order));
      }
    } catch (const ImpossibleProbe&) {
      continue;  // on every rank alike; rank 0 tells it
    }
  }
}

}  // namespace ulysim::calibration::cuda
