#include "calibration/cuda/ranks.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "sim/base/diagnostics.h"

namespace ulysim::calibration::cuda {
namespace {

struct Launcher {
  std::string_view rank{};
  std::string_view world{};
  std::string_view local{};
};

constexpr std::array<Launcher, 4> kLaunchers{{
    {.rank = "RANK", .world = "WORLD_SIZE", .local = "LOCAL_RANK"},
    {.rank = "SLURM_PROCID", .world = "SLURM_NTASKS", .local = "SLURM_LOCALID"},
    {.rank = "OMPI_COMM_WORLD_RANK", .world = "OMPI_COMM_WORLD_SIZE", .local = "OMPI_COMM_WORLD_LOCAL_RANK"},
    {.rank = "PMI_RANK", .world = "PMI_SIZE", .local = "MPI_LOCALRANKID"},
}};
constexpr int kMostPort = 65535;

[[noreturn]] void refuse(std::string message) {
  throw InputError({{.where = {.file = "environment"}, .message = std::move(message)}});
}

int number_of(std::string_view name, std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0) {
    refuse(fmt::format("{}={} is not a number from 0 upwards", name, text));
  }
  return value;
}

}  // namespace

Environment launch_environment() {
  Environment environment;
  const auto take = [&](std::string_view name) {
    const std::string key(name);
    if (const char* const value = std::getenv(key.c_str())) {
      environment[key] = value;
    }
  };
  for (const Launcher& launcher : kLaunchers) {
    take(launcher.rank);
    take(launcher.world);
    take(launcher.local);
  }
  take("MASTER_ADDR");
  take("MASTER_PORT");
  return environment;
}

RankPlace rank_place(const Environment& environment) {
  for (const Launcher& launcher : kLaunchers) {
    const auto rank = environment.find(std::string(launcher.rank));
    if (rank == environment.end()) {
      continue;
    }
    const auto world = environment.find(std::string(launcher.world));
    if (world == environment.end()) {
      refuse(fmt::format("{} is set but {} is not", launcher.rank, launcher.world));
    }
    RankPlace place{.rank = number_of(launcher.rank, rank->second), .world = number_of(launcher.world, world->second)};
    if (place.rank >= place.world) {
      refuse(fmt::format("{}={} is not below {}={}", launcher.rank, place.rank, launcher.world, place.world));
    }
    const auto local = environment.find(std::string(launcher.local));
    place.local_rank = local == environment.end() ? place.rank : number_of(launcher.local, local->second);
    return place;
  }
  return {};
}

MeetingPoint meeting_point(const Environment& environment) {
  MeetingPoint where;
  if (const auto host = environment.find("MASTER_ADDR"); host != environment.end()) {
    where.host = host->second;
  }
  if (const auto port = environment.find("MASTER_PORT"); port != environment.end()) {
    const int next = number_of("MASTER_PORT", port->second) + 1;
    if (next > kMostPort) {
      refuse(fmt::format("MASTER_PORT={} leaves no port after it", port->second));
    }
    where.port = std::to_string(next);
  }
  return where;
}

}  // namespace ulysim::calibration::cuda
