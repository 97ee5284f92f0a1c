// The only place that knows CLI11: it turns the table of commands into a parser, and a command line into Arguments.

#include "tools/cli.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "sim/base/named.h"

namespace ulysim::tools {
namespace {

constexpr const char* kVersion = "ulysim 0.1.0";

/// Repeatable, one value each time (CLI11 would take all that follow).
void add_list(CLI::App& app, const std::string& name, std::vector<std::string>& target, const std::string& help) {
  app.add_option(name, target, help)->allow_extra_args(false);
}

void add_study_options(CLI::App& app, Arguments& arguments) {
  add_list(app, "--set", arguments.set, "KEY=VALUE over the scenario: training.zero=2, plans.0.ulysses=4 (repeatable)");
  app.add_option("--model", arguments.model, "instead of SCENARIO: a model's name, or a path to its config.json");
  app.add_option("--node", arguments.node, "instead of SCENARIO: the kind of node");
  app.add_option("--nodes", arguments.nodes, "instead of SCENARIO: how many nodes (default 1)");
  app.add_option("--seq", arguments.seq, "instead of SCENARIO: sequence length in tokens (128Ki, 1Mi, 250000)");
  add_list(app, "--plan", arguments.plans,
           "instead of SCENARIO: a plan like ulysses=8 or ulysses=4,ring=2,zero=1 (repeatable)");
}

void add_format_options(CLI::App& app, Arguments& arguments) {
  app.add_option("--json", arguments.json, "write the whole result as JSON to FILE ('-': standard output)");
  app.add_option("--csv", arguments.csv, "write a table as CSV to FILE ('-': standard output)");
  app.add_flag("--no-color", arguments.no_color, "no colours, also on a terminal");
}

void add_calibration_options(CLI::App& app, Arguments& arguments) {
  app.add_option("--backend", arguments.backend, "run: what to measure, host or cuda; starts ulysim-calibrate-BACKEND");
  add_list(app, "--samples", arguments.samples, "fit: samples that 'run' or 'import' wrote (repeatable)");
  app.add_option("--collective", arguments.collective, "import: what a log measured that does not name it");
  app.add_option("--ranks", arguments.ranks, "run: how many ranks (default 2); import: where a log does not tell");
  app.add_option("--fabric", arguments.fabric, "run: what joins them; shared-memory, tcp-loopback or tcp-namespaces");
  app.add_flag("--quick", arguments.quick, "run: a few seconds, to see that all works");
  app.add_flag("--resume", arguments.resume, "run: go on with the samples file that is there");
}

void add_options(CLI::App& app, const Command& command, Arguments& arguments) {
  for (const Options group : command.options) {
    switch (group) {
      case Options::study:
        add_study_options(app, arguments);
        break;
      case Options::folder:
        app.add_option("-o,--out", arguments.out, "write everything into this folder, made when missing");
        break;
      case Options::formats:
        add_format_options(app, arguments);
        break;
      case Options::trace:
        app.add_option("--trace", arguments.trace, "write the timeline for Perfetto to FILE ('-': standard output)");
        break;
      case Options::stage:
        app.add_option("--stage", arguments.stage, "scenario, logical, parallel or timeline");
        break;
      case Options::plan_name:
        add_list(app, "--plan", arguments.plans, "name of the plan (default: the first)");
        break;
      case Options::calibration:
        add_calibration_options(app, arguments);
        break;
      case Options::quiet:
        app.add_flag("-q,--quiet", arguments.quiet, "print nothing but errors");
        break;
    }
  }
}

/// Parsed by CLI11 up to the sub-command; the arguments are those of the one that was named.
struct Parser {
  CLI::App app{"Can I train this model at this context length on this cluster, how fast, and what is in the way?",
               "ulysim"};
  Arguments arguments{};
  std::vector<CLI::App*> subs{};
};

void build(Parser& parser) {
  parser.app.set_version_flag("--version", kVersion);
  parser.app.require_subcommand(1);
  parser.app.footer(
      "Examples:\n"
      "  ulysim compare scenarios/runs/llama3-8b-1m-8xh100.yaml\n"
      "  ulysim compare --model llama-3.1-8b --node dgx-h100 --nodes 1 --seq 1Mi --plan ulysses=8 --plan ring=8\n"
      "  ulysim run --help\n"
      "Exit: 0 done, 1 the world failed, 2 wrong input, 3 the plan cannot run, 70 a bug of ulysim.");
  for (const Command& command : commands()) {
    CLI::App* sub = parser.app.add_subcommand(command.name, command.summary);
    sub->add_option(command.positional, parser.arguments.positional, command.positional_help);
    add_options(*sub, command, parser.arguments);
    sub->footer("Examples:\n" + command.examples);
    parser.subs.push_back(sub);
  }
}

/// CLI11 would only say that a sub-command is required.
void check_command_name(const std::string& name) {
  std::vector<std::string> known;
  for (const Command& command : commands()) {
    known.push_back(command.name);
  }
  if (!name.starts_with('-') && std::find(known.begin(), known.end(), name) == known.end()) {
    throw UsageError("unknown command '" + name + "'" + did_you_mean(name, known));
  }
}

}  // namespace

Invocation parse_command_line(int argc, const char* const* argv) {
  Parser parser;
  build(parser);
  if (argc < 2) {
    throw UsageError("no command; 'ulysim --help' shows them");
  }
  check_command_name(argv[1]);
  try {
    parser.app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return {.text = parser.app.help()};  // of the command, when one was named
  } catch (const CLI::CallForAllHelp&) {
    return {.text = parser.app.help("", CLI::AppFormatMode::All)};
  } catch (const CLI::CallForVersion&) {
    return {.text = std::string(kVersion) + "\n"};
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }
  for (std::size_t i = 0; i < parser.subs.size(); ++i) {
    if (parser.subs[i]->parsed()) {
      return {.command = &commands()[i], .arguments = std::move(parser.arguments)};
    }
  }
  throw UsageError("no command; 'ulysim --help' shows them");
}

}  // namespace ulysim::tools
