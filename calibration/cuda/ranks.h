#pragma once

#include <chrono>
#include <cstddef>
#include <map>
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

/// Rank 0 gives `bytes` to every other rank over TCP; all return them. Throws WorldError when somebody does not come in
/// time, or comes twice.
[[nodiscard]] std::vector<std::byte> share_from_rank_zero(const RankPlace& place, const MeetingPoint& where,
                                                          std::vector<std::byte> bytes);

}  // namespace ulysim::calibration::cuda
