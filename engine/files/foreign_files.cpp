// SPDX-License-Identifier: Apache-2.0
#include "engine/files/foreign_files.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include <netcdf.h>

#include "engine/files/available_memory.h"
#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/files/netcdf/sums.h"
#include "engine/files/notes.h"
#include "kernels/counted.h"

extern char** environ;

namespace headlab {
namespace {

ForeignFiles& foreign_files() {
  static ForeignFiles how;
  return how;
}

// What a process may take for a file of `size` bytes, and the most that an honest file takes.

constexpr std::uint64_t address_space(std::uint64_t size) {
  return (std::uint64_t{1} << 30) + 8 * size;
}

constexpr std::uint64_t honest_memory(std::uint64_t size) {
  return (std::uint64_t{1} << 26) + 8 * size;
}

constexpr std::uint64_t processor_seconds(std::uint64_t size) {
  return 5 + size / (std::uint64_t{20} << 20);
}

/// Where the process neither computes nor ends.
constexpr int wait_seconds(std::uint64_t size) {
  return static_cast<int>(std::min<std::uint64_t>(60 + 20 * processor_seconds(size), 1000000));
}

/// What the process says when it is there.
constexpr std::uint64_t greeting = 0x68656164;

/// The beginning of an answer; what follows are `text` and `image` bytes.
struct Answer {
  enum class Kind : std::uint64_t { copied, copied_without_sums, damaged, failed, no_memory };
  Kind kind = Kind::failed;
  std::uint64_t text = 0;
  std::uint64_t image = 0;
};

/// False where the other side is gone.
bool send_all(int to, const void* bytes, std::size_t size) {
  const char* at = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t sent = ::send(to, at, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    size -= static_cast<std::size_t>(sent);
  }
  return true;
}

/// False where the other side is gone, or says nothing for `seconds` (-1: for ever).
bool receive_all(int from, void* bytes, std::size_t size, int seconds = -1) {
  char* at = static_cast<char*>(bytes);
  while (size > 0) {
    pollfd ready = {.fd = from, .events = POLLIN, .revents = 0};
    const int some = ::poll(&ready, 1, seconds < 0 ? -1 : 1000 * seconds);
    if (some < 0 && errno == EINTR) continue;
    if (some <= 0) return false;
    const ssize_t got = ::recv(from, at, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

NetcdfBytes memory_for(std::size_t size) {
  void* const memory = std::malloc(std::max<std::size_t>(size, 1));
  if (memory == nullptr) throw std::bad_alloc();
  return {std::shared_ptr<void>(memory, &std::free), size};
}

/// The process that opens files. It belongs to the process that started it, not to its copies.
class Reader {
 public:
  explicit Reader(const std::vector<std::string>& command) : owner_(::getpid()) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) fail(errno);
    socket_ = ends[0];
    std::vector<char*> words;
    for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, ends[1], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
    // Where the heap is damaged the C library says so there.
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t signals;
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes, &signals);
    sigaddset(&signals, SIGXCPU);
    posix_spawnattr_setsigdefault(&attributes, &signals);
    // In a group of its own: Ctrl-C is for the program, which ends it.
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    const int error =
        ::posix_spawnp(&process_, words[0], &files, &attributes, words.data(), environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    ::close(ends[1]);
    if (error != 0) {
      ::close(socket_);
      fail(error);
    }
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() {
    ::close(socket_);
    if (!ended_ && ours()) end();
  }

  bool ours() const { return owner_ == ::getpid(); }

  /// Throws as checked_netcdf_copy(); after damage the process may be gone.
  NetcdfCopy copy(const std::string& bytes) {
    const std::uint64_t size = bytes.size();
    const int seconds = wait_seconds(size);
    Answer answer;
    std::string text;
    NetcdfCopy copy;
    greet();
    bool whole = send_all(socket_, &size, sizeof size) &&
                 send_all(socket_, bytes.data(), bytes.size()) &&
                 receive_all(socket_, &answer, sizeof answer, seconds);
    if (whole) {
      if (const std::uint64_t needed = answer.text + answer.image; needed > available_bytes()) {
        end();  // what it goes on to send is not received
        throw RunFailed("needs " + format_bytes(needed) + " of memory for a copy of it, " +
                        available_text());
      }
      text.resize(answer.text);
      copy.image = memory_for(answer.image);
      whole = receive_all(socket_, text.data(), text.size(), seconds) &&
              receive_all(socket_, copy.image.memory.get(), copy.image.size, seconds);
    }
    if (!whole) report_end();
    if (answer.kind == Answer::Kind::damaged) throw NetcdfDamage(text);
    if (answer.kind == Answer::Kind::failed) throw NetcdfError(text);
    if (answer.kind == Answer::Kind::no_memory) throw RunFailed(text);
    copy.lacks_sums = answer.kind == Answer::Kind::copied_without_sums;
    for (std::size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
      copy.others.push_back(text.substr(at, end - at));
    }
    return copy;
  }

  bool ended() const { return ended_; }

 private:
  [[noreturn]] static void fail(int error) {
    throw RunFailed(std::string("no process can be started that reads NetCDF files of others (") +
                    std::strerror(error) + ")");
  }

  void end() {
    ended_ = true;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }

  /// Waits until the process is there. Once it is, its end is the work of a file.
  void greet() {
    constexpr int start_seconds = 60;
    std::uint64_t said = 0;
    if (greeted_) return;
    if (!receive_all(socket_, &said, sizeof said, start_seconds) || said != greeting) {
      end();
      throw RunFailed("no process can be started that reads NetCDF files of others");
    }
    greeted_ = true;
  }

  /// Says why the process is gone: by damage, by a signal from outside, or for lack of memory.
  [[noreturn]] void report_end() {
    ended_ = true;
    int status = 0;
    constexpr int turns = 1000, pause_us = 5000;  // the system may be slow to end it
    pid_t gone = 0;
    for (int turn = 0; turn < turns && gone == 0; ++turn) {
      gone = ::waitpid(process_, &status, WNOHANG);
      if (gone == 0) ::usleep(pause_us);
    }
    if (gone == 0) {
      ::kill(process_, SIGKILL);
      ::waitpid(process_, &status, 0);
      throw NetcdfDamage("reading it does not end");
    }
    // Damage ends it by a signal.
    if (WIFEXITED(status)) {
      throw RunFailed("the process that reads NetCDF files of others has no memory");
    }
    const int number = WTERMSIG(status);
    if (number == SIGXCPU) throw NetcdfDamage("reading it does not end");
    for (const int other : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGQUIT, SIGKILL}) {
      if (number != other) continue;
      throw RunFailed("the process that reads NetCDF files of others was ended by signal " +
                      std::to_string(number));
    }
    throw NetcdfDamage("the NetCDF library crashes on it");
  }

  pid_t owner_;
  pid_t process_ = -1;
  int socket_ = -1;
  bool greeted_ = false;
  bool ended_ = false;
};

/// Throws NetcdfError where the superblock of an HDF5 file says that a program writes to it.
void require_not_being_written(std::string_view file) {
  constexpr std::string_view magic = "\x89HDF\r\n\x1a\n";
  constexpr std::size_t version = 8, flags = 11;
  constexpr char first_with_flags = 3, write_access = 1;
  if (!file.starts_with(magic) || file.size() <= flags || file[version] < first_with_flags) return;
  if ((file[flags] & write_access) == 0) return;
  throw NetcdfError("is open for writing in another program, or was not closed by it");
}

NetcdfCopy copy_elsewhere(const std::string& bytes) {
  static std::optional<Reader> reader;
  if (reader && !reader->ours()) reader.reset();
  if (!reader) reader.emplace(foreign_files().command);
  try {
    return reader->copy(bytes);
  } catch (...) {
    if (reader->ended()) reader.reset();
    throw;
  }
}

/// Says what was not read of a file.
void say_notes(const std::string& path, const NetcdfCopy& copy) {
  if (copy.lacks_sums) note_without_sums(path);
  if (copy.others.empty()) return;
  const std::size_t more = copy.others.size() - 1;
  note(one_line(path) + ": was added to; " + one_line(copy.others.front(), 100) +
       (more == 0 ? " is" : " and " + grouped(more) + " more are") + " not read");
}

/// Limits for the next file. The processor time is that of all files so far and of this one.
void set_limits(std::uint64_t size) {
  rusage used = {};
  ::getrusage(RUSAGE_SELF, &used);
  const auto limit = [](auto resource, rlim_t most) {
    rlimit now = {};
    if (::getrlimit(resource, &now) != 0) return;
    now.rlim_cur = std::min(now.rlim_max, most);
    ::setrlimit(resource, &now);
  };
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_CPU, static_cast<rlim_t>(used.ru_utime.tv_sec + used.ru_stime.tv_sec + 1) +
                        processor_seconds(size));
  limit(RLIMIT_AS, address_space_taken() + address_space(size));
}

/// What there is for a file, whatever limit the one before it had.
std::uint64_t memory_there() {
  rlimit now = {};
  const std::uint64_t taken = address_space_taken();
  const bool limited = ::getrlimit(RLIMIT_AS, &now) == 0 && now.rlim_max != RLIM_INFINITY;
  const std::uint64_t most = limited ? std::max<std::uint64_t>(now.rlim_max, taken) - taken
                                     : std::numeric_limits<std::uint64_t>::max();
  return std::min(most, available_bytes("/."));
}

}  // namespace

void set_foreign_files(ForeignFiles how) {
  foreign_files() = std::move(how);
}

void note_without_sums(const std::string& path) {
  static bool said = false;
  if (std::exchange(said, true)) return;
  note(one_line(path) + ": is of an earlier version, without sums that would show damage");
}

NetcdfBytes trusted_netcdf(const std::string& path, std::string bytes) {
  static std::mutex mutex;
  const Trailer trailer = trailer_of(bytes);
  if (trailer != Trailer::none) bytes.resize(bytes.size() - netcdf_trailer_size);
  if (trailer == Trailer::right) {
    const auto kept = std::make_shared<std::string>(std::move(bytes));
    return {std::shared_ptr<void>(kept, kept->data()), kept->size()};
  }
  const bool here = foreign_files().command.empty();
  const auto require_sum = [&] {
    if (trailer == Trailer::wrong) throw NetcdfDamage("its bytes have another sum");
  };
  // Elsewhere it is read all the same, to say what is damaged.
  if (here) require_sum();
  require_not_being_written(bytes);
  const std::lock_guard lock(mutex);
  NetcdfCopy copy;
  try {
    copy = here ? checked_netcdf_copy(bytes) : copy_elsewhere(bytes);
  } catch (const RunFailed& failure) {
    throw RunFailed(one_line(path) + ": " + failure.what());
  }
  require_sum();
  say_notes(path, copy);
  return std::move(copy.image);
}

void serve_foreign_files() {
  const int from = STDIN_FILENO, to = STDOUT_FILENO;
  if (!send_all(to, &greeting, sizeof greeting)) return;
  for (std::uint64_t size = 0; receive_all(from, &size, sizeof size);) {
    std::string bytes(size, '\0');
    if (!receive_all(from, bytes.data(), bytes.size())) return;
    Answer answer;
    std::string text;
    NetcdfCopy copy;
    const std::uint64_t there = memory_there();
    const bool enough = there >= honest_memory(size);
    const std::string short_of =
        "reading it takes more memory than there is, " + format_bytes(there) + " available";
    try {
      set_limits(size);
      copy = checked_netcdf_copy(bytes);
      answer.kind = copy.lacks_sums ? Answer::Kind::copied_without_sums : Answer::Kind::copied;
      for (const std::string& other : copy.others) text += one_line(other) + "\n";
    } catch (const NetcdfDamage& damage) {
      text = std::string(damage.what()).substr(NetcdfDamage::beginning.size());
      // HDF5 does not say why it fails.
      const bool memory = !enough && text.ends_with(nc_strerror(NC_EHDFERR));
      answer.kind = memory ? Answer::Kind::no_memory : Answer::Kind::damaged;
      if (memory) text = short_of + ", or it is damaged (" + text + ")";
    } catch (const std::bad_alloc&) {
      answer.kind = enough ? Answer::Kind::damaged : Answer::Kind::no_memory;
      text = enough ? "reading it takes more memory than its size explains" : short_of;
    } catch (const RunFailed& failure) {
      answer.kind = Answer::Kind::no_memory;
      text = failure.what();
    } catch (const std::exception& error) {
      text = error.what();
    }
    answer.text = text.size();
    answer.image = copy.image.size;
    if (!send_all(to, &answer, sizeof answer) || !send_all(to, text.data(), text.size()) ||
        !send_all(to, copy.image.memory.get(), copy.image.size)) {
      return;
    }
  }
}

}  // namespace headlab
