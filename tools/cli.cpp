// The only place that knows CLI11: it turns the table of commands into a parser, and a command line into Arguments.

#include "tools/cli.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <utility>

#include "reports/text.h"
#include "sim/base/named.h"
#include "tools/terminal.h"

namespace ulysim::tools {
namespace {

constexpr std::size_t kHelpWidth = 100;
constexpr std::size_t kHelpColumn = 28;

/// CLI11 breaks no lines.
class HelpFormatter final : public CLI::Formatter {
 public:
  [[nodiscard]] std::string make_option(const CLI::Option* option, bool is_positional) const override {
    return entry(make_option_name(option, is_positional) + make_option_opts(option), make_option_desc(option));
  }
  [[nodiscard]] std::string make_subcommand(const CLI::App* sub) const override {
    return entry(sub->get_name(), sub->get_description());
  }

 private:
  static std::string entry(const std::string& name, const std::string& text) {
    return reports::item("  " + name, text, kHelpColumn, std::min(kHelpWidth, terminal_style({}).width));
  }
};

/// `takes` says in the help, and to completion, what a value is (see OptionWords).
template <class Target>
void add(CLI::App& app, const std::string& name, Target& target, const std::string& takes, const std::string& help) {
  app.add_option(name, target, help)->type_name(takes);
}

/// Repeatable, one value each time (CLI11 would take all that follow).
void add_list(CLI::App& app, const std::string& name, std::vector<std::string>& target, const std::string& takes,
              const std::string& help) {
  app.add_option(name, target, help)->type_name(takes)->allow_extra_args(false);
}

void add_set(CLI::App& app, Arguments& arguments) {
  add_list(app, "--set", arguments.set, "KEY=VALUE",
           "over the scenario: training.zero=2, plans.0.ulysses=4 (repeatable)");
}

void add_study_options(CLI::App& app, Arguments& arguments) {
  add_set(app, arguments);
  add(app, "--model", arguments.model, "MODEL", "instead of SCENARIO: a model's name, or a path to its config.json");
  add(app, "--node", arguments.node, "NODE", "instead of SCENARIO: the kind of node");
  add(app, "--nodes", arguments.nodes, "N", "instead of SCENARIO: how many nodes (default 1)");
  add(app, "--seq", arguments.seq, "TOKENS", "instead of SCENARIO: sequence length in tokens (128Ki, 1Mi, 250000)");
  add_list(app, "--plan", arguments.plans, "PLAN",
           "instead of SCENARIO: a plan like ulysses=8 or ulysses=4,ring=2,zero=1 (repeatable)");
}

void add_format_options(CLI::App& app, Arguments& arguments) {
  add(app, "--json", arguments.json, "FILE", "write the whole result as JSON ('-': to standard output)");
  add(app, "--csv", arguments.csv, "FILE", "write a table as CSV ('-': to standard output)");
  app.add_flag("--no-color", arguments.no_color, "no colours, also on a terminal");
}

void add_calibration_options(CLI::App& app, Arguments& arguments) {
  add(app, "--backend", arguments.backend, "host|cuda", "run: what to measure; starts ulysim-calibrate-BACKEND");
  add_list(app, "--samples", arguments.samples, "FILE", "fit: samples that 'run' or 'import' wrote (repeatable)");
  add(app, "--collective", arguments.collective, "NAME", "import: what a log measured that does not name it");
  add(app, "--ranks", arguments.ranks, "N", "run: how many ranks (default 2); import: where a log does not tell");
  add(app, "--fabric", arguments.fabric, "shared-memory|tcp-loopback|tcp-namespaces", "run: what joins them");
  app.add_flag("--quick", arguments.quick, "run: a few seconds, to see that all works");
  app.add_flag("--resume", arguments.resume, "run: go on with the samples file that is there");
}

void add_sweep_options(CLI::App& app, Arguments& arguments) {
  add(app, "--jobs", arguments.jobs, "N", "how many threads (default: one for each core)");
  app.add_flag("--resume", arguments.resume, "go on with what the folder of -o holds, its own and that of all shards");
  add(app, "--shard", arguments.shard, "I/N", "only every N-th point from the I-th on, into the folder of -o");
}

void add_options(CLI::App& app, const Command& command, Arguments& arguments) {
  for (const Options group : command.options) {
    switch (group) {
      case Options::study:
        add_study_options(app, arguments);
        break;
      case Options::set:
        add_set(app, arguments);
        break;
      case Options::folder:
        add(app, "-o,--out", arguments.out, "DIR", "write everything into this folder, made when missing");
        break;
      case Options::formats:
        add_format_options(app, arguments);
        break;
      case Options::html:
        add(app, "--html", arguments.html, "FILE", "write one page with pictures ('-': to standard output)");
        break;
      case Options::trace:
        add(app, "--trace", arguments.trace, "FILE", "write the timeline for Perfetto ('-': to standard output)");
        break;
      case Options::stage:
        add(app, "--stage", arguments.stage, "scenario|logical|parallel|timeline", "which (default: scenario)");
        break;
      case Options::plan_name:
        add_list(app, "--plan", arguments.plans, "NAME", "name of the plan (default: the first)");
        break;
      case Options::calibration:
        add_calibration_options(app, arguments);
        break;
      case Options::sweep:
        add_sweep_options(app, arguments);
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
  parser.app.formatter(std::make_shared<HelpFormatter>());
  parser.app.set_version_flag("--version", kVersion, "print the version and exit");
  parser.app.set_help_flag("-h,--help", "print this and exit");
  parser.app.require_subcommand(1);
  parser.app.footer(
      "Examples:\n"
      "  ulysim compare scenarios/runs/llama3-8b-1m-8xh100.yaml\n"
      "  ulysim compare --model llama-3.1-8b --node dgx-h100 --nodes 1 --seq 1Mi --plan ulysses=8 --plan ring=8\n"
      "  ulysim run --help\n"
      "Exit: 0 done, 1 the world failed, 2 wrong input, 3 the plan cannot run, 70 a bug of ulysim.");
  for (const Command& command : commands()) {
    CLI::App* sub = parser.app.add_subcommand(command.name, command.summary);
    sub->add_option(command.positional, parser.arguments.positional, command.positional_help)->option_text("...");
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

/// "-o" and "--out" of an option.
std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) {
    names.push_back("-" + name);
  }
  for (const std::string& name : option.get_lnames()) {
    names.push_back("--" + name);
  }
  return names;
}

}  // namespace

std::vector<CommandWords> command_words() {
  Parser parser;
  build(parser);
  std::vector<CommandWords> all;
  for (std::size_t i = 0; i < parser.subs.size(); ++i) {
    const Command& command = commands()[i];
    CommandWords words{
        .name = command.name, .summary = command.summary, .positional = command.positional, .takes = command.takes};
    for (const CLI::Option* option : std::as_const(*parser.subs[i]).get_options()) {
      if (!option->get_positional()) {
        const bool flag = option->get_items_expected_max() == 0;
        words.options.push_back({.names = names_of(*option),
                                 .takes = flag ? "" : option->get_type_name(),
                                 .help = option->get_description(),
                                 .repeatable = !flag && option->get_expected_max() > 1});
      }
    }
    all.push_back(std::move(words));
  }
  return all;
}

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
