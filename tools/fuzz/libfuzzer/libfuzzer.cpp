// SPDX-License-Identifier: Apache-2.0
// The program of one target, HEADLAB_FUZZ_TARGET, under libFuzzer. With --words it prints the
// target's dictionary, with --seeds DIR it writes inputs to begin with, with --outcomes FILE... it
// prints what the reader says of each.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include "tools/fuzz/target.h"

namespace {

const headlab::fuzz::Target& target = headlab::fuzz::reader::HEADLAB_FUZZ_TARGET;

void print_words() {
  if (target.words == nullptr) return;
  for (const std::string& word : target.words()) {
    std::string quoted;
    for (const char c : word) {
      if (c == '\n') {
        quoted += "\\x0A";
      } else {
        quoted += (c == '"' || c == '\\' ? "\\" : "") + std::string(1, c);
      }
    }
    std::printf("\"%s\"\n", quoted.c_str());
  }
}

void write_seeds(const std::string& folder) {
  if (target.seeds == nullptr) return;
  for (const auto& [name, bytes] : target.seeds()) {
    std::ofstream(folder + "/" + name, std::ios::binary) << bytes;
  }
}

void print_outcome(const std::string& path) {
  std::ostringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  const auto refusal = headlab::fuzz::refusal_of(target, bytes.str());
  std::printf("%s: %s\n", path.c_str(), refusal.value_or("(read)").c_str());
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  const std::string_view act = *count > 1 ? (*arguments)[1] : "";
  if (act == "--words") {
    print_words();
  } else if (act == "--seeds" && *count > 2) {
    write_seeds((*arguments)[2]);
  } else if (act == "--outcomes") {
    for (int i = 2; i < *count; ++i) print_outcome((*arguments)[i]);
  } else {
    return 0;
  }
  std::exit(0);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    headlab::fuzz::refusal_of(target, {reinterpret_cast<const char*>(data), size});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    std::abort();
  }
  return 0;
}
