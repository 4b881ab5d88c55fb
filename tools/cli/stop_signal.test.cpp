// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/stop_signal.h"

#include <cstdio>
#include <functional>
#include <signal.h>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include <gtest/gtest.h>

namespace headlab::tools {
namespace {

constexpr int by_itself = 77;

/// A process that does something and then waits, as in a library that does not return.
class Deep {
 public:
  explicit Deep(const std::function<void()>& act) {
    int ends[2];
    if (::pipe(ends) != 0) return;
    process_ = ::fork();
    if (process_ == 0) {
      ::dup2(ends[1], STDERR_FILENO);
      watch_signals(true);
      act();
      std::this_thread::sleep_for(std::chrono::seconds(10));
      ::_exit(0);
    }
    ::close(ends[1]);
    said_ = ends[0];
  }
  /// Its exit code, and what it said.
  std::pair<int, std::string> end() const {
    std::string text;
    char c = 0;
    while (::read(said_, &c, 1) == 1) text += c;
    ::close(said_);
    int status = 0;
    ::waitpid(process_, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text};
  }

 private:
  pid_t process_ = -1;
  int said_ = -1;
};

void stop() {
  ::kill(::getpid(), SIGTERM);
}

/// Longer than a command that keeps nothing lasts.
void take_long() {
  std::this_thread::sleep_for(std::chrono::milliseconds(2500));
}

TEST(StopSignal, EndsWhatIsDeepInALibraryAndKeepsNothing) {
  const std::string stopping = "headlab: stopping; again to quit at once\n";
  const Deep signalled(stop);
  const Deep late([] { stop_at(std::chrono::steady_clock::now()); });
  const Deep asked_before([] {
    stop();
    while (!stop_requested()) std::this_thread::yield();
    stop_at(std::chrono::steady_clock::now() + std::chrono::hours(1));
  });
  const Deep kept([] {
    {
      const KeepsWork work;
      stop();
      take_long();
      std::fputs("kept\n", stderr);
    }
  });
  const Deep writing([] {
    stop();
    while (!stop_requested()) std::this_thread::yield();
    end_on_signals();
    take_long();
    ::_exit(by_itself);
  });
  const Deep telling([] {
    write_stop_to(STDERR_FILENO);
    stop();
  });
  using Ending = std::pair<int, std::string>;
  const std::string interrupted = stopping + "headlab: interrupted: kept nothing\n";
  EXPECT_EQ(signalled.end(), Ending(6, interrupted));
  EXPECT_EQ(late.end(), Ending(6, "headlab: --max-time reached: kept nothing\n"));
  EXPECT_EQ(asked_before.end(), Ending(6, interrupted));
  EXPECT_EQ(kept.end(), Ending(6, stopping + "kept\nheadlab: interrupted: kept nothing\n"));
  EXPECT_EQ(writing.end(), Ending(by_itself, stopping));
  EXPECT_EQ(telling.end(), Ending(6, stopping + "stopping\nheadlab: interrupted: kept nothing\n"));
}

}  // namespace
}  // namespace headlab::tools
