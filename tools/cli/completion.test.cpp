// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/commands/completion.h"

#include <sstream>

#include <gtest/gtest.h>

#include "tools/cli/testing/command_line_fixture.h"

namespace headlab::tools {
namespace {

using Words = std::vector<std::string>;

class Completion : public ProgramTest {
 protected:
  /// What bash offers for the last of `words`, the first of which is the program.
  Words offered(const Words& words) const {
    std::string line = "cd '" + folder_.string() + "' && bash --norc -c 'source <(" + program_ +
                       " completion bash) && COMP_WORDS=(";
    for (const std::string& word : words) line += "\"" + word + "\" ";
    line += ") && COMP_CWORD=" + std::to_string(words.size() - 1) +
            " && _headlab && printf \"%s\\n\" \"${COMPREPLY[@]}\"' > .out 2> .err";
    EXPECT_EQ(std::system(line.c_str()), 0);
    EXPECT_EQ(contents(folder_ / ".err"), "");
    std::istringstream lines(contents(folder_ / ".out"));
    Words found;
    for (std::string one; std::getline(lines, one);) found.push_back(one);
    return found;
  }
};

TEST_F(Completion, OffersCommandsOptionsValuesAndFiles) {
  EXPECT_EQ(offered({"headlab", "da"}), Words{"dataset"});
  EXPECT_EQ(offered({"headlab", "h"}), (Words{"hdi", "help"}));
  EXPECT_EQ(offered({"headlab", "run", "--re"}), (Words{"--report", "--resume", "--replicates"}));
  EXPECT_EQ(offered({"headlab", "run", "--backend", "c"}), (Words{"cpu", "cuda"}));
  EXPECT_EQ(offered({"headlab", "theory", "--source", ""}),
            (Words{"auto", "exact", "first_order"}));
  EXPECT_EQ(offered({"headlab", "run", "a"}), Words{"a.toml"});
  EXPECT_EQ(offered({"headlab", "run", "a.toml", "--json", "s"}), Words{"s.toml"});
  EXPECT_EQ(offered({"headlab", "run", "--seed", "a"}), Words{""});
  EXPECT_EQ(offered({"headlab", "list", "s"}), Words{"scenarios"});
  EXPECT_EQ(offered({"headlab", "help", "th"}), Words{"theory"});
  EXPECT_EQ(offered({"headlab", "validate", "angl"}), Words{"angles"});
}

TEST_F(Completion, IsForTwoShells) {
  const ProgramResult zsh = headlab({"completion", "zsh"});
  EXPECT_EQ(zsh.code, 0);
  EXPECT_TRUE(zsh.out.starts_with("#compdef headlab\n"));
  for (const char* line : {"'run:Simulate a scenario'",
                           "'--backend[auto (the default), reference, cpu or cuda]:value:"
                           "(auto reference cpu cuda)'",
                           "'*--set[Change a parameter"}) {
    EXPECT_NE(zsh.out.find(line), std::string::npos) << line << "\n" << zsh.out;
  }
  expect_refusals({
      {{"completion"}, "completion: no shell given - write headlab completion bash, or zsh"},
      {{"completion", "zs"},
       "completion: \"zs\" is unknown (allowed: bash, zsh) - did you mean \"zsh\"?"},
  });
  // It is for shells and installers, and no command that help lists.
  EXPECT_EQ(headlab({"help"}).out.find("completion"), std::string::npos);
}

TEST_F(Completion, OffersTheWordsThatTheCommandsAllow) {
  for (const WordChoices& one : word_choices()) {
    if (one.option.empty()) continue;
    SCOPED_TRACE(one.command + " " + one.option);
    Words arguments = {one.command};
    if (one.command == "allocate") {
      arguments.insert(arguments.end(), {"--data", "a.toml", "--budget", "2"});
    } else if (one.command == "dataset") {
      arguments.insert(arguments.end(), {"a.toml", "--replicates", "2", "--out", "d"});
    } else if (one.command != "validate") {
      arguments.push_back("a.toml");
    }
    arguments.insert(arguments.end(), {one.option, "qqqqqqqqqqqqqq"});
    std::string allowed;
    for (const std::string& word : one.words) allowed += (allowed.empty() ? "" : ", ") + word;
    const ProgramResult outcome = headlab(arguments);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_NE(outcome.err.find(" is unknown (allowed: " + allowed + ")"), std::string::npos)
        << outcome.err;
  }
}

}  // namespace
}  // namespace headlab::tools
