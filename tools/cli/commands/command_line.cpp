// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/commands/command_line.h"

#include <algorithm>
#include <sstream>
#include <stdexcept>

#include <CLI/CLI.hpp>

#include "engine/files/available_memory.h"
#include "engine/files/memory_lack.h"
#include "engine/files/typography.h"
#include "engine/moments/error_terms.h"
#include "engine/moments/layer_estimates.h"
#include "kernels/host.h"
#include "kernels/statistics/stopping.h"
#include "tools/cli/call_name.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/layer_table.h"

namespace headlab::tools {
namespace {

std::string exit_codes_text() {
  std::string text = "Exit codes:\n";
  for (const ExitCodeMeaning& one : exit_code_meanings()) {
    text += "  " + left(one.code, 9) + one.meaning + "\n";
  }
  return text;
}

/// The program with its commands in the order of help.
struct Program {
  Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  CLI::App app{"Monte Carlo engine for multi-head Nadaraya-Watson regression", "headlab"};
  std::vector<Command> commands;
  Texts names;  ///< of the commands that help lists
};

void add_command(CLI::App& app, const Command& command) {
  CLI::App* const parser = app.add_subcommand(command.name, command.summary)->allow_extras();
  for (const Option& option : command.options.all) {
    if (option.flag) {
      parser->add_flag(option.name)->disable_flag_override()->description(option.help);
      continue;
    }
    // Values are read once all were given: see run_chosen().
    const auto keep = [](const CLI::results_t&) { return true; };
    CLI::Option* const parsed = parser->add_option(option.name, keep, option.help);
    if (option.many) parsed->expected(CLI::detail::expected_max_vector_size);
    if (option.name.starts_with("--")) parsed->allow_extra_args(false);
    parsed->type_name(option.type);
  }
}

/// What a figure is, and its heading in tables where it has one.
std::string figure_paragraph(const std::string& name, const std::string& doc,
                             const std::string& heading, std::size_t width) {
  return wrapped("  " + left(name + " ", 22) + doc +
                     (heading.empty() ? "" : "; in tables \"" + heading + "\""),
                 width, 24) +
         "\n";
}

/// Visitor that writes a paragraph for each field.
struct FigureParagraphs {
  std::size_t width;
  std::string text = {};
  template <class T>
  void operator()(const char* name, const T&, const char* doc, const FieldText& field = {}) {
    text += figure_paragraph(name, doc, *field.title ? field.title : field.label, width);
  }
};

std::string layers_help(std::size_t width) {
  std::string text;
  for (const LayerMetricDescription& metric : layer_metric_descriptions()) {
    text += figure_paragraph(metric.name, metric.doc, layer_heading(metric.name), width);
  }
  return text;
}

/// `headlab help figures`: what each heading of the tables of `run` and `theory` means, with its
/// name in JSON and NetCDF.
/// \param width of the lines; 0: no limit
std::string figures_help(std::size_t width) {
  FigureParagraphs averages{width}, of_query{width}, indices{width};
  const ErrorTerms<Estimate> terms;
  terms.fields(averages);
  terms.index_fields(indices);
  QueryErrorTerms<Estimate>().fields(of_query);
  return wrapped(
             "figures, by their names in summary.json and results.nc\n"
             "f_h is the estimate of head h at a query x, a_h its weight in the ensemble, m the "
             "regression function, V_h = Var f_h, C_hl = Cov(f_h, f_l).\n\naveraged over queries\n",
             width) +
         averages.text + "\nat each query\n" + of_query.text +
         "\ndiversity indices of the simulation\n" + indices.text +
         "\nof each layer, in studies of depth (X = 1 m^T + R, m the mean token, R the "
         "residual)\n" +
         layers_help(width) + "\n" +
         wrapped(
             "0.0046240 ± 0.0000064 is a figure and one Monte Carlo standard error (mcse). In a "
             "narrow table 4.6240(64) under a heading with /1e-3 is the same: the figure is "
             "4.6240e-3, and 64 its standard error in units of the last digit. z is (simulation "
             "- theory)/sqrt(MCSE² + remainder² + rounding²). Numbers in parentheses after a "
             "closed form are its remainder.\n",
             width);
}

ExitCode help(const std::string& topic) {
  // A parser that has parsed nothing describes all commands alike.
  const Program program;
  Texts topics = program.names;
  topics.push_back("figures");
  if (topic.empty()) {
    print(wrapped_columns(as_called(program.app.help()), output_width()));
  } else if (topic == "figures") {
    print(shown(figures_help(output_width())));
  } else if (topic == "completion" || std::ranges::find(topics, topic) != topics.end()) {
    const std::string text = program.app.get_subcommand(topic)->help("headlab");
    print(wrapped_columns(as_called(text), output_width()));
  } else {
    const bool listed_by_list = std::ranges::find(list_words(), topic) != list_words().end();
    const bool figure =
        figures_help(output_width()).find("\n  " + topic + " ") != std::string::npos;
    throw InvalidInput("help: unknown command \"" + one_line(topic) + "\"" +
                       (figure ? " - try headlab help figures" : suggestion(topic, topics)) +
                       (listed_by_list ? " - try headlab list " + topic : ""));
  }
  return ExitCode::done;
}

Program::Program() {
  app.set_version_flag("--version", [] {
    const Provenance program = provenance();
    return "headlab " + program.version + " (git " + program.git + ")";
  });
  app.footer(exit_codes_text() +
             "\nTry: headlab list scenarios, headlab help run, headlab help figures");
  commands = {run_command(),
              theory_command(),
              validate_command(),
              allocate_command(),
              dataset_command(),
              replay_command(),
              diff_command(),
              report_command(),
              table_command(),
              along_command(),
              plot_command(),
              merge_command(),
              status_command(),
              hdi_command(),
              import_heads_command(),
              compress_command(),
              import_activations_command(),
              heads_command(),
              prune_command(),
              init_command(),
              list_command(),
              doctor_command()};
  const auto topic = std::make_shared<std::string>();
  commands.push_back({.name = "help",
                      .summary = "Explain a command, or the figures of the tables",
                      .run = [topic] { return help(*topic); }});
  for (const Command& command : commands) names.push_back(command.name);
  commands.back().options.text("COMMAND|figures", "", "What to explain", *topic);
  commands.back().options.offer([words = names] { return words; });
  commands.push_back(completion_command(commands));
  for (const Command& command : commands) add_command(app, command);
  app.get_subcommand("completion")->group("");  // for shells and installers: help does not list it
  // Leftovers are reported in headlab's own words.
  app.require_subcommand(0, 1);
  app.allow_extras();
}

/// The long options of a command.
std::vector<std::string> options_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

/// Whether a command of the program has this option.
bool belongs_to_a_command(const CLI::App& app, const std::string& option) {
  const std::vector<const CLI::App*> commands =
      app.get_subcommands([](const CLI::App*) { return true; });
  return std::any_of(commands.begin(), commands.end(), [&](const CLI::App* command) {
    const std::vector<std::string> names = options_of(*command);
    return std::find(names.begin(), names.end(), option) != names.end();
  });
}

bool is_digits(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

/// What an option and its value are with `word`, which stands behind them and belongs to the value:
/// "--max-time 5m" of "--max-time 5 minutes", "--replicates 10000" of "--replicates 10 000",
/// "--until mse=1%" of "--until mse 1%"; else empty.
std::string joined_value(const CLI::App& command, const Texts& words, const std::string& word) {
  for (std::size_t i = 2; i < words.size(); ++i) {
    if (words[i] != word) continue;
    std::string name = words[i - 2], value = words[i - 1];
    if (value.starts_with("--")) {
      name = value.substr(0, value.find('='));
      value.erase(0, std::min(name.size() + 1, value.size()));
    }
    const CLI::Option* const option = command.get_option_no_throw(name);
    if (option == nullptr || value.empty()) continue;
    std::string joined = name + " " + value;
    const std::string unit = unit_of(option->get_type_name(), word);
    if (!unit.empty() && is_digits(value.substr(value.size() - 1))) return joined + unit;
    const auto is_group = [&](std::size_t at) {
      return at < words.size() && words[at].size() == 3 && is_digits(words[at]);
    };
    if (is_digits(value) && is_group(i)) {
      for (std::size_t at = i; is_group(at); ++at) joined += words[at];
      return joined;
    }
    const bool has_key = option->get_type_name().find('=') != std::string::npos;
    if (!has_key || value.find('=') != std::string::npos) continue;
    if (word.find('=') == std::string::npos) return joined + "=" + word;
    if (word == "=" && i + 1 < words.size()) return joined + "=" + words[i + 1];
  }
  return "";
}

/// What to write instead of a word that a command has no use for. `words` are all that were given.
std::string advice_on_word(const CLI::App& command, const std::string& name, const Texts& words,
                           const std::string& word) {
  if (const std::string meant = joined_value(command, words, word); !meant.empty()) {
    return "write the value as one word: " + one_line(meant);
  }
  if (const std::string meant = hyphenated(word.substr(0, word.find('='))); !meant.empty()) {
    return "it begins with a dash, and options with two hyphens: " + one_line(meant);
  }
  if (const std::string problem = typographic_problem(word); !problem.empty())
    return "it " + problem;
  const std::vector<std::string> options = options_of(command);
  const auto has = [&](const char* option) {
    return std::find(options.begin(), options.end(), option) != options.end();
  };
  if (has("--set") && word.find('=') != std::string::npos) {
    return "write each setting as --set 'KEY=VALUE', in quotes and without spaces around =";
  }
  if (has(("--" + word).c_str())) return "options begin with two hyphens: --" + word;
  if (name.empty() && word.ends_with(".toml")) {
    return "a command comes first: headlab run " + one_line(word);
  }
  if (has("--data") && word.ends_with(".toml")) return "write --data " + one_line(word);
  return "try headlab help" + (name.empty() || name == "help" ? "" : " " + name);
}

/// Refuses the first argument that `command` has no use for, of all `words`. `plain` are those
/// after "--"; `known` gives what it takes without hyphens.
void reject_leftovers(const CLI::App& command, const std::string& name, const Texts& words,
                      const Texts& plain, const std::function<Texts()>& known) {
  std::vector<std::string> rest = command.remaining();
  std::erase(rest, "--");
  if (rest.empty()) return;
  const auto option = std::find_if(rest.begin(), rest.end(), [](const std::string& word) {
    return word.find_first_not_of('-') > 0 && word.find_first_not_of('-') != std::string::npos;
  });
  const std::string prefix = name.empty() ? "" : name + ": ";
  if (option == rest.end()) {
    throw InvalidInput(prefix + "unexpected argument \"" + one_line(rest.front()) + "\" - " +
                       advice_on_word(command, name, words, rest.front()));
  }
  const std::string word = option->substr(0, option->find('='));
  if (std::find(plain.begin(), plain.end(), *option) != plain.end()) {
    throw InvalidInput(prefix + one_line(word) +
                       " stands after --, where nothing is an option - write it before --");
  }
  // Compared without their dashes, which would make all options look alike.
  const std::vector<std::string> names = options_of(command);
  std::vector<std::string> bare;
  for (const std::string& one : names) bare.push_back(one.substr(2));
  const std::string bare_word = word.substr(word.find_first_not_of('-'));
  std::string best = closest(bare_word, bare);
  for (const std::string& one : bare) {
    if (best.empty() && one.size() > 2 && bare_word.starts_with(one)) best = one;  // --outdir
  }
  std::string advice = best.empty() ? "" : " - did you mean --" + best + "?";
  if (best.empty() && name.empty() && belongs_to_a_command(command, word)) {
    advice = " - options of a command stand after it: headlab run " + one_line(word);
  }
  if (best.empty() && std::ranges::count(known(), bare_word) > 0) {
    advice = " - write " + bare_word + " without hyphens";
  }
  throw InvalidInput(prefix + "unknown option " + one_line(word) + " (allowed: " + listed(names) +
                     ")" + advice);
}

/// Headlab's words for what the parser refused: CLI11 puts the name of the option first.
[[noreturn]] void reject_parse(const CLI::App& app, const CLI::ParseError& error) {
  const std::string text = error.what();
  std::string option = text.substr(0, text.find_first_of(": "));
  if (option[0] != '-') option = "--" + option;
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  const std::string prefix = chosen.empty() ? "" : chosen.front()->get_name() + ": ";
  const CLI::Option* const known =
      chosen.empty() ? nullptr : chosen.front()->get_option_no_throw(option);
  const std::string type = known == nullptr ? "" : known->get_type_name();
  if (text.find("At Most") != std::string::npos) {
    throw InvalidInput(prefix + option + " is given more than once" +
                       (type.ends_with(",...") ? " - write one, with commas between" : ""));
  }
  if (text.find("missing") != std::string::npos) {
    // A shell takes #0 for a comment.
    throw InvalidInput(prefix + option + " needs a value" +
                       (type == "CONDITION" ? ", as '#0' in quotes" : ""));
  }
  if (text.find("flag override") != std::string::npos) {
    throw InvalidInput(prefix + option + " takes no value");
  }
  throw InvalidInput(prefix + one_line(text));
}

/// Throws InvalidInput where a variable of kernels/host.h cannot be what it plays: some are read
/// only when a command writes what it did.
void require_played_machine() {
  try {
    online_processors();
    widest_simd();
    wall_clock();
    available_bytes();
  } catch (const std::invalid_argument& error) {
    throw InvalidInput(error.what());
  }
}

ExitCode run_chosen(const Program& program, const Texts& words) {
  require_played_machine();
  const auto dashes = std::ranges::find(words, "--");
  const Texts plain(dashes == words.end() ? dashes : dashes + 1, words.end());
  const CLI::App& app = program.app;
  const auto chosen =
      app.get_subcommands([](const CLI::App* command) { return command->parsed() > 0; });
  if (chosen.empty()) {
    const Texts rest = app.remaining();
    if (rest.empty()) {
      throw InvalidInput("no command given (allowed: " + listed(program.names) +
                         ") - try headlab help");
    }
    if (rest.front()[0] == '-')
      reject_leftovers(app, "", words, plain, [&] { return program.names; });
    const Texts options = options_of(app);
    const bool is_option = std::ranges::find(options, "--" + rest.front()) != options.end();
    const std::string& word = rest.front();
    const std::string first = word.substr(0, word.find(' '));
    const bool is_quoted =
        first != word && std::ranges::find(program.names, first) != program.names.end();
    throw InvalidInput("unknown command \"" + one_line(word) + "\"" +
                       suggestion(word, program.names) +
                       (is_quoted                 ? " - write its words without quotes around them"
                        : is_option               ? " - did you mean --" + word + "?"
                        : word.ends_with(".toml") ? " - try headlab run " + shell_word(word)
                                                  : ""));
  }
  const CLI::App& command = *chosen.front();
  const auto& all = program.commands;
  const Command& named = *std::ranges::find(all, command.get_name(), &Command::name);
  const Texts names = options_of(command);
  for (const Option& option : named.options.all) {
    for (const std::string& value : command.get_option(option.name)->results()) {
      const std::string meant = hyphenated(value.substr(0, value.find('=')));
      if (std::ranges::find(names, meant) != names.end() &&
          std::ranges::find(plain, value) == plain.end()) {
        throw InvalidInput(named.name + ": unexpected argument \"" + one_line(value) + "\" - " +
                           advice_on_word(command, named.name, words, value));
      }
      if (std::ranges::find(names, value) == names.end()) continue;
      throw InvalidInput(named.name + ": " + option.name + " needs a value, and " + value +
                         " is an option");
    }
  }
  reject_leftovers(app, plain.empty() ? "" : command.get_name(), words, plain,
                   [] { return Texts(); });
  reject_leftovers(command, command.get_name(), words, plain, [&] {
    Texts known;
    for (const Option& option : named.options.all) {
      if (option.name.starts_with("--")) continue;
      const Texts offered = option.words();
      known.insert(known.end(), offered.begin(), offered.end());
    }
    return known;
  });
  for (const Option& option : named.options.all) {
    const Texts given = command.get_option(option.name)->results();
    if (!given.empty()) option.read(given);
  }
  return named.run();
}

ExitCode parse_and_run(int argc, const char* const* argv) {
  Program program;
  set_call_name(argc > 0 ? argv[0] : nullptr, program.names);
  try {
    program.app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // for help, or for the version
    std::ostringstream text;
    program.app.exit(asked, text, text);
    print(wrapped_columns(as_called(text.str()), output_width()));
    return ExitCode::done;
  } catch (const CLI::ParseError& error) {
    reject_parse(program.app, error);
  }
  return run_chosen(program, {argv, argv + argc});
}

/// What is left to say of a command that stopped before there was anything to keep.
int stopped() {
  end_on_signals();
  return static_cast<int>(
      ended({.complete = false, .interrupted = stop_requested()}, "kept nothing"));
}

}  // namespace

bool computes(int argc, const char* const* argv) {
  constexpr const char* commands[] = {
      "allocate",     "compress", "dataset", "hdi", "heads",  "import-activations",
      "import-heads", "prune",    "replay",  "run", "theory", "validate"};
  return argc >= 2 && std::ranges::find(commands, std::string_view(argv[1])) != std::end(commands);
}

int command_line(int argc, const char* const* argv) {
  use_characters_of_locale();
  try {
    const ExitCode code = parse_and_run(argc, argv);
    require_no_lack_of_memory();
    return static_cast<int>(code);
  } catch (const Stopped&) {
    return stopped();
  } catch (const WorkStopped&) {
    return stopped();
  } catch (...) {
    return static_cast<int>(report_exception());
  }
}

}  // namespace headlab::tools
