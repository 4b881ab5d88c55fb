// SPDX-License-Identifier: Apache-2.0
#include "kernels/testing/paths.h"

namespace headlab::test {

std::string source_dir() {
  return HEADLAB_SOURCE_DIR;
}
std::string scenario_dir() {
  return source_dir() + "/scenarios";
}
std::string known_answers() {
  return source_dir() + "/validation/testdata/known-answers.json";
}
std::string program() {
  return HEADLAB_BINARY;
}

}  // namespace headlab::test
