// SPDX-License-Identifier: Apache-2.0
/// \file Variables of the environment for the time of a test: another machine, terminal or limit.
#pragma once

#include <cstdlib>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/host.h"

namespace headlab::test {

/// Sets variables, or takes them away, and gives them their earlier values at its end.
class PlayedMachine {
 public:
  using Variable = std::pair<std::string, std::optional<std::string>>;

  PlayedMachine(std::initializer_list<Variable> variables) {
    for (const auto& [name, value] : variables) {
      const char* const earlier = environment_variable(name.c_str());
      earlier_.emplace_back(name, earlier ? std::optional<std::string>(earlier) : std::nullopt);
      set(name, value);
    }
  }
  ~PlayedMachine() {
    for (const auto& [name, value] : earlier_) set(name, value);
  }
  PlayedMachine(const PlayedMachine&) = delete;
  PlayedMachine& operator=(const PlayedMachine&) = delete;

 private:
  static void set(const std::string& name, const std::optional<std::string>& value) {
    value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
  }

  std::vector<Variable> earlier_;
};

}  // namespace headlab::test
