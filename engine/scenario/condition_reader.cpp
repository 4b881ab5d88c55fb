// SPDX-License-Identifier: Apache-2.0
#include "engine/scenario/condition_reader.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/files/error.h"
#include "engine/moments/measures.h"
#include "engine/scenario/design_rounding.h"
#include "engine/scenario/file_laws.h"
#include "engine/scenario/law_reader.h"
#include "engine/scenario/setup_laws.h"
#include "engine/scenario/stack/stack_setting.h"
#include "engine/scenario/subspaces.h"
#include "kernels/laws.h"

namespace headlab {
namespace {

/// Training points and replicates: [1, 2^40).
constexpr Range counts = {.low = 1, .high = 1099511627776.0, .low_open = false};

void read_name(const Value& root, Condition& condition) {
  const TableReader all(root, "");
  const TableReader scenario(all.need("scenario", "a section with the name of the scenario"),
                             "scenario");
  scenario.allow({"name", "aims"});
  scenario.required("name", condition.name, "what to call this scenario");
  scenario.optional("aims", condition.aims, "");
}

/// What a claim says is read where claims are checked; here only that it is well formed.
void read_claim(const Value& root) {
  const Value* table = root.find("claim");
  if (table == nullptr) return;
  const TableReader claim(*table, "claim");
  claim.allow({"name", "form", "index", "expected", "margin", "compare", "statement", "assumptions",
               "refuted_by", "origin", "pairs", "note"});
  std::string word;
  for (const char* key : {"name", "form", "statement", "assumptions", "refuted_by", "origin"}) {
    claim.optional(key, word, "");
  }
  for (const char* key : {"index", "expected", "note"}) claim.words(key);
  double margin = 0;
  claim.optional("margin", margin, at_least(0), "");
}

/// Reads the sections of a study of regression, in the order that their checks need.
class ConditionReader {
 public:
  ConditionReader(const Value& root, DataFiles& files, bool simulates)
      : root_value_(root), root_(root, ""), files_(files), simulates_(simulates) {}

  Condition read() {
    root_.allow({"scenario", "data", "heads", "queries", "run", "measures", labels_section, "sweep",
                 "claim"});
    read_name(root_value_, s_);
    read_data();
    read_heads();
    read_queries();
    read_run();
    check_heads();
    check_draws();
    check_controls();
    calibrate_mechanism();
    check_precision_of_heads();
    s_.measures = read_measures(root_value_);
    check_measures();
    read_claim(root_value_);
    return std::move(s_);
  }

 private:
  TableReader section(const char* key, const std::string& doc) const {
    return {root_.need(key, doc), key};
  }

  void read_data() {
    const auto data = section("data", "a section with n, design, regression and noise");
    data.allow({"n", "design", "regression", "noise", "sequence", "fixed_design", "design_seed"});
    data.required("n", s_.n, counts, "training points in one training set");
    const Value& design = data.need("design", "a law table such as { law = \"normal\", dim = 6 }");
    const Value& regression = data.need("regression", "a law table such as { law = \"zero\" }");
    const Value& noise = data.need("noise", "a law table such as { law = \"normal\", sd = 0.5 }");
    read_law(design, "data.design", s_.design.own());
    read_law(regression, "data.regression", s_.regression.own());
    read_law(noise, "data.noise", s_.noise.own());
    data.optional("fixed_design", s_.fixed_design, "");
    data.optional("design_seed", s_.design_seed, "");
    if (const Value* seed = data.find("design_seed"); seed != nullptr && !s_.fixed_design) {
      reject(seed->location, "data.design_seed",
             "has no effect without fixed_design = true - add that, or remove this");
    }

    const TableReader design_table(design, "data.design");
    const TableReader regression_table(regression, "data.regression");
    const TableReader noise_table(noise, "data.noise");
    fill_from_file(design_table, regression_table);
    design_table.checked([&] { std::visit([](const auto& law) { law.check(); }, *s_.design); });
    check_precision(design_table, simulates_ || s_.fixed_design);
    d_ = dimension_of(s_);
    regression_table.checked(
        [&] { std::visit([&](const auto& law) { law.check(d_); }, *s_.regression); });
    noise_table.checked([&] { std::visit([&](const auto& law) { law.check(d_); }, *s_.noise); });
    if (const Value* sequence = data.find("sequence")) {
      read_law(*sequence, "data.sequence", s_.sequence.own());
      TableReader(*sequence, "data.sequence").checked([&] {
        const SequenceSetting setting{.design = *s_.design, .n = s_.n};
        std::visit([&](const auto& law) { law.check(setting); }, *s_.sequence);
      });
    }
  }

