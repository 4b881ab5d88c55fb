// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/commands/command_line.h"

int main(int argc, char** argv) {
  return headlab::tools::command_line(argc, argv);
}
