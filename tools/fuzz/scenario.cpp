// SPDX-License-Identifier: Apache-2.0
// The reader of scenarios on arbitrary text: it is rejected in one line, or becomes conditions and
// plans. With --words the dictionary of its laws and stages is printed.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

#include "engine/files/provenance.h"
#include "engine/scenario/testing/any_scenario.h"

/// For what writes files, which nothing here does: that of the program is of a build.
headlab::Provenance headlab::provenance() {
  return {};
}

extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  if (*count != 2 || std::string_view((*arguments)[1]) != "--words") return 0;
  for (const std::string& word : headlab::any_scenario::words()) {
    std::string quoted;
    for (const char c : word) quoted += (c == '"' || c == '\\' ? "\\" : "") + std::string(1, c);
    std::printf("\"%s\"\n", quoted.c_str());
  }
  std::exit(0);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    headlab::any_scenario::read({reinterpret_cast<const char*>(data), size});
  } catch (const std::logic_error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    std::abort();
  }
  return 0;
}
