#include <fmt/format.h>

#include <array>
#include <memory>

#include "calibration/cuda/measure.h"

namespace ulysim::calibration::cuda {
namespace {

constexpr std::int64_t kSmallest = std::int64_t{64} << 10U;
constexpr std::int64_t kLargest = std::int64_t{1} << 30U;

struct Collective {
  std::string_view name{};
  void (*run)(NcclCommunicator&, std::span<const Transfer>, std::int64_t bytes){};
  /// Bus bandwidth over bytes per second for n ranks (nccl-tests, doc/PERFORMANCE.md).
  double (*bus_factor)(double n){};
};

double share_of_others(double n) {
  return (n - 1.0) / n;
}

// `bytes` as nccl-tests counts them: all that a rank ends with (all-gather) or starts with (the others).
constexpr std::array<Collective, 6> kCollectives{{
    {"all-to-all", [](auto& c, auto t, auto bytes) { c.all_to_all(t, bytes / c.world()); }, share_of_others},
    {"all-to-all-grouped", [](auto& c, auto t, auto bytes) { c.all_to_all_grouped(t, bytes / c.world()); },
     share_of_others},
    {"send-receive", [](auto& c, auto t, auto bytes) { c.shift(t, bytes); }, [](double) { return 1.0; }},
    {"all-gather", [](auto& c, auto t, auto bytes) { c.all_gather(t, bytes / c.world()); }, share_of_others},
    {"reduce-scatter", [](auto& c, auto t, auto bytes) { c.reduce_scatter(t, bytes / 4 / c.world()); },
     share_of_others},
    {"all-reduce", [](auto& c, auto t, auto bytes) { c.all_reduce(t, bytes / 2); },
     [](double n) { return 2.0 * share_of_others(n); }},
}};

Iteration transfers(const Rig& rig, const Collective& collective, std::int64_t bytes) {
  auto send = std::make_shared<RotatingBuffers>(rig, bytes, 2 * bytes);
  auto receive = std::make_shared<RotatingBuffers>(rig, bytes, 2 * bytes);
  return [&rig, &collective, bytes, send, receive](std::int64_t i) {
    std::vector<Transfer> list;
    for (std::size_t m = 0; m < rig.devices.size(); ++m) {
      list.push_back({.send = send->at<void>(m, i), .receive = receive->at<void>(m, i)});
    }
    collective.run(*rig.communicator, list, bytes);
  };
}

}  // namespace

void measure_collectives(const Rig& rig, Recorder& recorder) {
  const int world = rig.communicator->world();
  if (world == 1) {
    return;  // Nothing leaves the GPU.
  }
  for (const Collective& collective : kCollectives) {
    for (std::int64_t size = kSmallest; size <= kLargest; size *= 4) {
      // Whole 16-byte vectors for every rank, whatever their number.
      const std::int64_t whole = std::int64_t{16} * world;
      const std::int64_t bytes = size / whole * whole;
      recorder.sample("collective", fmt::format("name={} ranks={} bytes={}", collective.name, world, bytes),
                      {.group = collective.name,
                       .value = collective.bus_factor(world) * static_cast<double>(bytes),
                       .unit = "GB/s"},
                      [&] { return transfers(rig, collective, bytes); });
    }
  }
}

}  // namespace ulysim::calibration::cuda
