// SPDX-License-Identifier: Apache-2.0
/// \file What the studies of a calibration share: small worlds, margins, true and false closed
/// forms. Those of claims that a scenario states go by the path of a user's file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/scenario/world.h"
#include "validation/claims/experiment.h"
#include "validation/verdicts/calibration.h"

namespace headlab {

// Small worlds, so that a run takes milliseconds. Head weights differ, so that no two figures of a
// decomposition are multiples of each other; queries lie off the centre, so that biases are clear.
inline const std::string gaussian_world =
    World{.n = "8",
          .design = R"({ law = "normal", dim = 2 })",
          .regression =
              R"({ law = "cosines", amplitude = [1.0], frequency = [[1.2, 0.7]], phase = [0.4] })",
          .noise = R"({ law = "normal", sd = 0.5 })",
          .heads =
              "count = 2\ndim = 1\nsubspaces = { law = \"equiangular\", angle = 0.8 }\nweights = { "
              "law = \"explicit\", values = [0.7, 0.3] }",
          .kernel = R"({ law = "gaussian", bandwidth = 0.6 })",
          .points = "[[0.6, -0.4]]"}
        .text();

inline const std::string softmax_world =
    World{
        .n = "8",
        .design = R"({ law = "normal", dim = 4 })",
        .regression =
            R"({ law = "cosines", amplitude = [1.0], frequency = [[0.8, -0.6, 0.5, 0.3]], phase = [0.4] })",
        .noise = R"({ law = "normal", sd = 0.5 })",
        .heads =
            "count = 2\ndim = 2\nsubspaces = { law = \"principal_angles\", angles = [0.5, 1.1] "
            "}\nweights = { law = \"explicit\", values = [0.7, 0.3] }",
        .kernel = R"({ law = "softmax", temperature = 1.5 })",
        .points = "[[0.8, -0.6, 0.3, 0.4]]"}
        .text();

inline const std::string noise_world =
    World{.n = "8",
          .design = R"({ law = "normal", dim = 2 })",
          .noise = R"({ law = "normal", sd = 0.5 })",
          .heads = "count = 2\ndim = 1\nsubspaces = { law = \"equiangular\", angle = 0.8 }",
          .kernel = R"({ law = "gaussian", bandwidth = 0.6 })",
          .points = "[[0, 0]]"}
        .text();

inline constexpr const char* path_of_angles = R"([sweep]
"heads.subspaces.angle" = [0.5, 0.9, 1.3]
)";

/// Trials of a study at level quick.
inline constexpr std::uint64_t study_trials = 2000;
/// A margin far below any standard error here: the claim is true to the letter and has no room.
inline constexpr double no_margin = 1e-6;
inline constexpr double edge_margin = 0.2;
inline constexpr double fault_margin = 0.005;

/// "4.2 %"
std::string share_text(double share);

/// A world as the scenario of a claim; validate_form is told the form itself.
std::string claim_scenario(const std::string& world, std::uint64_t replicates, double margin);

/// The exact theory of a condition of a world.
Theory exact_theory(const std::string& world, int threads, std::size_t which = 0);

/// The same theory for every condition.
ClosedForms always(Theory theory);

/// The closed form as it would be if heads were independent.
Theory without_covariance(Theory theory);

/// Rates of each kind, without counts.
CalibrationRate alarm_rate(std::string what, std::string effect);
CalibrationRate support_rate(std::string what, std::string effect);
CalibrationRate power_rate(std::string what, std::string effect);
CalibrationRate decided_rate(std::string what, std::string effect);

/// A world whose scenario states claims of its own, as a user's file does. \param run more of its
/// [run]
std::string stating_scenario(const std::string& world, std::uint64_t replicates,
                             const std::vector<std::string>& claims, const std::string& run = "");

/// Repeats the claims that a scenario states, all in one call; a rate counts a run in which any of
/// them has its verdict, or, where it is of what is decided, all have the one they expect.
CalibrationStudy stated_study(const std::string& scenario, const BackendChoice& backend,
                              std::vector<CalibrationRate> rates,
                              const ClosedForms& closed_forms = {});

/// The studies of [[claim.compare]], on the backend of the session. True values are computed here,
/// once, on its threads.
std::vector<CalibrationStudy> stated_claim_studies(const Session& session);

/// Studies of claims whose true values are elementary or those of the exact theory, on the backend
/// of the session. True values are computed here, once, on its threads.
std::vector<CalibrationStudy> doubtful_studies(const Session& session);

}  // namespace headlab
