// SPDX-License-Identifier: Apache-2.0
/// \file A world that tests state claims about.
#pragma once

#include <string>

#include "engine/scenario/world.h"
#include "validation/verdicts/validate.h"

namespace headlab::stated {

/// Heads of dimension 2 in 8 dimensions; m = 0 unless it is replaced.
inline const std::string world =
    World{.n = "50",
          .design = R"({ law = "normal", dim = 8 })",
          .noise = R"({ law = "normal", sd = 1.0 })",
          .heads = "count = 2\ndim = 2\nsubspaces = { law = \"orthogonal\" }",
          .kernel = R"({ law = "gaussian", bandwidth = 0.7 })",
          .points = "[[0, 0, 0, 0, 0, 0, 0, 0]]",
          .run = "seed = 5\nreplicates = 8192",
          .sweep =
              "\"heads.subspaces\" = [{ law = \"orthogonal\" }, { law = \"aligned\" }]\n"
              "\"heads.count\" = [2, 3, 4]"}
        .text();

inline const std::string orthogonal =
    R"({ figure = "mse", at = { "heads.subspaces" = "orthogonal" } })";
inline const std::string aligned = R"({ figure = "mse", at = { "heads.subspaces" = "aligned" } })";

inline std::string compare(const std::string& body, const std::string& name = "claim") {
  return "[[claim.compare]]\nname = \"" + name + "\"\n" + body + "\n";
}

inline Validation verdicts_on(const std::string& claims, int threads = 2) {
  Session session;
  session.threads = threads;
  return validate_scenario(world + claims, session);
}

inline const char* verdict_of(const std::string& claim) {
  return verdict_text(verdicts_on(claim).rows.at(0).verdict);
}

inline std::string one_figure(const std::string& figure, int heads, const std::string& subspaces) {
  return "{ figure = \"" + figure + "\", at = { \"heads.count\" = " + std::to_string(heads) +
         ", \"heads.subspaces\" = \"" + subspaces + "\" } }";
}

inline std::string mse(int heads, const std::string& subspaces) {
  return one_figure("mse", heads, subspaces);
}

inline std::string monotone(const std::string& subspaces, const std::string& direction) {
  return "monotone = { figure = \"mse\", in = \"heads.count\", direction = \"" + direction +
         "\", at = { \"heads.subspaces\" = \"" + subspaces + "\" } }\n";
}

inline std::string argmin(const std::string& subspaces, int is) {
  return "argmin = { figure = \"mse\", over = \"heads.count\", is = " + std::to_string(is) +
         ", at = { \"heads.subspaces\" = \"" + subspaces + "\" } }\n";
}

inline std::string slope(const std::string& bound) {
  return "slope = { figure = \"mse\", over = \"heads.count\", at = { \"heads.subspaces\" = "
         "\"orthogonal\" }, " +
         bound + " }\n";
}

/// `first` is better with 2 heads, `second` with 3 and more.
inline std::string crossing(const std::string& first, const std::string& second) {
  return "crossing = { figure = \"mse\", over = \"heads.count\", first = { \"heads.subspaces\" = "
         "\"" +
         first + "\" }, second = { \"heads.subspaces\" = \"" + second +
         "\" }, between = [2, 3] }\n";
}

}  // namespace headlab::stated