  void fill_from_file(const TableReader& design_table, const TableReader& regression_table) {
    auto* design = std::get_if<FileDesign>(&s_.design.own());
    auto* regression = std::get_if<FileRegression>(&s_.regression.own());
    if (design == nullptr) {
      if (regression == nullptr) return;
      regression_table.reject_parameter(
          "law", "is \"file\", which needs a design of law \"file\" to go with");
    }
    design_table.checked([&] {
      if (design->path.empty()) throw ParameterError("path", "is empty");
    });
    TableForm form;
    form.parameters(design_table);
    // What is wrong with the file itself is refused at its path, whoever reads it first.
    const auto fill = [&](const TableReader& table, auto& law, const auto& from) {
      std::optional<std::string> unreadable;
      table.checked([&] {
        try {
          files_.fill(law, from, form);
        } catch (const InvalidInput& error) {
          unreadable = error.what();
        }
      });
      if (unreadable) {
        design_table.checked([&] { throw ParameterError("path", *unreadable); });
      }
    };
    std::optional<int> regression_column;
    if (regression != nullptr) {
      fill(regression_table, *regression, design->path);
      regression_column = regression->column;
    }
    fill(design_table, *design, regression_column);
  }

  void read_heads() {
    const auto heads = section("heads", "a section with count, dim, subspaces and kernel");
    heads.allow({"count", "dim", "subspaces", "kernel", "weights", "mechanism"});
    heads.required("count", s_.heads, within(1, 1024), "number of heads H");
    heads.required("dim", s_.k, within(1, 4096), "dimension k of one head");
    const Value& subspaces =
        heads.need("subspaces", "a law table such as { law = \"orthogonal\" }");
    const Value& kernel =
        heads.need("kernel", "a law table such as { law = \"gaussian\", bandwidth = 0.5 }");
    read_law(subspaces, "heads.subspaces", s_.subspaces.own());
    read_law(kernel, "heads.kernel", s_.kernel.own());
    heads.checked([&] {
      if (s_.k > d_) {
        throw ParameterError(
            "dim", "is " + std::to_string(s_.k) + ", the design has dim " + std::to_string(d_));
      }
    });

    const Sizes sizes{.d = d_, .heads = s_.heads, .k = s_.k, .n = s_.n};
    TableReader(subspaces, "heads.subspaces").checked([&] { fill_subspaces(); });
    TableReader(subspaces, "heads.subspaces").checked([&] {
      std::visit([&](const auto& law) { law.check(sizes); }, *s_.subspaces);
    });
    if (const Value* mechanism = heads.find("mechanism")) {
      MechanismStages stages;
      read_stages(*mechanism, "heads.mechanism", stages);
      TableReader(*mechanism, "heads.mechanism").checked([&] {
        check_stages(stages, sizes, *s_.kernel, projects_queries_apart(s_));
      });
      s_.mechanism = stages;
    }
    if (const Value* weights = heads.find("weights")) {
      read_law(*weights, "heads.weights", s_.weights.own());
      TableReader(*weights, "heads.weights").checked([&] {
        std::visit([&](const auto& law) { law.check(sizes); }, *s_.weights);
      });
    }
  }

  void fill_subspaces() {
    auto* law = std::get_if<FileSubspaces>(&s_.subspaces.own());
    if (law == nullptr) return;
    if (law->path.empty()) throw ParameterError("path", "is empty");
    try {
      law->given = files_.heads(law->path, law->layer, law->query_key);
    } catch (const InvalidInput& error) {
      throw ParameterError("path", error.what());
    }
  }

  void read_queries() {
    const Value& queries = root_.need("queries", "a section with law = \"points\" or \"design\"");
    read_law(queries, "queries", s_.queries.own());
    TableReader(queries, "queries").checked([&] {
      const auto* points = std::get_if<PointQueries>(&*s_.queries);
      const bool has_truth = points != nullptr && !points->truth.empty();
      const bool of_rows = std::holds_alternative<FileRegression>(*s_.regression);
      if (of_rows && points != nullptr && !has_truth) {
        throw ParameterError("law",
                             "must be \"design\": a regression of law \"file\" is known at the "
                             "rows of the file only - or give the truth at the points");
      }
      if (has_truth && !of_rows) {
        throw ParameterError("truth", "is given with a regression of law \"file\" alone");
      }
      std::visit([&](const auto& law) { law.check(d_); }, *s_.queries);
    });
    const Value& design = section("data", "").need("design", "");
    check_precision({design, "data.design"}, std::holds_alternative<DesignQueries>(*s_.queries));
  }

