// SPDX-License-Identifier: Apache-2.0
#include "engine/scenario/scenario.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "engine/files/error.h"
#include "engine/files/input_file.h"
#include "engine/files/key_names.h"
#include "engine/moments/measures.h"
#include "engine/scenario/design_rounding.h"
#include "engine/scenario/file_laws.h"
#include "engine/scenario/law_reader.h"
#include "engine/scenario/setup_laws.h"
#include "engine/scenario/stack/stack_setting.h"
#include "engine/scenario/subspaces.h"
#include "engine/scenario/sweep.h"
#include "kernels/laws.h"

namespace headlab {

namespace {

constexpr std::size_t max_scenario_bytes = std::size_t{64} << 20;

/// Conditions read between two questions whether to stop.
constexpr std::size_t stop_interval = 16;

/// Different stages of a sweep that later conditions are compared with.
constexpr std::size_t max_known_stages = 64;

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

/// Reads the sections of a study of depth.
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
    if (!std::holds_alternative<std::string>(controls.data)) {
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
    if (s_.replicates % leaf_replicates != 0) {
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

/// A --set argument, applied.
struct Setting {
  Location location;
  std::string key;
};

Setting setting_of(const std::string& argument) {
  const Location location{one_line("--set " + argument, 200)};
  const auto equals = argument.find('=');
  if (equals == std::string::npos || equals == 0) {
    reject(location, "", "needs KEY=VALUE - as in --set run.replicates=1000");
  }
  std::string key = argument.substr(0, equals);
  while (!key.empty() && key.back() == ' ') key.pop_back();
  split_path(key, location);
  return {location, key};
}

Setting apply(Value& root, const std::string& argument) {
  const Setting setting = setting_of(argument);
  const std::string value = argument.substr(argument.find('=') + 1);
  set_value(root, setting.key, parse_value(value, setting.key, setting.location));
  return setting;
}

/// Reads condition `index`. Where the file alone does not explain a refusal, because the sweep
/// changed something else, the refusal says which condition it is about.
Condition read_condition(const std::shared_ptr<const Sweep>& sweep, std::size_t index,
                         DataFiles& files, const ReadHooks& hooks) {
  const Value parameters = sweep->condition(index);
  const auto& keys = sweep->keys();
  std::vector<const Value*> values;
  for (const std::string& key : keys) values.push_back(value_at(parameters, key));
  try {
    const bool of_depth = is_study_of_depth(parameters);
    if (of_depth && !hooks.depth) {
      const char* key = parameters.find("tokens") ? "tokens" : "layers";
      reject(parameters.find(key)->location, key,
             "is for studies of depth, which this command does not take (allowed: headlab run, "
             "theory, validate)");
    }
    Condition condition = of_depth ? read_study_of_depth(parameters, files)
                                   : ConditionReader(parameters, files, hooks.simulates).read();
    condition.parameters = Parameters(sweep, index);
    for (const Value* value : values) condition.swept.push_back(to_toml(*value));
    return condition;
  } catch (const InvalidInput& error) {
    const std::string line = error.what();
    std::string condition;
    for (std::size_t a = 0; a < values.size(); ++a) {
      if (line.starts_with(values[a]->location.text() + ": ")) throw;
      condition += (a == 0 ? "" : ", ") + keys[a] + " = " + one_line(to_toml(*values[a]), 60);
    }
    if (index == 0) throw;
    throw InvalidInput(line + " (in the condition " + condition + ")");
  }
}

/// Lets a condition share the stages of an earlier one that are equal to its own.
void share_stages(Condition& condition, std::vector<SharedStages>& known) {
  const MechanismStages& stages = condition.mechanism;
  if (!any_stage(stages)) return;
  const auto equal =
      std::ranges::find_if(known, [&](const MechanismStages& other) { return other == stages; });
  if (equal != known.end()) {
    condition.mechanism = *equal;
  } else if (known.size() < max_known_stages) {
    known.push_back(condition.mechanism);
  }
}

/// A sweep writes over what was set there: refused rather than silently undone.
void reject_swept(const std::vector<Setting>& settings, const Sweep& sweep) {
  for (const auto& setting : settings) {
    const auto path = split_path(setting.key, setting.location);
    const std::string* key = sweep.key_that_undoes(path);
    if (key == nullptr) continue;
    const bool is_part = split_path(*key, setting.location).size() > path.size();
    reject(setting.location, setting.key,
           (is_part ? "holds " + *key + ", which the scenario sweeps - leave it out, or"
                    : std::string("is swept by the scenario -")) +
               " set the sweep itself: 'sweep.\"" + *key + "\"=[...]'");
  }
}

/// Unrolls the sweep of a document with the text `text`.
Scenario unrolled(Value root, const std::string& text, const std::string& source,
                  const std::vector<std::string>& sets, DataFiles files, const ReadHooks& hooks) {
  std::vector<Setting> settings;
  for (const auto& argument : sets) {
    const Setting setting = setting_of(argument);
    require_whole_key(root, setting.key, setting.location, setting.key);
    settings.push_back(apply(root, argument));
  }
  const auto sweep = std::make_shared<const Sweep>(std::move(root));
  reject_swept(settings, *sweep);

  Scenario scenario{
      .file = source, .text = text, .sets = sets, .swept = sweep->keys(), .conditions = {}};
  std::vector<SharedStages> known_stages;
  scenario.conditions.reserve(sweep->size());
  for (std::size_t index = 0; index < sweep->size(); ++index) {
    if (index % stop_interval == stop_interval - 1 && hooks.stop && hooks.stop()) throw Stopped();
    scenario.conditions.push_back(read_condition(sweep, index, files, hooks));
    share_stages(scenario.conditions.back(), known_stages);
    if (hooks.report) {
      hooks.report(static_cast<double>(index + 1) / static_cast<double>(sweep->size()));
    }
  }
  scenario.inputs = files.paths();
  return scenario;
}

}  // namespace

void reject_undone(const std::vector<std::string>& sets) {
  std::vector<Setting> settings;
  std::vector<std::vector<std::string>> paths;
  for (const std::string& argument : sets) {
    const Setting setting = setting_of(argument);
    std::vector<std::string> path = split_path(setting.key, setting.location);
    for (std::size_t i = 0; i < paths.size(); ++i) {
      if (paths[i].size() < path.size()) continue;
      if (!std::equal(path.begin(), path.end(), paths[i].begin())) continue;
      reject(setting.location, setting.key,
             "undoes " + settings[i].location.text() + " - leave one of them out");
    }
    settings.push_back(setting);
    paths.push_back(std::move(path));
  }
}

Value scenario_tree(const Scenario& scenario) {
  Value root = parse_toml(scenario.text, scenario.file);
  for (const std::string& argument : scenario.sets) apply(root, argument);
  return root;
}

Scenario parse_scenario(const std::string& text, const std::string& source,
                        const std::vector<std::string>& sets, const std::string& directory,
                        const ReadHooks& hooks) {
  return unrolled(parse_toml(text, source), text, source, sets, DataFiles(directory), hooks);
}

Scenario read_scenario(Value document, const std::string& source,
                       const std::vector<std::string>& sets, const std::string& directory,
                       const DataArrays& arrays, const ReadHooks& hooks) {
  const std::string text = to_toml_document(document);
  return unrolled(std::move(document), text, source, sets, DataFiles(directory, arrays), hooks);
}

Scenario read_scenario(const std::string& file, const std::vector<std::string>& sets,
                       const ReadHooks& hooks) {
  const auto directory = std::filesystem::path(file).parent_path().string();
  Scenario scenario =
      parse_scenario(read_file(file, max_scenario_bytes), file, sets, directory, hooks);
  scenario.inputs.push_back(file);
  return scenario;
}

}  // namespace headlab
