#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibration/cuda/nccl_communicator.h"
#include "calibration/cuda/sample_file.h"

namespace ulysim::calibration::cuda {

/// What is measured on: the ranks that this process drives. `communicator` is there also for one rank.
struct Rig {
  std::vector<CudaDevice*> devices{};
  std::vector<Member> members{};  ///< beside devices, one by one; attention is cuDNN's
  NcclCommunicator* communicator{};
};

/// Gives one iteration to the lanes of every device of the rig. The argument counts iterations: buffers are rotated by
/// it, so that the cache does not serve what memory would have to.
using Iteration = std::function<void(std::int64_t)>;

struct Timing {
  double median_s{};
  double spread{};  ///< between the quartiles, relative to the median
};

/// After at least five iterations of warm-up: seven batches of equally many iterations on every rank, each as slow as
/// its slowest rank. All ranks must call this at the same place.
[[nodiscard]] Timing measure(const Rig& rig, const Iteration& iteration);

/// What a sample amounts to, for the table at the end: one line a group.
struct Amount {
  std::string_view group{};
  double value{};           ///< per iteration: FLOP or bytes
  std::string_view unit{};  ///< of value / 10¹² (TFLOP/s) or value / 10⁹ (GB/s)
};

/// Decides on rank 0 what is still to be measured, and writes there.
class Recorder {
 public:
  struct Settings {
    std::string where{};
    std::string provenance{};
    std::vector<std::string> only{};
    double seconds{};
  };
  /// `file`: on rank 0 alone.
  Recorder(const Rig& rig, SampleFile* file, Settings settings);

  /// Whether this kind was asked for. The same on all ranks.
  [[nodiscard]] bool wants(std::string_view kind) const;
  /// Measures and records unless the file has it or the time is over. What cannot run is said and left out.
  /// `prepare` makes buffers and returns the iteration; it is called only if the sample is to be measured.
  void sample(std::string_view kind, const std::string& shape, Amount amount,
              const std::function<Iteration()>& prepare);
  /// Rank 0: the best rate of every group that this run measured, and how many samples it left out.
  void print_table() const;

 private:
  struct Row {
    std::string group{};
    std::string shape{};
    Timing timing{};
    double rate{};
    std::string unit{};
  };
  const Rig* rig_;
  SampleFile* file_;
  Settings settings_;
  std::chrono::steady_clock::time_point start_;
  std::vector<Row> rows_;
  int left_out_{};
};

/// Kinds of samples. Shapes are `key=value`, and say all that the time depends on but the machine.
void measure_copies(const Rig& rig, Recorder& recorder);
void measure_gemms(const Rig& rig, Recorder& recorder);
void measure_attention(const Rig& rig, Recorder& recorder);
void measure_collectives(const Rig& rig, Recorder& recorder);
void measure_sequence_attention(const Rig& rig, Recorder& recorder);

/// Buffers of the same size on every device of a rig, as many as it takes to be more than twice the cache; filled with
/// random bf16 numbers between −1 and 1 (data of zeros make a GPU faster than it is).
class RotatingBuffers {
 public:
  RotatingBuffers(const Rig& rig, std::int64_t bytes, std::int64_t bytes_of_iteration);
  /// Of device number `m`, for this iteration.
  template <class T>
  [[nodiscard]] T* at(std::size_t m, std::int64_t iteration) const {
    return buffers_[m][static_cast<std::size_t>(iteration) % buffers_[m].size()].template as<T>();
  }

 private:
  std::vector<std::vector<Buffer>> buffers_;
};

}  // namespace ulysim::calibration::cuda
