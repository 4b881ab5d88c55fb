// SPDX-License-Identifier: Apache-2.0
/// \file Runs until standard errors are small enough: what is asked for, and when it is looked at.
///
/// A run looks at its standard errors at replicate counts that follow from the moments at earlier
/// looks alone, so the number of replicates it ends with depends on neither threads nor time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/moments/estimates.h"
#include "engine/moments/figure_name.h"

namespace headlab {

/// The largest standard error that a figure may have.
struct PrecisionTarget {
  FigureName figure;
  bool of_difference = false;                 ///< to the condition of --against or --difference
  std::optional<std::size_t> condition = {};  ///< that alone, from 0; else all of them
  double limit = 0;                           ///< MCSE, or percent of the figure
  bool relative = false;                      ///< the limit is in percent

  /// "mse", "difference_mse".
  std::string figure_text() const;
  /// "mse@#3=1%", as in --until.
  std::string text() const;
  bool operator==(const PrecisionTarget&) const = default;
};

/// Reads "mse=1%,output_correlation=0.005,mse@#3=0.5%,difference_mse=2e-5"; throws
/// InvalidInput("--until: ..."). A name that no figure has is taken for that of a measure.
std::vector<PrecisionTarget> parse_until(const std::string& text);

/// Throws InvalidInput("--until: ...") for figures that are neither built in nor measures of these
/// names, and for shares of what may be 0.
void require_figures(std::span<const PrecisionTarget> targets,
                     const std::vector<std::string>& measures);

/// The same text of targets that were read.
std::string until_text(std::span<const PrecisionTarget> targets);

/// MCSE of a figure over its target: 0 for an MCSE of 0, infinite where a share is taken of a
/// figure that is not above 0, NaN for one that is undefined. What too few replicates carry has its
/// Estimate::allowance more; a share is at least that of a figure 6 MCSE above 0.
double precision_ratio(const Estimate& figure, const PrecisionTarget& target);

/// One look at the standard errors of all conditions.
struct Look {
  std::uint64_t replicates = 0;
  double ratio = 0;             ///< the largest of MCSE over target, of figures that are defined
  std::size_t condition = 0;    ///< that has it, from 0
  std::size_t target = 0;       ///< that it is of
  std::uint64_t undefined = 0;  ///< figures that are undefined, which replicates do not change

  bool met() const { return ratio <= 1 && undefined == 0; }
  /// Adds what the estimates of one condition say. \param difference  to its reference, null
  /// where it has none
  void add(std::span<const PrecisionTarget> targets, std::size_t of_condition,
           const ConditionEstimates& estimates, const ErrorTerms<Estimate>* difference = nullptr);
  bool operator==(const Look&) const = default;
};

/// Replicates of the first look of a run.
inline constexpr std::uint64_t first_look = 1024;

/// The least number of replicates from `replicates` on that fills whole nodes.
std::uint64_t whole_nodes_from(std::uint64_t replicates);

/// Replicates of the look after one at which the largest MCSE was `ratio` targets. An MCSE falls
/// with the square root of the replicates: as many as that needs and 5 % more, but from 1.1 to 4
/// times as many as there are, in whole nodes.
std::uint64_t next_look(std::uint64_t replicates, double ratio);

/// Targets of a run and what became of them.
struct Precision {
  std::vector<PrecisionTarget> targets = {};
  std::uint64_t most = 0;            ///< replicates, never to be exceeded
  std::uint64_t first = first_look;  ///< replicates of the first look, where `most` allows them
  std::uint64_t conditions = 0;      ///< of the scenario
  std::vector<Look> looks = {};      ///< in their order

  bool met() const { return !looks.empty() && looks.back().met(); }
  /// True where no further look is due: all targets are met, or as far as replicates can help, or
  /// there are no more replicates.
  bool done() const;
  /// Replicates of the next look, or of the last one where none is due.
  std::uint64_t goal() const;
  /// Forgets a last look that came early because `most` was smaller than it is now.
  void drop_early_look();

 private:
  /// Replicates of look number `i` (from 0), were there no `most`.
  std::uint64_t planned(std::size_t i) const;
};

}  // namespace headlab
