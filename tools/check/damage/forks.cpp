// SPDX-License-Identifier: Apache-2.0
/// \file A library to be preloaded: a program that is loaded once and run as often as it is asked
/// to. Most of the time of a command that reads a small file goes to the loader.
///
///     HEADLAB_FORKS  the numbers of two pipes, separated by a blank. For each byte in the first a
///                    copy of the program enters main, and the second gets the copy's process id
///                    and, when it has ended, its status of wait: two ints.
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

int (*main_of_program)(int, char**, char**);

void answer(int pipe, int number) {
  if (write(pipe, &number, sizeof number) != sizeof number) _exit(EXIT_FAILURE);
}

/// Returns in the copies alone.
void serve(int asked, int answers) {
  for (char request = 0; read(asked, &request, sizeof request) == sizeof request;) {
    const pid_t copy = fork();
    if (copy == 0) {
      close(asked);
      close(answers);
      return;
    }
    answer(answers, copy);
    int status = 0;
    if (copy < 0 || waitpid(copy, &status, 0) != copy) _exit(EXIT_FAILURE);
    answer(answers, status);
  }
  _exit(EXIT_SUCCESS);
}

int served_main(int count, char** arguments, char** environment) {
  int asked = -1, answers = -1;
  const char* const pipes = std::getenv("HEADLAB_FORKS");
  if (pipes != nullptr && std::sscanf(pipes, "%d %d", &asked, &answers) == 2) {
    unsetenv("HEADLAB_FORKS");  // what a copy starts is run once
    serve(asked, answers);
  }
  return main_of_program(count, arguments, environment);
}

}  // namespace

extern "C" int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv,
                                 void (*init)(), void (*fini)(), void (*rtld_fini)(),
                                 void* stack_end) {
  static auto* const next =
      reinterpret_cast<decltype(&__libc_start_main)>(dlsym(RTLD_NEXT, "__libc_start_main"));
  main_of_program = main;
  return next(served_main, argc, argv, init, fini, rtld_fini, stack_end);
}
