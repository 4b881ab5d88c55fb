// SPDX-License-Identifier: Apache-2.0
// The program of one target, HEADLAB_FUZZ_TARGET, under libFuzzer. With --words it prints the
// target's dictionary, with --seeds DIR it writes inputs to begin with, with --outcomes FILE... it
// prints what the reader says of each. An input may take ten times its bytes and 100 MB of memory,
// FUZZ_MEGABYTES in their place.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <sanitizer/allocator_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <sstream>
#include <string>
#include <string_view>

#include "kernels/host.h"
#include "tools/fuzz/libfuzzer/uncounted.h"
#include "tools/fuzz/target.h"

namespace {

const headlab::fuzz::Target& target = headlab::fuzz::reader::HEADLAB_FUZZ_TARGET;

/// Bytes of the heap that the program holds, and the most that it may hold while it reads an input.
constexpr std::int64_t no_limit = INT64_MAX;
std::atomic<std::int64_t> held = 0, most = no_limit;
std::int64_t megabytes = 100;

void count_allocated(const volatile void*, std::size_t bytes) {
  if (headlab::fuzz::Uncounted::now > 0) return;
  if ((held += static_cast<std::int64_t>(bytes)) <= most) return;
  most = no_limit;
  std::fprintf(stderr, "an allocation of %zu bytes is beyond the memory of an input\n", bytes);
  __sanitizer_print_stack_trace();
  std::abort();
}

void count_freed(const volatile void* memory) {
  if (memory == nullptr || headlab::fuzz::Uncounted::now > 0) return;
  held -= static_cast<std::int64_t>(__sanitizer_get_allocated_size(memory));
}

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
    if (const char* const text = headlab::environment_variable("FUZZ_MEGABYTES"))
      megabytes = std::stol(text);
    __sanitizer_install_malloc_and_free_hooks(count_allocated, count_freed);
    return 0;
  }
  std::exit(0);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  most = held + 10 * static_cast<std::int64_t>(size) + megabytes * 1000000;
  try {
    headlab::fuzz::refusal_of(target, {reinterpret_cast<const char*>(data), size});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    std::abort();
  }
  most = no_limit;
  return 0;
}
