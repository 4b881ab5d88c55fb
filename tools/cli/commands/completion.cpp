// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/commands/completion.h"

#include <algorithm>
#include <iostream>

#include <CLI/CLI.hpp>

#include "engine/files/architectures.h"
#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/scenario/law_reader.h"
#include "engine/scenario/mechanism/low_rank.h"
#include "tools/cli/standard_streams.h"
#include "validation/claims/claim.h"

namespace headlab::tools {
namespace {

using Words = std::vector<std::string>;

std::string joined(const Words& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

/// The commands that help shows.
std::vector<const CLI::App*> shown_commands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); });
}

Words command_names(const CLI::App& app) {
  Words names;
  for (const CLI::App* command : shown_commands(app)) names.push_back(command->get_name());
  return names;
}

/// "--help" of an option, empty for an argument.
std::string long_name(const CLI::Option& option) {
  return option.get_lnames().empty() ? "" : "--" + option.get_lnames().front();
}

bool takes_value(const CLI::Option& option) {
  return option.get_items_expected_max() > 0;
}

const Words* choices_of(const std::string& command, const std::string& option) {
  const auto found = std::ranges::find_if(word_choices(), [&](const WordChoices& one) {
    return one.command == command && one.option == option;
  });
  return found == word_choices().end() ? nullptr : &found->words;
}

/// Whether a value is a place of the disk, by the word for it in help.
bool is_path(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return type.find("FILE") != std::string::npos || type.find("DIR") != std::string::npos ||
         type.find(".toml") != std::string::npos;
}

/// A branch of a `case` for each command: what `words_of` says of it.
template <class WordsOf>
std::string bash_branches(const CLI::App& app, const WordsOf& words_of) {
  std::string text;
  for (const CLI::App* command : shown_commands(app)) {
    const Words words = words_of(*command);
    if (!words.empty())
      text += "    " + command->get_name() + ") words='" + joined(words) + "' ;;\n";
  }
  return text;
}

std::string bash_script(const CLI::App& app) {
  std::string values;
  for (const CLI::App* command : shown_commands(app)) {
    const std::string& name = command->get_name();
    for (const CLI::Option* option : command->get_options()) {
      const std::string word = long_name(*option);
      if (word.empty() || !takes_value(*option)) continue;
      const Words* choices = choices_of(name, word);
      values += "    " + name + word + ") " +
                (choices            ? "words='" + joined(*choices) + "'"
                 : is_path(*option) ? "COMPREPLY=($(compgen -f -- \"$current\")); return"
                                    : "return") +
                " ;;\n";
    }
  }
  const std::string options = bash_branches(app, [](const CLI::App& command) {
    Words words;
    for (const CLI::Option* option : command.get_options()) {
      if (const std::string word = long_name(*option); !word.empty()) words.push_back(word);
    }
    return words;
  });
  const std::string arguments = bash_branches(app, [&](const CLI::App& command) {
    const std::string& name = command.get_name();
    if (name == "help") return command_names(app);
    const Words* choices = choices_of(name, "");
    return choices ? *choices : Words();
  });
  return R"(# bash completion of headlab, printed by `headlab completion bash`
_headlab() {
  local current=${COMP_WORDS[COMP_CWORD]} before= command= words= i
  ((COMP_CWORD > 0)) && before=${COMP_WORDS[COMP_CWORD - 1]}
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; ++i)); do
    if [[ ${COMP_WORDS[i]} != -* ]]; then command=${COMP_WORDS[i]}; break; fi
  done
  if [[ -z $command ]]; then
    COMPREPLY=($(compgen -W ')" +
         joined(command_names(app)) + R"( --help --version' -- "$current"))
    return
  fi
  case $command$before in
)" + values +
         R"(  esac
  if [[ -z $words && $current == -* ]]; then
    case $command in
)" + options +
         R"(    esac
  elif [[ -z $words ]]; then
    case $command in
)" + arguments +
         R"(    esac
  fi
  if [[ -n $words ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  else
    COMPREPLY=($(compgen -f -- "$current"))
  fi
}
complete -o filenames -F _headlab headlab
)";
}

