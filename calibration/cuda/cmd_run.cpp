#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

#include "calibration/cuda/actions.h"
#include "calibration/cuda/cuda_backend.h"
#include "calibration/cuda/cudnn_attention.h"
#include "calibration/cuda/ranks.h"
#include "calibration/samples/names.h"
#include "sim/base/diagnostics.h"

namespace ulysim::calibration::cuda {
namespace {

[[noreturn]] void refuse(std::string message) {
  throw InputError({{.where = {.file = "command line"}, .message = std::move(message)}});
}

struct Launch {
  RankPlace place{};
  std::vector<std::pair<int, GpuFacts>> mine{};  ///< rank and GPU
  Company company;                               ///< of processes; its bytes are NCCL's id
};

Launch launch(const std::vector<GpuFacts>& gpus, const Options& options) {
  const int here = static_cast<int>(gpus.size());
  if (options.local_gpus) {
    if (*options.local_gpus > here) {
      refuse(fmt::format("--local-gpus {}, but this machine has {}", *options.local_gpus, here));
    }
    Launch launched{.place = {.world = *options.local_gpus}, .company = Company({}, {}, nccl_unique_id())};
    for (int rank = 0; rank < *options.local_gpus; ++rank) {
      launched.mine.emplace_back(rank, gpus[static_cast<std::size_t>(rank)]);
    }
    return launched;
  }
  const Environment environment = launch_environment();
  const RankPlace place = rank_place(environment);
  // A launcher that shows each process its own GPU alone numbers it 0.
  const int index = here == 1 ? 0 : place.local_rank;
  if (index >= here) {
    refuse(fmt::format("local rank {} has no GPU of its own: this machine shows {}", index, here));
  }
  return {.place = place,
          .mine = {{place.rank, gpus[static_cast<std::size_t>(index)]}},
          .company = Company(place, meeting_point(environment),
                             place.rank == 0 ? nccl_unique_id() : std::vector<std::byte>{})};
}

std::string software_of(const GpuFacts& gpu) {
  return fmt::format("ulysim-calibrate-cuda, driver {}, CUDA {}, cuDNN {}, NCCL {}", gpu.driver_version,
                     gpu.runtime_version, cudnn_version(), nccl_version());
}

/// Ranks of one machine are numbered from 0 without a gap.
std::string fabric_of(NcclCommunicator& communicator, const Launch& launched, const Options& options) {
  if (communicator.world() == 1) {
    return "";
  }
  const double last = options.local_gpus ? *options.local_gpus - 1 : launched.place.local_rank;
  const double local_world = communicator.largest({last}).front() + 1.0;
  return local_world < communicator.world() ? "several nodes" : "one node";
}

Plan plan_of(const Options& options, int world) {
  Plan plan = cuda_plan(options.size, world);
  std::erase_if(plan.measure, [&](const Probe& probe) {
    return !options.only.empty() &&
           std::find(options.only.begin(), options.only.end(), kind_of(probe)) == options.only.end();
  });
  return plan;
}

/// The best sample of each kind and way, for a first look.
void print_table(const std::vector<Sample>& samples) {
  std::vector<const Sample*> best;
  const auto row_of = [](const Sample& sample) {
    const Probe& probe = sample.probe;
    if (const auto* attention = std::get_if<AttentionProbe>(&probe)) {
      return fmt::format("attention {}", name_of(attention->pass));
    }
    if (const auto* run = std::get_if<CollectiveProbe>(&probe)) {
      return fmt::format("{} {}", info_of(run->collective).name, name_of(run->via));
    }
    return std::string(kind_of(probe));
  };
  for (const Sample& sample : samples) {
    if (!rate_of(sample)) {
      continue;
    }
    const auto known =
        std::find_if(best.begin(), best.end(), [&](const Sample* other) { return row_of(*other) == row_of(sample); });
    if (known == best.end()) {
      best.push_back(&sample);
    } else if (*rate_of(sample) > *rate_of(**known)) {
      *known = &sample;
    }
  }
  for (const Sample* sample : best) {
    const ShownRate rate = *shown_rate(*sample);
    fmt::print("{:26} best {:9.1f} {:7}  {}\n", row_of(*sample), rate.value, rate.unit, describe(sample->probe));
  }
  fmt::print("{} samples\n", samples.size());
}

/// Whether this process has rank 0: it measures and writes, the others follow.
bool leads(const Launch& launched) {
  return launched.mine.front().first == 0;
}

/// Rank 0 measures, the others do what it says.
void measure_or_follow(const Rig& rig, const Launch& launched, const Options& options) {
  CudaIdentity identity{.fabric = fabric_of(*rig.communicator, launched, options),
                        .software = software_of(launched.mine.front().second)};
  if (!leads(launched)) {
    follow(rig);
    return;
  }
  const auto backend = make_cuda_backend(rig, std::move(identity));
  // bf16 rounds to 2⁻⁹ = 0.2%; results and block results are rounded, sums are not. Batches are 20 ms long.
  print_table(run_suite(*backend, plan_of(options, rig.communicator->world()),
                        {.file = *options.out,
                         .existing = options.existing,
                         .progress = options.progress,
                         .warm_up = 5,
                         .fewest = 7,
                         .most = 7,
                         .tolerance = 1e-2,
                         .tries = 2,
                         .seconds = options.seconds}));
}

/// Ends this process as it stands: memory and communicators that are given back wait for collectives, and one that
/// failed on the way leaves collectives behind that nobody finishes.
[[noreturn]] void end_at_once(int exit_code) {
  std::fflush(nullptr);
  std::_Exit(exit_code);
}

}  // namespace

int run_measurements(const std::vector<GpuFacts>& gpus, const Options& options) {
  Launch launched = launch(gpus, options);
  launched.company.watch([](const std::string& who_is_gone) {
    fmt::print(stderr, "error: {}; the samples so far are written\n", who_is_gone);
    end_at_once(kFailed);
  });
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
  const auto communicator = make_nccl(launched.company.bytes(), launched.place.world, nccl_members);
  rig.communicator = communicator.get();
  try {
    measure_or_follow(rig, launched, options);
  } catch (...) {
    end_at_once(explain_failure());
  }
  launched.company.leave();
  return kDone;
}

}  // namespace ulysim::calibration::cuda