  /// \param drawn whether points of the design are drawn, which are float32
  void check_precision(const TableReader& design, bool drawn) const {
    design.checked([&] { require_precision(*s_.design, drawn ? drawn_points : closed_forms); });
  }

  /// The same of the directions that heads see. Heads that are drawn again or that learn may see
  /// any.
  void check_precision_of_heads() {
    const bool drawn =
        simulates_ || s_.fixed_design || std::holds_alternative<DesignQueries>(*s_.queries);
    if (!drawn) return;
    const std::vector<DesignSpread> spreads = files_.spreads(*s_.design);
    if (std::ranges::all_of(spreads, &DesignSpread::precise_everywhere)) return;
    const bool any =
        redraws(*s_.subspaces) || std::holds_alternative<LearnedSubspaces>(*s_.subspaces);
    const auto heads = section("heads", "");
    std::vector<Eigen::MatrixXd> bases;
    TableReader(heads.need("subspaces", ""), "heads.subspaces").checked([&] {
      if (!any) bases = subspace_bases(s_);
    });
    TableReader(section("data", "").need("design", ""), "data.design").checked([&] {
      require_head_precision(*s_.design, spreads, bases);
    });
  }

  void read_run() {
    const auto run = section("run", "a section with seed and replicates");
    run.allow({"seed", "replicates", "estimator", "moments", "controls"});
    run.optional("seed", s_.seed, "");
    run.required("replicates", s_.replicates, counts, "number of training sets");
    run.choice<Estimator>("estimator", s_.estimator,
                          {{"conditional", Estimator::conditional}, {"plain", Estimator::plain}});
    run.choice<MomentMode>(
        "moments", s_.moments,
        {{"pairwise", MomentMode::pairwise}, {"aggregate", MomentMode::aggregate}});
    if (const Value* controls = run.find("controls")) read_controls(*controls);
  }

  /// A law table, or the name of a law alone.
  void read_controls(const Value& controls) {
    if (controls.is<Value::Members>()) {
      read_law(controls, "run.controls", s_.controls.own());
      return;
    }
    const std::vector<std::pair<std::string, ControlLaw>> words = {
        {NoControls::name, NoControls()}, {ExactControls::name, ExactControls()}};
    section("run", "").choice<ControlLaw>("controls", s_.controls.own(), words);
  }

  /// What exact controls ask of the rest. Where their means are not known, the theory says so.
  void check_controls() const {
    if (!std::holds_alternative<ExactControls>(*s_.controls)) return;
    const auto require = [&](bool met, const std::string& problem) {
      if (met) return;
      section("run", "").reject_parameter("controls", "is \"exact\", which " + problem);
    };
    require(s_.estimator == Estimator::conditional, "needs estimator \"conditional\"");
    require(s_.moments == MomentMode::pairwise, "needs moments \"pairwise\"");
    require(!s_.fixed_design, "has no use where fixed_design = true: kernel sums are constant");
    require(std::holds_alternative<IndependentSequence>(*s_.sequence),
            "needs independent points, not a sequence");
    require(!std::holds_alternative<LearnedSubspaces>(*s_.subspaces) &&
                !std::holds_alternative<LearnedWeights>(*s_.weights),
            "needs heads and weights that are given, not learned");
    require(!redraws(s_), "needs one draw of heads and queries - leave redraw out");
    const char* stage = nullptr;
    if (headlab::stage<MergeStage>(s_.mechanism)) stage = "merge";
    if (headlab::stage<LevelsStage>(s_.mechanism)) stage = "levels";
    if (headlab::stage<KeepStage>(s_.mechanism)) stage = "keep";
    require(stage == nullptr, std::string("cannot be combined with stage \"") +
                                  (stage == nullptr ? "" : stage) +
                                  "\", whose kernel sums have no known mean");
  }

