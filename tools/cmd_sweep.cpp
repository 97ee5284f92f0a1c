#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "reports/output.h"
#include "sim/base/check.h"
#include "sim/base/format.h"
#include "sim/base/mix.h"
#include "sim/scenario/grid.h"
#include "sim/study/sweep.h"
#include "tools/command.h"
#include "tools/data_folder.h"
#include "tools/emit.h"
#include "tools/interrupt.h"
#include "tools/journal.h"
#include "tools/progress.h"
#include "tools/study_input.h"

namespace ulysim::tools {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostJobs = 1024;
constexpr std::size_t kMostShards = 100'000;

std::optional<std::size_t> number(std::string_view text, std::size_t most) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool good = error == std::errc{} && end == text.data() + text.size() && value >= 1 && value <= most;
  return good ? std::optional(value) : std::nullopt;
}

std::size_t jobs_of(const Arguments& arguments) {
  if (!arguments.jobs) {
    return std::max(std::thread::hardware_concurrency(), 1U);
  }
  const auto jobs = number(*arguments.jobs, kMostJobs);
  if (!jobs) {
    throw UsageError(fmt::format("--jobs needs a number from 1 to {}, not '{}'", kMostJobs, *arguments.jobs));
  }
  return *jobs;
}

/// Every `of`-th point: neighbours take about equally long, so that shards do too.
struct Shard {
  std::size_t mine{1};
  std::size_t of{1};

  [[nodiscard]] bool has(std::size_t point) const { return point % of == mine - 1; }
};

std::optional<Shard> shard_of(const Arguments& arguments) {
  if (!arguments.shard) {
    return std::nullopt;
  }
  const std::string_view text = *arguments.shard;
  const std::size_t slash = text.find('/');
  const auto of = slash == std::string_view::npos ? std::nullopt : number(text.substr(slash + 1), kMostShards);
  const auto mine = of ? number(text.substr(0, slash), *of) : std::nullopt;
  if (!mine) {
    throw UsageError(fmt::format("--shard needs i/n, the i-th of n from 1/n to n/n, not '{}'", text));
  }
  return Shard{*mine, *of};
}

void check_usage(const Arguments& arguments) {
  check_outputs(arguments);
  if (!arguments.out && (arguments.resume || arguments.shard)) {
    throw UsageError(
        fmt::format("{} needs the folder of the sweep: -o DIR", arguments.resume ? "--resume" : "--shard"));
  }
  if (arguments.shard && (arguments.json || arguments.csv || arguments.html)) {
    throw UsageError(
        "a shard writes its points into the folder only; --json, --csv and --html belong to the run that puts "
        "the shards together");
  }
}

JournalHead head_of(const scenario::Grid& grid) {
  std::uint64_t hash = 0;
  for (const char c : std::string(kVersion) + '\n' + scenario::fingerprint(grid)) {
    hash = mixed(hash ^ static_cast<unsigned char>(c));
  }
  return {.sweep = grid.name, .identity = fmt::format("{:016x}", hash), .points = grid.points()};
}

results::SweepResult without_points(const scenario::Grid& grid) {
  results::SweepResult sweep{.name = grid.name, .plans = grid.plans};
  for (const scenario::Axis& axis : grid.axes) {
    sweep.axes.push_back({.key = axis.key, .values = axis.names});
  }
  return sweep;
}

