// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/cli/exit_code.h"

namespace CLI {
class App;
}

namespace headlab::tools {

/// The words that an option, or the argument of a command, takes.
struct WordChoices {
  std::string command;
  std::string option;  ///< "--backend"; empty for the argument
  std::vector<std::string> words;
};

/// All options and arguments whose words are fixed.
const std::vector<WordChoices>& word_choices();

/// `headlab completion bash|zsh`: prints what a shell needs to complete the commands and options of
/// `app`. Returns the exit code; throws InvalidInput and RunFailed.
ExitCode command_completion(const CLI::App& app, const std::string& shell);

}  // namespace headlab::tools
