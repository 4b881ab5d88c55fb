// SPDX-License-Identifier: Apache-2.0
/// \file Fibers: a stack and the registers to continue with, switched by the program itself.
#pragma once

#include <cstddef>
#include <setjmp.h>
#include <ucontext.h>

namespace headlab::emulated_cuda {

/// Pages of a fiber, touched as they are needed, above one page that must not be.
class Stack {
 public:
  static constexpr std::size_t bytes = 512 * 1024;

  Stack();
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;
  ~Stack();

  void* bottom() const { return static_cast<char*>(base_) + page_; }

 private:
  std::size_t page_;
  void* base_;
};

/// Where to continue: of a fiber, or of the host thread that runs fibers.
struct Context {
  ucontext_t registers{};
  jmp_buf jump{};
  bool started = true;
  const void* stack = nullptr;  ///< for the sanitizers, as all that follows
  std::size_t stack_bytes = 0;
  void* fake_stack = nullptr;
  void* sanitizer_fiber = nullptr;

  /// Marks the context of the calling host thread.
  void mark_host();
};

/// A fiber that calls `entry`, which never returns, when first switched to.
struct Fiber : Context {
  explicit Fiber(void (*entry)());
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber();

 private:
  Stack pages_;
};

/// The first call on a stack that was switched to.
void arrive(Context& here);

/// Leaves `from` until a switch back to it.
void switch_stacks(Context& from, Context& to);

}  // namespace headlab::emulated_cuda
