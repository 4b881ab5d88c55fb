// SPDX-License-Identifier: Apache-2.0
/// \file Absolute paths of the tree and of the build that the tests belong to. One file is compiled
/// with them, so that a compiler cache serves all others to a tree in another folder.
#pragma once

#include <string>

namespace headlab::test {

std::string source_dir();
std::string scenario_dir();
/// The file known-answers.json; others of its kind lie next to it.
std::string known_answers();
/// The program headlab of this build.
std::string program();

}  // namespace headlab::test
