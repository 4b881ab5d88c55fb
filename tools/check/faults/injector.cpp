// SPDX-License-Identifier: Apache-2.0
/// \file A library to be preloaded, which fails or interrupts one call of a program: the K-th, from
/// 1, of those that concern a file or folder below a folder.
///
///     HEADLAB_FAULT_CALL     K; 0: none
///     HEADLAB_FAULT_BELOW    the folder
///     HEADLAB_FAULT_CALLS    change: what opens for writing, writes, renames, removes, makes;
///                            read: what opens for reading and reads, files and folders;
///                            memory: malloc, calloc, realloc, from the first call of main on
///     HEADLAB_FAULT_KIND     kill, short (half of the bytes), signal-N (signal N comes, and is
///                            given time to be heard; the call is made), or a number of errno
///     HEADLAB_FAULT_MARK     a file that is made when the call fails, with a line for each
///                            function that called: its object and the place in it, separated by a
///                            tab
///     HEADLAB_FAULT_PLACES   a file that gets the number of each allocation, one a line, that is
///                            the first by its callers, where the program ends by exit()
///     HEADLAB_FAULT_COUNT    a file that gets the number of calls where the program ends by exit()
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

extern "C" void* __libc_malloc(std::size_t size);
extern "C" void* __libc_calloc(std::size_t count, std::size_t size);
extern "C" void* __libc_realloc(void* block, std::size_t size);

namespace {

enum class Calls { none, change, read, memory };
enum class Fault { none, error, half };

struct Settings {
  long call = 0;
  const char* below = nullptr;
  Calls calls = Calls::none;
  const char* kind = nullptr;
};

std::atomic<long> count = 0;
/// Of the callers of allocations: the hash of their addresses, 0 where there is none yet, and the
/// number of the first call. What finds no place among them is not told apart from others.
constexpr std::size_t max_places = std::size_t{1} << 17;
std::atomic<std::size_t> places[max_places];
long first_calls[max_places];
bool tells_places = false;
std::atomic<bool> in_main = false;
Settings settings;

__attribute__((constructor)) void read_settings() {
  const char* const call = std::getenv("HEADLAB_FAULT_CALL");
  const char* const calls = std::getenv("HEADLAB_FAULT_CALLS");
  settings.call = call != nullptr ? std::atol(call) : 0;
  settings.below = std::getenv("HEADLAB_FAULT_BELOW");
  settings.kind = std::getenv("HEADLAB_FAULT_KIND");
  tells_places = std::getenv("HEADLAB_FAULT_PLACES") != nullptr;
  void* caller = nullptr;
  backtrace(&caller, 1);  // allocates at its first call
  if (calls == nullptr) return;
  settings.calls = std::strcmp(calls, "change") == 0   ? Calls::change
                   : std::strcmp(calls, "read") == 0   ? Calls::read
                   : std::strcmp(calls, "memory") == 0 ? Calls::memory
                                                       : Calls::none;
}

/// Makes a file past everything that is counted; -1 where none is asked for.
long made(const char* variable) {
  const char* const path = std::getenv(variable);
  return path == nullptr ? -1
                         : syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
}

__attribute__((destructor)) void write_count() {
  const long file = made("HEADLAB_FAULT_COUNT");
  if (file < 0) return;
  char text[32];
  const int size = std::snprintf(text, sizeof text, "%ld\n", count.load());
  syscall(SYS_write, file, text, size);
  syscall(SYS_close, file);
}

__attribute__((destructor)) void write_places() {
  const long file = made("HEADLAB_FAULT_PLACES");
  if (file < 0) return;
  for (const long& call : first_calls) {
    if (call == 0) continue;
    char text[32];
    const int size = std::snprintf(text, sizeof text, "%ld\n", call);
    syscall(SYS_write, file, text, size);
  }
  syscall(SYS_close, file);
}

/// Notes down a call whose callers no call had before.
void note_place(long call) {
  constexpr int most = 32;
  void* callers[most];
  const int depth = backtrace(callers, most);
  std::size_t hash = 0xcbf29ce484222325;
  for (int i = 0; i < depth; ++i) {
    hash = (hash ^ reinterpret_cast<std::size_t>(callers[i])) * 0x100000001b3;
  }
  hash |= 1;
  for (std::size_t at = (hash >> 20) % max_places, tries = 0; tries < 64; ++tries) {
    std::size_t none = 0;
    std::atomic<std::size_t>& place = places[(at + tries) % max_places];
    if (place.compare_exchange_strong(none, hash)) {
      first_calls[(at + tries) % max_places] = call;
      return;
    }
    if (none == hash) return;
  }
}

void write_mark() {
  const long file = made("HEADLAB_FAULT_MARK");
  if (file < 0) return;
  void* callers[64];
  const int depth = backtrace(callers, 64);
  for (int i = 0; i < depth; ++i) {
    Dl_info object;
    if (dladdr(callers[i], &object) == 0) continue;
    char text[4200];
    const int size = std::snprintf(
        text, sizeof text, "%s\t%#zx\n", object.dli_fname,
        std::size_t(static_cast<char*>(callers[i]) - static_cast<char*>(object.dli_fbase)));
    syscall(SYS_write, file, text, size);
  }
  syscall(SYS_close, file);
}

bool is_below(const char* path) {
  if (path == nullptr || settings.below == nullptr) return false;
  if (path[0] != '/') return true;  // the program runs in the folder
  const std::size_t size = std::strlen(settings.below);
  return std::strncmp(path, settings.below, size) == 0 && path[size] == '/';
}

bool is_below(int file) {
  char link[32], path[4096];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t size = readlink(link, path, sizeof path - 1);
  if (size <= 0 || path[0] != '/') return false;
  path[size] = 0;
  return is_below(path);
}

/// Sends the program a signal, and waits until a thread has taken it and for what that does.
void hear(int number) {
  constexpr unsigned step_us = 1000, acts_us = 20000;
  constexpr int max_steps = 1000;
  kill(getpid(), number);
  sigset_t waiting;
  for (int i = 0; i < max_steps; ++i) {
    if (sigpending(&waiting) != 0 || sigismember(&waiting, number) != 1) break;
    usleep(step_us);
  }
  usleep(acts_us);
}

/// Counts a call and says what becomes of it.
Fault met() {
  const long call = ++count;
  if (tells_places) note_place(call);
  if (call != settings.call) return Fault::none;
  write_mark();
  if (std::strcmp(settings.kind, "kill") == 0) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
  }
  if (std::strcmp(settings.kind, "short") == 0) return Fault::half;
  constexpr char signal[] = "signal-";
  constexpr std::size_t before_number = sizeof signal - 1;
  if (std::strncmp(settings.kind, signal, before_number) == 0) {
    hear(std::atoi(settings.kind + before_number));
    return Fault::none;
  }
  errno = std::atoi(settings.kind);
  return Fault::error;
}