  /// What the laws of the heads ask of one another and of the run.
  void check_heads() const {
    const TableReader heads(root_.need("heads", ""), "heads");
    heads.checked([&] { check_projections(); });
    const auto* learned = std::get_if<LearnedSubspaces>(&*s_.subspaces);
    if (learned != nullptr && any_stage(s_.mechanism)) {
      heads.reject_parameter(
          "mechanism",
          "cannot be given for subspaces of law \"learned\", whose gradients are those "
          "of plain heads");
    }
    if (learned != nullptr && !std::holds_alternative<IndependentSequence>(*s_.sequence)) {
      section("data", "")
          .reject_parameter("sequence",
                            "must have law \"independent\" for subspaces of law \"learned\"");
    }
    if (learned == nullptr) {
      if (!std::holds_alternative<LearnedWeights>(*s_.weights)) return;
      heads.reject_parameter("weights",
                             "have law \"learned\", which needs subspaces of law \"learned\" too");
    }
    if (learned->once()) return;
    if (std::holds_alternative<OptimalWeights>(*s_.weights)) {
      heads.reject_parameter(
          "weights",
          "of law \"optimal\" need the same heads in every replicate - use uniform or "
          "learned weights, or fit = \"once\"");
    }
    if (s_.estimator == Estimator::conditional) {
      section("run", "").reject_parameter(
          "estimator",
          "must be \"plain\": heads that are learned in every replicate "
          "depend on its noise");
    }
  }

  /// What draws of heads and queries for every leaf ask of the rest.
  void check_draws() const {
    if (!redraws(s_)) return;
    const std::string what = !redraws(*s_.queries)     ? "heads"
                             : !redraws(*s_.subspaces) ? "queries"
                                                       : "heads and queries";
    if (simulates_ && s_.replicates % leaf_replicates != 0) {
      section("run", "").reject_parameter(
          "replicates", "is " + std::to_string(s_.replicates) + ", must be a multiple of 8: " +
                            what + " are drawn again for every 8 replicates");
    }
    if (std::holds_alternative<OptimalWeights>(*s_.weights)) {
      section("heads", "")
          .reject_parameter("weights", "of law \"optimal\" are found once, but " + what +
                                           " are drawn again for every 8 replicates - use uniform "
                                           "weights, or leave redraw out");
    }
  }

  void calibrate_mechanism() {
    const Value* mechanism = section("heads", "").find("mechanism");
    if (mechanism == nullptr) return;
    TableReader(*mechanism, "heads.mechanism").checked([&] { calibrate_stages(s_); });
  }

  /// Queries, heads and pairs that measures name have to be there.
  void check_measures() const {
    const MomentLayout layout = layout_of(s_);
    for (const auto& measure : s_.measures) {
      for (const FigureName& part : measure->parts) {
        const std::size_t axes = part.index.size();
        if (axes == 0) continue;
        const auto refuse = [&](const std::string& problem) {
          section("measures", "").reject_parameter(measure->name, "has " + part.text() + problem);
        };
        if (layout.per_draw) refuse(", of one query, but heads or queries are drawn again");
        if (axes > 2 && !layout.pairwise()) refuse(", which needs moments \"pairwise\"");
        for (std::size_t a = 0; a < axes; ++a) {
          const int size = a == 0 ? layout.queries : layout.heads;
          if (part.index[a] < static_cast<std::size_t>(size)) continue;
          refuse(", but " + std::string(a == 0 ? "queries" : "heads") + " are numbered from 0 to " +
                 std::to_string(size - 1));
        }
      }
    }
  }

  /// Separate projections of the queries are for softmax, and learning for laws with a product
  /// form.
  void check_projections() const {
    const bool softmax = is_softmax(s_);
    if (std::holds_alternative<LearnedSubspaces>(*s_.subspaces) &&
        !norm_coefficient_of(*s_.kernel)) {
      throw ParameterError("kernel",
                           "cannot be learned through (allowed with law \"learned\": gaussian, "
                           "softmax)");
    }
    if (projects_queries_apart(s_) && !softmax) {
      throw ParameterError("kernel",
                           "must have law \"softmax\", because matrices of their own project the "
                           "queries");
    }
  }

  const Value& root_value_;
  TableReader root_;
  DataFiles& files_;
  bool simulates_;
  Condition s_;
  int d_ = 0;
};

}  // namespace

Condition read_study_of_depth(const Value& root, DataFiles& files) {
  Condition condition;
  read_name(root, condition);
  auto setting = std::make_shared<StackSetting>(read_stack_setting(root, files));
  read_claim(root);
  condition.n = setting->n;
  condition.seed = setting->seed;
  condition.replicates = setting->replicates;
  condition.stack = std::move(setting);
  return condition;
}

Condition read_study_of_regression(const Value& root, DataFiles& files, bool simulates) {
  return ConditionReader(root, files, simulates).read();
}

}  // namespace headlab
