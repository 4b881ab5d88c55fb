// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/commands/completion.h"

#include <gtest/gtest.h>

#include "tools/cli/testing/command_line_fixture.h"

namespace headlab::tools {
namespace {

using Words = std::vector<std::string>;

class Completion : public ProgramTest {};

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
