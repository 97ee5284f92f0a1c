#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace ulysim::tools {

inline constexpr const char* kVersion = "ulysim 0.1.0";

// What the program tells its caller.
inline constexpr int kDone = 0;
inline constexpr int kWorldFailed = 1;
inline constexpr int kWrongInput = 2;
inline constexpr int kCannotRun = 3;  ///< the plan is infeasible or does not fit; results are written all the same
inline constexpr int kOurBug = 70;
inline constexpr int kInterrupted = 130;  ///< 128 + SIGINT, as shells say it

/// The command line asks for something that does not exist or does not go together. Exit 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What stood on the command line, as text.
struct Arguments {
  std::vector<std::string> positional{};
  std::vector<std::string> set{};
  // A study without a file.
  std::optional<std::string> model{};
  std::optional<std::string> node{};
  std::optional<std::string> nodes{};
  std::optional<std::string> seq{};
  std::vector<std::string> plans{};  ///< `explain` takes the first as a name
  // Where results go.
  std::optional<std::string> out{};  ///< a folder for everything
  std::optional<std::string> json{};
  std::optional<std::string> csv{};
  std::optional<std::string> html{};
  std::optional<std::string> trace{};
  std::string stage{"scenario"};
  // Calibration.
  std::string backend{"host"};
  std::vector<std::string> samples{};
  std::optional<std::string> collective{};
  std::optional<std::string> ranks{};
  std::optional<std::string> fabric{};
  bool quick{};
  bool resume{};  ///< also of a sweep
  // A sweep.
  std::optional<std::string> jobs{};
  std::optional<std::string> shard{};
  bool quiet{};
  bool no_color{};
};

/// Groups of options that a command takes.
enum class Options : std::uint8_t {
  study,
  set,
  folder,
  formats,
  html,
  trace,
  stage,
  plan_name,
  calibration,
  sweep,
  quiet
};

struct Command {
  std::string name{};
  std::string summary{};
  std::string positional{};  ///< what the help calls them: "SCENARIO"
  std::string positional_help{};
  std::string takes{"FILE"};  ///< what completion offers for them: FILE, MODEL, NODE, GPU, or words "a|b"
  std::vector<Options> options{};
  std::string examples{};
  int (*run)(const Arguments&){};
};

/// In the order of the help.
[[nodiscard]] std::span<const Command> commands();

// One per command, each defined in cmd_NAME.cpp and listed in commands.cpp.
[[nodiscard]] Command run_command();
[[nodiscard]] Command compare_command();
[[nodiscard]] Command maxseq_command();
[[nodiscard]] Command sweep_command();
[[nodiscard]] Command validate_command();
[[nodiscard]] Command calibrate_command();
[[nodiscard]] Command report_command();
[[nodiscard]] Command model_command();
[[nodiscard]] Command explain_command();
[[nodiscard]] Command list_command();
[[nodiscard]] Command check_command();
[[nodiscard]] Command completion_command();

}  // namespace ulysim::tools