/// A text inside single quotes of a shell.
std::string in_quotes(const std::string& text) {
  std::string quoted;
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted;
}

/// What _arguments of zsh takes as the explanation of an option, whose end is a bracket.
std::string in_brackets(std::string text) {
  std::ranges::replace(text, '[', '(');
  std::ranges::replace(text, ']', ')');
  return in_quotes(text);
}

/// The action of _arguments that completes a value.
std::string zsh_action(const Words* choices, bool path) {
  return choices ? "(" + joined(*choices) + ")" : path ? "_files" : " ";
}

std::string zsh_script(const CLI::App& app) {
  std::string commands, branches;
  for (const CLI::App* command : shown_commands(app)) {
    const std::string& name = command->get_name();
    commands += "    '" + name + ":" + in_quotes(command->get_description()) + "'\n";
    branches += "    " + name + ")\n      _arguments";
    for (const CLI::Option* option : command->get_options()) {
      const std::string word = long_name(*option);
      branches += " \\\n        '";
      if (word.empty()) {
        const Words names = command_names(app);
        branches +=
            "*:argument:" + zsh_action(name == "help" ? &names : choices_of(name, ""), true);
      } else {
        branches += (word == "--set" ? "*" : "") + word + "[" +
                    in_brackets(option->get_description()) + "]";
        if (takes_value(*option))
          branches += ":value:" + zsh_action(choices_of(name, word), is_path(*option));
      }
      branches += "'";
    }
    branches += "\n      ;;\n";
  }
  return "#compdef headlab\n# zsh completion of headlab, printed by `headlab completion zsh`\n"
         "_headlab() {\n  local -a commands\n  commands=(\n" +
         commands +
         "  )\n  if ((CURRENT == 2)); then\n    _describe command commands\n    return\n  fi\n"
         "  local command=$words[2]\n  shift words\n  ((CURRENT--))\n  case $command in\n" +
         branches + "  esac\n}\n_headlab \"$@\"\n";
}

}  // namespace

const std::vector<WordChoices>& word_choices() {
  static const std::vector<WordChoices> all = [] {
    const Words backends = {"auto", "reference", "cpu", "cuda"};
    Words families = {"auto"};
    for (const Architecture& one : architectures()) families.emplace_back(one.name);
    Words claim_names;
    for (const Claim& claim : claims()) claim_names.push_back(claim.name);
    return std::vector<WordChoices>{
        {"run", "--backend", backends},
        {"validate", "--backend", backends},
        {"allocate", "--backend", backends},
        {"replay", "--backend", backends},
        {"theory", "--source", {"auto", "exact", "first_order"}},
        {"allocate", "--source", {"simulation", "theory", "exact"}},
        {"allocate", "--bandwidth-rule", {"fixed", "sqrt_dim", "rate", "tuned"}},
        {"validate", "--level", {"quick", "full"}},
        {"dataset", "--format", {"netcdf", "npy"}},
        {"import-heads", "--arch", families},
        {"compress", "--by", low_rank_methods()},
        {"validate", "", claim_names},
        {"list", "", {"laws", "claims", "architectures", "scenarios"}},
    };
  }();
  return all;
}

ExitCode command_completion(const CLI::App& app, const std::string& shell) {
  if (shell == "bash") {
    std::cout << bash_script(app);
  } else if (shell == "zsh") {
    std::cout << zsh_script(app);
  } else {
    throw InvalidInput(shell.empty()
                           ? "completion: no shell given - write headlab completion bash, or zsh"
                           : "completion: \"" + one_line(shell) + "\" is unknown" +
                                 suggestion(shell, {"bash", "zsh"}));
  }
  finish_standard_output();
  return ExitCode::done;
}

}  // namespace headlab::tools
