// SPDX-License-Identifier: Apache-2.0
/// \file Runs the program itself, for tests.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <signal.h>
#include <sstream>
#include <string>
#include <sys/types.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/testing/folder_test.h"
#include "kernels/testing/paths.h"

namespace headlab {

inline std::string contents(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

/// The files of `use world` in tests that are text.
inline std::filesystem::path world() {
  return test::source_dir() + "/tools/cli/testing/world";
}
inline const std::string scenario_text = contents(world() / "a.toml");

struct ProgramResult {
  int code = -1;  ///< exit code, or -1 where a signal ended the program
  std::string out;
  std::string err;
};

/// Whether a process waits for a signal, which it then keeps from ending it. While a thread is
/// being made all signals are blocked, those too that nobody waits for.
inline bool awaits(pid_t process, int signal) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("SigBlk:")) continue;
    const unsigned long long blocked = std::stoull(line.substr(7), nullptr, 16);
    const auto has = [&](int number) { return ((blocked >> (number - 1)) & 1u) != 0; };
    return has(signal) && !has(SIGVTALRM);
  }
  return false;
}

/// Sends a signal once the program is ready for it.
inline void send(pid_t process, int signal) {
  for (int i = 0; i < 3000 && !awaits(process, signal); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ::kill(process, signal);
}

/// An empty working folder with a.toml, and a sweep in s.toml.
class ProgramTest : public FolderTest {
 protected:
  void SetUp() override {
    FolderTest::SetUp();
    if (HasFatalFailure()) return;
    std::filesystem::copy(world(), folder_);
  }

  /// Starts the program, which ignores one signal from the beginning, or none.
  pid_t start(const std::vector<std::string>& arguments, int ignored = 0) const {
    const std::string out = (folder_ / ".out").string();
    const std::string err = (folder_ / ".err").string();
    std::vector<char*> argv = {const_cast<char*>(program_.c_str())};
    for (const std::string& argument : arguments) {
      argv.push_back(const_cast<char*>(argument.c_str()));
    }
    argv.push_back(nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
      // Whatever this test was started with, as `nohup` or as a script's background job.
      for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
        ::signal(number, number == ignored ? SIG_IGN : SIG_DFL);
      }
      const int to_out = ::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      const int to_err = ::open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      ::setenv("LC_ALL", "C.UTF-8", 1);
      ::dup2(to_out, STDOUT_FILENO);
      ::dup2(to_err, STDERR_FILENO);
      if (::chdir(folder_.c_str()) == 0) ::execv(argv[0], argv.data());
      ::_exit(127);
    }
    return child;
  }
  ProgramResult finish(pid_t child) const {
    int status = 0;
    ::waitpid(child, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, contents(folder_ / ".out"),
            contents(folder_ / ".err")};
  }
  ProgramResult headlab(const std::vector<std::string>& arguments) const {
    return finish(start(arguments));
  }

  /// The files of the working folder besides those of the test itself.
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_)) {
      const std::string name = entry.path().lexically_relative(folder_).string();
      if (name[0] != '.' && name != "a.toml" && name != "s.toml") names.push_back(name);
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  const std::string program_ = test::program();
};

}  // namespace headlab
