#include "calibration/cuda/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <random>
#include <stdexcept>

namespace ulysim::calibration::cuda {
namespace {

constexpr int kWarmUp = 5;
constexpr int kBatches = 7;
constexpr double kBatchSeconds = 0.02;
constexpr std::int64_t kMostIterations = 1000;

double quantile(const std::vector<double>& sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

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

Timing measure(const Rig& rig, const Iteration& iteration) {
  Stopwatch stopwatch(rig);
  stopwatch.time(iteration, 0, kWarmUp);
  const double once = rig.communicator->largest({stopwatch.time(iteration, kWarmUp, kWarmUp) / kWarmUp}).front();
  const auto count =
      std::clamp(static_cast<std::int64_t>(kBatchSeconds / std::max(once, 1e-7)), std::int64_t{1}, kMostIterations);
  std::vector<double> seconds;
  seconds.reserve(kBatches);
  for (int batch = 0; batch < kBatches; ++batch) {
    seconds.push_back(stopwatch.time(iteration, batch * count, count) / static_cast<double>(count));
  }
  seconds = rig.communicator->largest(std::move(seconds));
  std::sort(seconds.begin(), seconds.end());
  const double median = quantile(seconds, 0.5);
  return {.median_s = median, .spread = (quantile(seconds, 0.75) - quantile(seconds, 0.25)) / median};
}

Recorder::Recorder(const Rig& rig, SampleFile* file, Settings settings)
    : rig_(&rig), file_(file), settings_(std::move(settings)), start_(std::chrono::steady_clock::now()) {}

bool Recorder::wants(std::string_view kind) const {
  return settings_.only.empty() ||
         std::find(settings_.only.begin(), settings_.only.end(), kind) != settings_.only.end();
}

void Recorder::sample(std::string_view kind, const std::string& shape, Amount amount,
                      const std::function<Iteration()>& prepare) {
  MeasuredSample sample{
      .kind = std::string(kind), .shape = shape, .where = settings_.where, .provenance = settings_.provenance};
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start_;
  const bool late = spent.count() > settings_.seconds;
  // Rank 0 decides: another rank knows neither the file nor the same time.
  const double to_do = file_ != nullptr && !late && !file_->has(sample) ? 1.0 : 0.0;
  if (rig_->communicator->largest({to_do}).front() == 0.0) {
    left_out_ += late ? 1 : 0;
    return;
  }
  Timing timing;
  try {
    const Iteration iteration = prepare();
    timing = measure(*rig_, iteration);
    for (CudaDevice* const device : rig_->devices) {
      device->synchronize();
    }
  } catch (const std::runtime_error& error) {
    if (rig_->communicator->world() > 1) {
      throw;  // The other ranks wait in the middle of a collective; only the launcher can end them.
    }
    fmt::print(stderr, "left out: {} {}: {}\n", kind, shape, error.what());
    ++left_out_;
    return;
  }
  if (file_ == nullptr) {
    return;
  }
  sample.median_s = timing.median_s;
  sample.spread = timing.spread;
  file_->append(sample);
  const double scale = amount.unit == "TFLOP/s" ? 1e12 : 1e9;
  rows_.push_back({.group = std::string(amount.group),
                   .shape = shape,
                   .timing = timing,
                   .rate = amount.value / timing.median_s / scale,
                   .unit = std::string(amount.unit)});
  fmt::print(stderr, "{} {}: {:.1f} us, {:.1f} {}\n", kind, shape, timing.median_s * 1e6, rows_.back().rate,
             amount.unit);
}

void Recorder::print_table() const {
  if (file_ == nullptr) {
    return;
  }
  fmt::print("{} on {}\n", settings_.provenance, settings_.where);
  fmt::print("{:34} {:>7} {:>18} {:>7}  {}\n", "", "samples", "best", "spread", "of");
  std::vector<std::string> done;
  for (const Row& row : rows_) {
    if (std::find(done.begin(), done.end(), row.group) != done.end()) {
      continue;
    }
    done.push_back(row.group);
    const Row* best = &row;
    int samples = 0;
    for (const Row& other : rows_) {
      if (other.group == row.group) {
        ++samples;
        best = other.rate > best->rate ? &other : best;
      }
    }
    fmt::print("{:34} {:7} {:10.1f} {:7} {:6.1f}%  {}\n", best->group, samples, best->rate, best->unit,
               best->timing.spread * 100.0, best->shape);
  }
  fmt::print("{} samples measured, {} left out\n", rows_.size(), left_out_);
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
