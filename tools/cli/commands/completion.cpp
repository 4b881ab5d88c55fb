// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/commands/commands.h"

namespace headlab::tools {
namespace {

using Commands = std::vector<Command>;

std::string joined(const Texts& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

Texts names_of(const Commands& commands) {
  Texts names;
  for (const Command& command : commands) names.push_back(command.name);
  return names;
}

bool is_argument(const Option& option) {
  return !option.name.starts_with("--");
}

/// Whether a value is a place of the disk, by the word for it in help.
bool is_path(const Option& option) {
  return option.type.find("FILE") != std::string::npos ||
         option.type.find("DIR") != std::string::npos ||
         option.type.find(".toml") != std::string::npos;
}

/// The options of a command with that which every command has.
std::vector<Option> options_of(const Command& command) {
  std::vector<Option> options = {{.name = "--help",
                                  .type = "",
                                  .help = "Print this help message and exit",
                                  .read = {},
                                  .flag = true}};
  options.insert(options.end(), command.options.all.begin(), command.options.all.end());
  return options;
}

std::string bash_script(const Commands& commands) {
  const auto branch = [](const std::string& name, const Texts& words) {
    return words.empty() ? "" : "    " + name + ") words='" + joined(words) + "' ;;\n";
  };
  std::string values, options, arguments;
  for (const Command& command : commands) {
    Texts names, offered;
    for (const Option& option : options_of(command)) {
      const Texts words = option.words();
      if (is_argument(option)) {
        offered = words;
        continue;
      }
      names.push_back(option.name);
      if (option.flag) continue;
      values += "    " + command.name + option.name + ") " +
                (!words.empty()    ? "words='" + joined(words) + "'"
                 : is_path(option) ? "COMPREPLY=($(compgen -f -- \"$current\")); return"
                                   : "return") +
                " ;;\n";
    }
    options += branch(command.name, names);
    arguments += branch(command.name, offered);
  }
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
         joined(names_of(commands)) + R"( --help --version' -- "$current"))
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

std::string zsh_script(const Commands& commands) {
  std::string names, branches;
  for (const Command& command : commands) {
    names += "    '" + command.name + ":" + in_quotes(command.summary) + "'\n";
    branches += "    " + command.name + ")\n      _arguments";
    for (const Option& option : options_of(command)) {
      const bool argument = is_argument(option);
      branches += " \\\n        '";
      branches += argument ? "*:argument"
                           : (option.many ? "*" : "") + option.name + "[" +
                                 in_brackets(option.help) + "]" + (option.flag ? "" : ":value");
      if (!option.flag) {
        const Texts words = option.words();
        branches += !words.empty()                ? ":(" + joined(words) + ")"
                    : argument || is_path(option) ? ":_files"
                                                  : ": ";
      }
      branches += "'";
    }
    branches += "\n      ;;\n";
  }
  return "#compdef headlab\n# zsh completion of headlab, printed by `headlab completion zsh`\n"
         "_headlab() {\n  local -a commands\n  commands=(\n" +
         names +
         "  )\n  if ((CURRENT == 2)); then\n    _describe command commands\n    return\n  fi\n"
         "  local command=$words[2]\n  shift words\n  ((CURRENT--))\n  case $command in\n" +
         branches + "  esac\n}\n_headlab \"$@\"\n";
}

}  // namespace

Command completion_command(const Commands& commands) {
  const auto given = std::make_shared<std::string>();
  Command command{
      .name = "completion",
      .summary = "Print a shell's completion of headlab",
      .run = [given, commands] {
        const std::string& shell = *given;
        if (shell.empty()) {
          throw InvalidInput("completion: no shell given - write headlab completion bash, or zsh");
        }
        known_word("completion", shell, {"bash", "zsh"});
        print(shell == "bash" ? bash_script(commands) : zsh_script(commands));
        return ExitCode::done;
      }};
  command.options.text("bash|zsh", "", "The shell", *given);
  return command;
}

}  // namespace headlab::tools
