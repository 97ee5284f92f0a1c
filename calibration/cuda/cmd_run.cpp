#include <fmt/format.h>

#include <memory>
#include <optional>
#include <utility>

#include "calibration/cuda/actions.h"
#include "calibration/cuda/cudnn_attention.h"
#include "calibration/cuda/measure.h"
#include "calibration/cuda/ranks.h"
#include "sim/base/diagnostics.h"

namespace ulysim::calibration::cuda {
namespace {

[[noreturn]] void refuse(std::string message) {
  throw InputError({{.where = {.file = "command line"}, .message = std::move(message)}});
}

struct Launch {
  RankPlace place{};
  std::vector<std::pair<int, GpuFacts>> mine{};  ///< rank and GPU
  std::vector<std::byte> nccl_id{};
};

Launch launch(const std::vector<GpuFacts>& gpus, const Options& options) {
  const int here = static_cast<int>(gpus.size());
  if (options.local_gpus) {
    if (*options.local_gpus > here) {
      refuse(fmt::format("--local-gpus {}, but this machine has {}", *options.local_gpus, here));
    }
    Launch launched{.place = {.world = *options.local_gpus}, .nccl_id = nccl_unique_id()};
    for (int rank = 0; rank < *options.local_gpus; ++rank) {
      launched.mine.emplace_back(rank, gpus[static_cast<std::size_t>(rank)]);
    }
    return launched;
  }
  const Environment environment = launch_environment();
  Launch launched{.place = rank_place(environment)};
  const RankPlace& place = launched.place;
  // A launcher that shows each process its own GPU alone numbers it 0.
  const int index = here == 1 ? 0 : place.local_rank;
  if (index >= here) {
    refuse(fmt::format("local rank {} has no GPU of its own: this machine shows {}", index, here));
  }
  launched.mine.emplace_back(place.rank, gpus[static_cast<std::size_t>(index)]);
  launched.nccl_id = share_from_rank_zero(place, meeting_point(environment),
                                          place.rank == 0 ? nccl_unique_id() : std::vector<std::byte>{});
  return launched;
}

std::string provenance_of(const GpuFacts& gpu) {
  return fmt::format("ulysim-calibrate-cuda driver={} runtime={} cudnn={} nccl={}", gpu.driver_version,
                     gpu.runtime_version, cudnn_version(), nccl_version());
}

}  // namespace

int run_measurements(const std::vector<GpuFacts>& gpus, const Options& options) {
  const Launch launched = launch(gpus, options);
  std::optional<SampleFile> file;
  if (launched.place.rank == 0) {
    file.emplace(*options.out, options.existing);
  }
  std::vector<std::unique_ptr<CudaDevice>> devices;
  std::vector<std::unique_ptr<LocalAttention>> attentions;
  std::vector<NcclMember> nccl_members;
  Rig rig;
  for (const auto& [rank, gpu] : launched.mine) {
    devices.push_back(make_cuda_device(gpu));
    attentions.push_back(make_cudnn_attention(*devices.back()));
    rig.devices.push_back(devices.back().get());
    rig.members.push_back({.rank = rank, .device = devices.back().get(), .attention = attentions.back().get()});
    nccl_members.push_back({.rank = rank, .device = devices.back().get()});
  }
  const auto communicator = make_nccl(launched.nccl_id, launched.place.world, nccl_members);
  rig.communicator = communicator.get();

  const GpuFacts& gpu = launched.mine.front().second;
  Recorder recorder(rig, file ? &*file : nullptr,
                    {.where = fmt::format("{} x{}", gpu.name, launched.place.world),
                     .provenance = provenance_of(gpu),
                     .only = options.only,
                     .seconds = options.seconds});
  using Measure = void (*)(const Rig&, Recorder&);
  constexpr Measure kMeasures[] = {measure_copies, measure_gemms, measure_attention, measure_collectives,
                                   measure_sequence_attention};
  for (std::size_t kind = 0; kind < sample_kinds().size(); ++kind) {
    if (recorder.wants(sample_kinds()[kind])) {
      kMeasures[kind](rig, recorder);
    }
  }
  recorder.print_table();
  return 0;
}

}  // namespace ulysim::calibration::cuda
