#include "calibration/cuda/measure.h"

#include <algorithm>
#include <random>
#include <utility>

namespace ulysim::calibration::cuda {
namespace {

constexpr double kBatchSeconds = 0.02;
constexpr std::int64_t kMostIterations = 1000;

class Stopwatch {
 public:
  explicit Stopwatch(const Rig& rig) : rig_(&rig) {
    for (CudaDevice* const device : rig.devices) {
      starts_.push_back(device->make_moment());
      ends_.push_back(device->make_moment());
    }
  }
  /// Of one batch, on the slowest device of this process.
  double time(const Iteration& iteration, std::int64_t first, std::int64_t count) {
    for (std::size_t m = 0; m < starts_.size(); ++m) {
      rig_->devices[m]->mark(starts_[m]);
    }
    for (std::int64_t i = 0; i < count; ++i) {
      iteration(first + i);
    }
    for (std::size_t m = 0; m < starts_.size(); ++m) {
      rig_->devices[m]->mark(ends_[m]);
    }
    double slowest = 0.0;
    for (std::size_t m = 0; m < starts_.size(); ++m) {
      slowest = std::max(slowest, ends_[m].seconds_since(starts_[m]));
    }
    return slowest;
  }

 private:
  const Rig* rig_;
  std::vector<Moment> starts_;
  std::vector<Moment> ends_;
};

}  // namespace

std::vector<double> time_batches(const Rig& rig, const Iteration& iteration, int warm_up, int batches) {
  Stopwatch stopwatch(rig);
  const std::int64_t warm = std::max(warm_up, 1);
  static_cast<void>(stopwatch.time(iteration, 0, warm));
  const double once = rig.communicator->largest({stopwatch.time(iteration, warm, warm) / static_cast<double>(warm)})[0];
  const auto count =
      std::clamp(static_cast<std::int64_t>(kBatchSeconds / std::max(once, 1e-7)), std::int64_t{1}, kMostIterations);
  std::vector<double> seconds;
  seconds.reserve(static_cast<std::size_t>(batches));
  for (int batch = 0; batch < batches; ++batch) {
    seconds.push_back(stopwatch.time(iteration, batch * count, count) / static_cast<double>(count));
  }
  return rig.communicator->largest(std::move(seconds));
}

RotatingBuffers::RotatingBuffers(const Rig& rig, std::int64_t bytes, std::int64_t bytes_of_iteration) {
  std::mt19937 random(1);
  // Two mebibytes of random numbers, repeated on the GPU: uploading all would take longer than measuring.
  std::vector<Bf16> numbers(std::size_t{1} << 20U);
  std::uniform_real_distribution<float> between(-1.0F, 1.0F);
  for (Bf16& number : numbers) {
    number = to_bf16(between(random));
  }
  const auto chunk = static_cast<std::int64_t>(numbers.size() * sizeof(Bf16));
  for (CudaDevice* const device : rig.devices) {
    const std::int64_t sets =
        std::clamp(2 * device->facts().l2_bytes / bytes_of_iteration + 1, std::int64_t{2}, std::int64_t{64});
    std::vector<Buffer>& buffers = buffers_.emplace_back();
    for (std::int64_t set = 0; set < sets; ++set) {
      const Buffer& buffer = buffers.emplace_back(*device, bytes);
      device->upload(buffer.as<void>(), numbers.data(), std::min(chunk, bytes));
      for (std::int64_t at = chunk; at < bytes; at += chunk) {
        device->copy(buffer.as<std::byte>() + at, buffer.as<void>(), std::min(chunk, bytes - at), Lane::compute);
      }
    }
    device->synchronize();
  }
}

}  // namespace ulysim::calibration::cuda