template <class Place>
Fault at(Calls calls, Place place) {
  return settings.calls == calls && is_below(place) ? met() : Fault::none;
}

bool writes(int flags) {
  return (flags & O_ACCMODE) != O_RDONLY || (flags & O_CREAT) != 0;
}

std::size_t half_of(std::size_t size) {
  return size > 1 ? size / 2 : size;
}

template <class Function>
Function* real(Function* /*of the type*/, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

#define REAL(name) static auto* const next = real(&name, #name)

extern "C" {

/// Allocations count from the first call of main on: what fails before ends any program of C++.
static int (*main_of_program)(int, char**, char**);
static int counted_main(int argc, char** argv, char** environment) {
  in_main = true;
  return main_of_program(argc, argv, environment);
}
int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv, void (*init)(),
                      void (*fini)(), void (*rtld_fini)(), void* stack_end) {
  REAL(__libc_start_main);
  main_of_program = main;
  return next(counted_main, argc, argv, init, fini, rtld_fini, stack_end);
}

#define OPEN(name)                                                                        \
  int name(const char* path, int flags, ...) {                                            \
    REAL(name);                                                                           \
    std::va_list rest;                                                                    \
    va_start(rest, flags);                                                                \
    const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;                \
    va_end(rest);                                                                         \
    if (at(writes(flags) ? Calls::change : Calls::read, path) == Fault::error) return -1; \
    return next(path, flags, mode);                                                       \
  }
OPEN(open)
OPEN(open64)

FILE* fopen(const char* path, const char* mode) {
  REAL(fopen);
  const bool reads = mode[0] == 'r' && std::strchr(mode, '+') == nullptr;
  if (at(reads ? Calls::read : Calls::change, path) == Fault::error) return nullptr;
  return next(path, mode);
}
FILE* fopen64(const char* path, const char* mode) {
  REAL(fopen64);
  const bool reads = mode[0] == 'r' && std::strchr(mode, '+') == nullptr;
  if (at(reads ? Calls::read : Calls::change, path) == Fault::error) return nullptr;
  return next(path, mode);
}

DIR* opendir(const char* path) {
  REAL(opendir);
  return at(Calls::read, path) == Fault::error ? nullptr : next(path);
}
#define READDIR(name, Entry)                                            \
  Entry* name(DIR* folder) {                                            \
    REAL(name);                                                         \
    if (at(Calls::read, dirfd(folder)) == Fault::error) return nullptr; \
    return next(folder);                                                \
  }
READDIR(readdir, dirent)
READDIR(readdir64, dirent64)

ssize_t write(int file, const void* bytes, std::size_t size) {
  REAL(write);
  const Fault fault = at(Calls::change, file);
  if (fault == Fault::error) return -1;
  return next(file, bytes, fault == Fault::half ? half_of(size) : size);
}
ssize_t writev(int file, const iovec* parts, int number) {
  REAL(writev);
  const Fault fault = at(Calls::change, file);
  if (fault == Fault::error) return -1;
  return next(file, parts, fault == Fault::half && number > 1 ? number - 1 : number);
}

#define PWRITE(name)                                                              \
  ssize_t name(int file, const void* bytes, std::size_t size, off_t place) {      \
    REAL(name);                                                                   \
    const Fault fault = at(Calls::change, file);                                  \
    if (fault == Fault::error) return -1;                                         \
    return next(file, bytes, fault == Fault::half ? half_of(size) : size, place); \
  }
PWRITE(pwrite)
PWRITE(pwrite64)

ssize_t read(int file, void* bytes, std::size_t size) {
  REAL(read);
  const Fault fault = at(Calls::read, file);
  if (fault == Fault::error) return -1;
  return next(file, bytes, fault == Fault::half ? half_of(size) : size);
}

#define PREAD(name)                                                               \
  ssize_t name(int file, void* bytes, std::size_t size, off_t place) {            \
    REAL(name);                                                                   \
    const Fault fault = at(Calls::read, file);                                    \
    if (fault == Fault::error) return -1;                                         \
    return next(file, bytes, fault == Fault::half ? half_of(size) : size, place); \
  }
PREAD(pread)
PREAD(pread64)

/// Closes the file all the same, as the system does.
int close(int file) {
  REAL(close);
  const Fault fault = at(Calls::change, file);
  const int error = errno;
  const int result = next(file);
  if (fault != Fault::error) return result;
  errno = error;
  return -1;
}

#define OF_FILE(name, parameters, arguments)                \
  int name parameters {                                     \
    REAL(name);                                             \
    if (at(Calls::change, file) == Fault::error) return -1; \
    return next arguments;                                  \
  }
OF_FILE(fsync, (int file), (file))
OF_FILE(fdatasync, (int file), (file))
OF_FILE(ftruncate, (int file, off_t size), (file, size))
OF_FILE(ftruncate64, (int file, off_t size), (file, size))
OF_FILE(fallocate, (int file, int mode, off_t place, off_t size), (file, mode, place, size))
OF_FILE(fallocate64, (int file, int mode, off_t place, off_t size), (file, mode, place, size))
OF_FILE(unlink, (const char* file), (file))
OF_FILE(remove, (const char* file), (file))
OF_FILE(rmdir, (const char* file), (file))
OF_FILE(mkdir, (const char* file, mode_t mode), (file, mode))
OF_FILE(unlinkat, (int folder, const char* file, int flags), (folder, file, flags))
OF_FILE(rename, (const char* from, const char* file), (from, file))
OF_FILE(renameat2, (int in, const char* from, int to, const char* file, unsigned flags),
        (in, from, to, file, flags))

/// Nothing fails before main, nor while a library is looked up.
void* malloc(std::size_t size) {
  if (settings.calls == Calls::memory && in_main && met() != Fault::none) return nullptr;
  return __libc_malloc(size);
}
void* calloc(std::size_t number, std::size_t size) {
  if (settings.calls == Calls::memory && in_main && met() != Fault::none) return nullptr;
  return __libc_calloc(number, size);
}
void* realloc(void* block, std::size_t size) {
  if (settings.calls == Calls::memory && in_main && met() != Fault::none) return nullptr;
  return __libc_realloc(block, size);
}

}  // extern "C"
