#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace ulysim::calibration::cuda {

/// Which of the processes that a launcher started this one is.
struct RankPlace {
  int rank{};
  int world{1};
  int local_rank{};  ///< among those of this machine: which GPU to take
  friend bool operator==(const RankPlace&, const RankPlace&) = default;
};

using Environment = std::map<std::string, std::string>;

/// The variables of this process that rank_place() and meeting_point() may ask for.
[[nodiscard]] Environment launch_environment();

/// From the first launcher found: torchrun (RANK, WORLD_SIZE, LOCAL_RANK), srun (SLURM_PROCID, SLURM_NTASKS,
/// SLURM_LOCALID), Open MPI (OMPI_COMM_WORLD_…), Hydra (PMI_RANK, PMI_SIZE, MPI_LOCALRANKID); alone without any.
/// Throws InputError for a rank without a world, or outside of it.
[[nodiscard]] RankPlace rank_place(const Environment& environment);

/// Where ranks meet before they can use NCCL.
struct MeetingPoint {
  std::string host{"127.0.0.1"};
  std::string port{"29511"};
  std::chrono::milliseconds patience{std::chrono::minutes(2)};
};

/// MASTER_ADDR and MASTER_PORT, which torchrun sets itself. Ours is the port after, as torchrun listens on its own.
[[nodiscard]] MeetingPoint meeting_point(const Environment& environment);

/// Ranks that met, each joined to rank 0 as long as they work together. A rank that ends without leave() is missed: who
/// waits in a collective for a rank that is gone waits for ever.
class Company {
 public:
  /// Rank 0 gives `bytes` to every other rank over TCP. Throws WorldError when somebody does not come in time, or comes
  /// twice.
  Company(const RankPlace& place, const MeetingPoint& where, std::vector<std::byte> bytes);
  Company(Company&&) noexcept;
  Company& operator=(Company&&) noexcept;
  ~Company();

  /// What rank 0 gave.
  [[nodiscard]] const std::vector<std::byte>& bytes() const;
  /// From now on `missed` is called, by a thread of its own and once, with a sentence about the first rank that is
  /// gone: on rank 0 any other, elsewhere rank 0 (which ends when it misses one).
  void watch(std::function<void(const std::string&)> missed);
  /// Says goodbye to the others and no longer watches them.
  void leave();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace ulysim::calibration::cuda
