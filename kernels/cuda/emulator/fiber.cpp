// SPDX-License-Identifier: Apache-2.0

// Fibers longjmp to a stack that lies elsewhere, which the fortified longjmp refuses.
#undef _FORTIFY_SOURCE

#include "kernels/cuda/emulator/fiber.h"

#include <new>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#elif defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace headlab::emulated_cuda {
namespace {

thread_local constinit Context* came_from = nullptr;

}  // namespace

Stack::Stack() : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
  base_ = mmap(nullptr, page_ + bytes, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (base_ == MAP_FAILED) throw std::bad_alloc();
  mprotect(base_, page_, PROT_NONE);
}

Stack::~Stack() {
#if defined(__SANITIZE_ADDRESS__)
  ASAN_UNPOISON_MEMORY_REGION(bottom(), bytes);
#endif
  munmap(base_, page_ + bytes);
}

void Context::mark_host() {
#if defined(__SANITIZE_THREAD__)
  sanitizer_fiber = __tsan_get_current_fiber();
#endif
}

Fiber::Fiber(void (*entry)()) {
  getcontext(&registers);
  registers.uc_stack.ss_sp = pages_.bottom();
  registers.uc_stack.ss_size = Stack::bytes;
  makecontext(&registers, entry, 0);
  // AddressSanitizer would forget what it knows of a stack named here at each switch.
  registers.uc_stack = {};
  started = false;
  stack = pages_.bottom();
  stack_bytes = Stack::bytes;
#if defined(__SANITIZE_THREAD__)
  sanitizer_fiber = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
#if defined(__SANITIZE_THREAD__)
  __tsan_destroy_fiber(sanitizer_fiber);
#endif
}

void arrive([[maybe_unused]] Context& here) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(here.fake_stack, &came_from->stack, &came_from->stack_bytes);
#endif
}

// swapcontext alone would suffice, but enters the kernel for the signal mask at every call; the
// sanitizers understand only swapcontext.
[[gnu::noinline]] void switch_stacks(Context& from, Context& to) {
  came_from = &from;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&from.fake_stack, to.stack, to.stack_bytes);
  swapcontext(&from.registers, &to.registers);
  arrive(from);
#elif defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(to.sanitizer_fiber, 0);
  swapcontext(&from.registers, &to.registers);
#else
  if (_setjmp(from.jump) == 0) {
    if (to.started) _longjmp(to.jump, 1);
    to.started = true;
    setcontext(&to.registers);
  }
#endif
}

}  // namespace headlab::emulated_cuda
