// SPDX-License-Identifier: Apache-2.0
#include "engine/files/memory_lack.h"

#include <atomic>
#include <new>

namespace headlab {
namespace {

std::atomic<bool> lacked = false;

[[noreturn]] void note_and_fail() {
  lacked = true;
  throw std::bad_alloc();
}

}  // namespace

void note_lack_of_memory() {
  std::set_new_handler(note_and_fail);
}

void require_no_lack_of_memory() {
  if (lacked) throw std::bad_alloc();
}

void forget_lack_of_memory() {
  lacked = false;
}

}  // namespace headlab