/// The journals in the folder of a sweep: its own, and those of its shards.
std::vector<fs::path> journals_in(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator it(folder, error); !error && it != fs::directory_iterator(); it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.starts_with("journal") && name.ends_with(".jsonl")) {
      found.push_back(it->path());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// A sweep in work.
struct Work {
  scenario::Grid grid{};
  std::optional<Shard> shard{};
  results::SweepResult sweep{};      ///< without its points
  FinishedPoints finished{};         ///< also those of earlier runs
  std::optional<Journal> journal{};  ///< absent without a folder
  std::vector<std::size_t> mine{};   ///< points of the shard, or all
};

/// Opens the journal in the folder of -o, and reads what is there when asked to go on.
void open_journal(const Arguments& arguments, Work& work) {
  if (!arguments.out) {
    return;
  }
  const fs::path folder = *arguments.out;
  std::error_code error;
  fs::create_directories(folder, error);
  if (!fs::is_directory(folder)) {
    throw WorldError(fmt::format("cannot make the folder {}: {}", folder.string(), error.message()));
  }
  const fs::path own =
      folder / (work.shard ? fmt::format("journal-{}of{}.jsonl", work.shard->mine, work.shard->of) : "journal.jsonl");
  // A shard begins beside the others; only its own journal tells that it has been here before.
  const bool begun = work.shard ? fs::exists(own) : !journals_in(folder).empty();
  if (begun && !arguments.resume) {
    throw UsageError(
        fmt::format("{} holds a sweep already: --resume goes on with it; or choose another folder", folder.string()));
  }
  const JournalHead head = head_of(work.grid);
  for (const fs::path& journal : journals_in(folder)) {
    if (arguments.resume) {
      read_journal(journal, head, work.sweep, work.finished);
    }
  }
  work.journal.emplace(own, head);
}

/// Simulates what is missing. False when it was stopped before the end.
bool simulate_missing(const Arguments& arguments, std::size_t jobs, Work& work) {
  std::vector<std::size_t> missing;
  std::copy_if(work.mine.begin(), work.mine.end(), std::back_inserter(missing),
               [&](std::size_t point) { return !work.finished.contains(point); });
  std::size_t done = 0;
  const Interrupt interrupt;  // before any thread
  Progress progress(arguments, "points");
  study::sweep(work.grid, missing, {.data = find_data_directory(), .jobs = jobs, .stop = interrupt.token()},
               [&](const results::SweepPoint& point) {
                 if (work.journal) {
                   work.journal->add(point);
                 }
                 work.finished.try_emplace(results::number_of(work.sweep.axes, point.at), point);
                 progress.tell(++done, missing.size());
               });
  return done == missing.size();
}

std::string count(std::size_t value) {
  return human_count(static_cast<std::int64_t>(value));
}

int tell_stopped(const Arguments& arguments, const Work& work) {
  const auto done = static_cast<std::size_t>(std::count_if(
      work.mine.begin(), work.mine.end(), [&](std::size_t point) { return work.finished.contains(point); }));
  const std::string how =
      arguments.out ? fmt::format("the same command with --resume goes on ({} holds what is done)", *arguments.out)
                    : "nothing is kept: -o DIR would";
  fmt::print(stderr, "ulysim: stopped at {} of {} points; {}\n", count(done), count(work.mine.size()), how);
  return kInterrupted;
}

int run(const Arguments& arguments) {
  check_usage(arguments);
  const std::size_t jobs = jobs_of(arguments);
  Work work{.shard = shard_of(arguments)};
  work.grid = scenario::load_grid(only_positional(arguments, "SWEEP"), find_data_directory(),
                                  {.overrides = set_overrides(arguments)});
  work.sweep = without_points(work.grid);
  for (std::size_t point = 0; point < work.grid.points(); ++point) {
    if (!work.shard || work.shard->has(point)) {
      work.mine.push_back(point);
    }
  }
  open_journal(arguments, work);
  if (!simulate_missing(arguments, jobs, work)) {
    return tell_stopped(arguments, work);
  }
  if (work.shard) {
    if (!arguments.quiet) {
      reports::write_stdout(
          fmt::format("shard {}/{}: {} points are in {}; when all shards are, the same command with "
                      "--resume and without --shard puts them together\n",
                      work.shard->mine, work.shard->of, count(work.mine.size()), *arguments.out));
    }
    return kDone;
  }
  for (auto& [number, point] : work.finished) {
    work.sweep.points.push_back(std::move(point));
  }
  emit(&work.sweep, arguments);
  return kDone;
}

}  // namespace

Command sweep_command() {
  return {.name = "sweep",
          .summary = "a grid of scenarios on all cores: who wins where, and where one plan takes over from another",
          .positional = "SWEEP",
          .positional_help = "YAML file of a sweep: a base scenario, and axes of keys and their values",
          .options = {Options::set, Options::sweep, Options::folder, Options::formats, Options::html, Options::quiet},
          .examples =
              "  ulysim sweep scenarios/sweeps/llama3-8b-crossover.yaml -o crossover\n"
              "  ulysim sweep study-sweep.yaml -o results --resume\n"
              "  ulysim sweep study-sweep.yaml --set training.zero=2 --jobs 4 --csv -\n"
              "  ulysim sweep study-sweep.yaml -o results --shard 3/16     (a job array: 1/16 to 16/16)\n"
              "  ulysim sweep study-sweep.yaml -o results --resume         (puts the shards together)\n",
          .run = run};
}

}  // namespace ulysim::tools
