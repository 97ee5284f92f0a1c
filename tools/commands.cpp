#include <array>

#include "tools/command.h"

namespace ulysim::tools {

std::span<const Command> commands() {
  static const std::array<Command, 12> all{
      compare_command(), run_command(),   maxseq_command(),  sweep_command(), validate_command(), calibrate_command(),
      report_command(),  model_command(), explain_command(), list_command(),  check_command(),    completion_command()};
  return all;
}

}  // namespace ulysim::tools
