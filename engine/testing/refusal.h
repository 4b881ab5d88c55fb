// SPDX-License-Identifier: Apache-2.0
/// \file What input is turned down with.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include "engine/files/error.h"

namespace headlab {

/// The line with which `act` is refused, "accepted" where it is not.
template <class Error = InvalidInput, class Act>
std::string refusal_line(const Act& act) {
  std::string line = "accepted";
  try {
    act();
  } catch (const Error& error) {
    line = error.what();
  }
  EXPECT_EQ(line.find('\n'), std::string::npos) << line;
  return line;
}

}  // namespace headlab
