// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <exception>
#include <optional>

#include "engine/files/words.h"
#include "engine/scenario/condition.h"
#include "kernels/kernel_laws.h"
#include "kernels/parallel_for.h"
#include "kernels/statistics/stopping.h"
#include "tools/cli/commands/allocate.h"
#include "tools/cli/commands/commands.h"
#include "validation/allocation/allocation_json.h"
#include "validation/allocation/theory_study.h"

namespace headlab::tools {
namespace {

/// Errors of neighbouring dimensions differ in the fourth digit where budgets are large.
constexpr int error_digits = 6;

/// "10^12" for round numbers of more digits than are read at a glance.
std::string size_text(std::uint64_t n) {
  const double decades = std::log10(static_cast<double>(n));
  const bool is_round = n >= 1'000'000 && decades == std::floor(decades);
  return is_round ? "10^" + std::to_string(static_cast<int>(decades)) : std::to_string(n);
}

std::string best_dimension_text(const BestDimension& best) {
  return short_number(best.value) + (best.at_end ? ", an end of the range" : "");
}

std::string study_text(const TheoryStudy& study, TheoryMean mean, bool softmax) {
  const auto each = [&](auto cell) { return cells_of(study.rows, cell); };
  using Row = const TheoryRow&;
  Columns columns;
  columns.add("H", each([](Row row) { return std::to_string(row.heads); }), true);
  columns.add("d_k", each([](Row row) { return std::to_string(row.k); }), true);
  columns.add(softmax ? "temperature" : "bandwidth",
              each([](Row row) { return short_number(row.width) + (row.at_boundary ? "*" : ""); }),
              true);
  columns.add("MSE", each([](Row row) { return short_number(row.error.mse, error_digits); }), true);
  columns.add("bias²", each([](Row row) { return short_number(row.error.squared_bias); }), true);
  columns.add("V", each([](Row row) { return short_number(row.error.variance); }), true);
  columns.add(
      "C", each([](Row row) { return row.heads > 1 ? short_number(row.error.covariance) : "–"; }),
      true);
  columns.add("", each([&](Row row) {
                return std::string(&row == &study.rows[study.best] ? "best" : "");
              }));
  return "D " + std::to_string(study.budget) + ", n " + size_text(study.n) + "\n" +
         columns.text("  ") + "  d_k* " +
         (mean == TheoryMean::population
              ? best_dimension_text(study.continuous) + "; between the divisors of D "
              : "between the divisors of D ") +
         best_dimension_text(study.divisors) + "\n\n";
}

std::string growth_text(const TheoryGrowth& growth) {
  if (growth.studies.size() < 2) return "";
  const auto each = [&](auto cell) { return cells_of(growth.studies, cell); };
  using At = const TheoryStudy&;
  Columns columns;
  columns.add("n", each([](At study) { return size_text(study.n); }), true);
  columns.add("best H", each([](At study) { return std::to_string(study.rows[study.best].heads); }),
              true);
  columns.add("best d_k", each([](At study) { return std::to_string(study.rows[study.best].k); }),
              true);
  columns.add("d_k*", each([](At study) {
                return study.continuous.at_end ? "–" : short_number(study.continuous.value);
              }),
              true);
  std::vector<std::string> slopes =
      cells_of(growth.slopes, [](double slope) { return short_number(slope); });
  slopes.insert(slopes.begin(), "");
  columns.add("a decade", slopes, true);
  std::string text = "growth of the best d_k with n, D " + std::to_string(growth.budget) +
                     ", rule " + rule_name(growth.rule) + "\n" + columns.text("  ");
  const GrowthConstants& c = growth.constants;
  if (!std::isnan(c.first_order)) {
    text += "  constants, dimensions a decade: " + short_number(c.first_order) +
            " by the first order in 1/n, " + short_number(c.condensation) +
            " by condensation at a typical query";
    if (!std::isnan(c.asymptotic)) {
      text += ", " + short_number(c.asymptotic) + " where D is far larger than log n";
    }
    text += "\n";
  }
  return text + "\n";
}

}  // namespace

std::string allocation_theory_table(const Condition& base,
                                    const std::vector<TheoryGrowth>& growths) {
  const std::string kernel =
      std::visit([](const auto& law) { return std::string(law.name); }, *base.kernel);
  std::string text = one_line(base.name) + "\n" + kernel + " kernel, rule " +
                     rule_name(growths[0].rule) + ", exact theory\n\n";
  const TheoryMean mean = growths[0].mean;
  double seconds = 0, normalisation_error = growths[0].normalisation_error, change = 0;
  bool at_boundary = false;
  for (const TheoryGrowth& growth : growths) {
    for (const TheoryStudy& study : growth.studies) {
      text += study_text(study, growth.mean, growth.softmax);
      for (const TheoryRow& row : study.rows) at_boundary = at_boundary || row.at_boundary;
    }
    text += growth_text(growth);
    seconds += growth.seconds;
    normalisation_error = std::max(normalisation_error, growth.normalisation_error);
    change = std::max(change, growth.change);
  }
  if (at_boundary) {
    text += "* the best width is at the end of the range searched: another may be better\n";
  }
  if (mean == TheoryMean::population) {
    text += "d_k* lies between whole d_k, H = D/d_k not rounded\n";
  }
  text += theory_limits(base, mean) + "\n";
  if (!std::isnan(normalisation_error)) {
    text += "weights sum to one within " + formatted("%.1e", normalisation_error) + "; ";
    if (mean == TheoryMean::condition) {
      text += "when refined, errors changed by " + formatted("%.1e", change) + " at most; ";
    }
  }
  return text + duration_text(seconds) + "\n";
}

ExitCode allocate_by_theory(const AllocateArguments& arguments, const AllocateRequest& request,
                            const Condition& base, const Session& session) {
  const TheoryMean mean = *request.theory;
  const bool own = mean == TheoryMean::condition;
  for (const std::uint64_t budget : request.budgets) {
    if (own) {
      require_exact_study(base, static_cast<int>(budget), request.options.rule);
    } else {
      require_theory(base, static_cast<int>(budget));
    }
  }
  const int threads = thread_count(session.threads);
  const StopScope scope(session.stop_hook());
  const Stopwatch watch;
  ProgressDisplay display = ProgressDisplay::on_standard_error(arguments.quiet);
  std::vector<TheoryGrowth> growths;
  const std::string again =
      again_text(arguments, "", numbers_text(request.budgets), numbers_text(request.sizes),
                 rule_name(request.options.rule), " --source " + arguments.source);
  const auto document = [&] {
    return theory_json(growths, theory_limits(base, mean), provenance(), again);
  };
  Outcome outcome;
  std::optional<KeepsWork> kept;
  for (const std::uint64_t budget : request.budgets) {
    const auto done = [&](double share) {
      const std::string words = "D " + std::to_string(budget) + ", " +
                                std::to_string(static_cast<int>(100 * share)) + " %";
      display.show(
          watch.seconds(),
          [&](std::size_t width) { return display_width(words) <= width ? words : ""; },
          [&] { return words; });
    };
    try {
      growths.push_back((own ? study_exactly : study_theory)(
          base, static_cast<int>(budget), request.options.rule, request.sizes, threads, done));
      if (!kept) kept.emplace();
    } catch (const WorkStopped&) {
      if (growths.empty()) {
        display.finish("");
        throw;
      }
      outcome = session.outcome(false, watch);
      break;
    } catch (...) {
      display.finish("");
      // What came before the budget that failed is not lost.
      if (!growths.empty()) {
        try {
          write_documents(arguments, document());
        } catch (const std::exception& second) {
          std::cerr << "headlab: " << second.what() << "\n";
        }
      }
      throw;
    }
  }
  end_on_signals();
  display.finish("");
  const std::string text = document();
  write_documents(arguments, text);
  print_document(arguments, text, [&] { return allocation_theory_table(base, growths); });
  return ended(outcome, "budgets that were not reached are left out");
}

}  // namespace headlab::tools
