// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>
#include <span>

#include "engine/dataset/dataset.h"
#include "engine/dataset/draw_shard.h"
#include "engine/files/available_memory.h"
#include "engine/files/error.h"
#include "engine/files/foreign_files.h"
#include "engine/files/json_sum.h"
#include "engine/files/notes.h"
#include "engine/files/provenance.h"
#include "engine/replay/replay.h"
#include "engine/results/results_reader.h"
#include "engine/scenario/condition.h"
#include "engine/scenario/plan_fingerprint.h"
#include "engine/scenario/scenario.h"
#include "tools/cli/computed_conditions.h"
#include "tools/cli/table.h"
#include "tools/python/src/studies.h"

namespace headlab::python {

namespace nb = nanobind;

namespace {

// Data sets.

/// The variables of a shard in memory.
class MemoryOutput : public ShardOutput {
 public:
  explicit MemoryOutput(std::vector<DatasetVariable> variables) : variables_(std::move(variables)) {
    std::uint64_t bytes = 0;
    for (const DatasetVariable& variable : variables_) bytes += variable.bytes();
    require_memory(bytes, "for the arrays", "replicates");
    for (const DatasetVariable& variable : variables_) {
      memory_.emplace_back(new std::byte[static_cast<std::size_t>(variable.bytes())]);
    }
  }

  void put(std::size_t variable, std::uint64_t first, std::span<const std::byte> bytes) override {
    std::memcpy(memory_[variable].get() + first * size_of(variables_[variable].type), bytes.data(),
                bytes.size());
  }
  void close() override {}

  /// {name: (dimensions, array, meaning)}; gives the memory away.
  nb::dict arrays() {
    nb::dict all;
    for (std::size_t i = 0; i < variables_.size(); ++i) {
      const DatasetVariable& variable = variables_[i];
      nb::object array = variable.type == NumberType::float32   ? array_of<float>(i)
                         : variable.type == NumberType::float64 ? array_of<double>(i)
                                                                : array_of<std::int64_t>(i);
      nb::list dimensions;
      for (const std::string& name : variable.dimensions) dimensions.append(nb::cast(name));
      all[nb::str(variable.name.c_str())] =
          nb::make_tuple(nb::tuple(dimensions), array, nb::cast(variable.meaning));
    }
    return all;
  }

 private:
  template <class T>
  nb::object array_of(std::size_t i) {
    std::vector<std::size_t> shape(variables_[i].shape.begin(), variables_[i].shape.end());
    std::byte* const memory = memory_[i].release();
    const nb::capsule owner(memory, [](void* p) noexcept { delete[] static_cast<std::byte*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, T>(memory, shape.size(), shape.data(), owner));
  }

  std::vector<DatasetVariable> variables_;
  std::vector<std::unique_ptr<std::byte[]>> memory_;
};

/// A data set as planned, from which any replicates can be drawn.
struct PlannedDataset {
  Dataset dataset;
  std::vector<Plan> plans;
  std::vector<std::string> swept;
};

std::unique_ptr<Job> start_dataset(const ScenarioSource& source, bool estimates, bool weights,
                                   const OptionalText& threads) {
  Session session{.backend = "cpu", .threads = threads_of(threads)};
  return std::make_unique<Job>(std::move(session), [=](Job& job) {
    const Session& own = job.session();
    const Scenario scenario = source.read({.stop = own.stop_hook(), .report = {}, .depth = false});
    const auto planned = std::make_shared<PlannedDataset>();
    planned->dataset =
        plan_dataset(scenario, {.shards = 1, .estimates = estimates, .weights = weights}, own);
    planned->swept = scenario.swept;
    for (const DatasetCondition& one : planned->dataset.conditions) {
      planned->plans.push_back(make_plan(*one.condition, one.found));
    }
    return Job::MakeObject([planned] { return nb::cast(planned); });
  });
}

std::unique_ptr<Job> start_draw(const std::shared_ptr<PlannedDataset>& planned,
                                std::size_t condition, std::uint64_t first, std::uint64_t count,
                                const OptionalText& threads) {
  Session session{.backend = "cpu", .threads = threads_of(threads)};
  if (condition >= planned->plans.size()) {
    throw InvalidInput("condition: is " + std::to_string(condition) + ", the scenario has " +
                       std::to_string(planned->plans.size()));
  }
  if (count == 0 || first >= (std::uint64_t{1} << 40) || count >= (std::uint64_t{1} << 40)) {
    throw InvalidInput("replicates: need numbers below 2^40, one at least");
  }
  return std::make_unique<Job>(std::move(session), [=](Job& job) {
    const Condition& of = *planned->dataset.conditions[condition].condition;
    const auto output =
        std::make_shared<MemoryOutput>(dataset_variables(of, planned->dataset.request, count));
    if (!draw_shard(of, planned->plans[condition], planned->dataset.request, {first, count},
                    *output, job.session(), [](double) {})) {
      throw Stopped();
    }
    return Job::MakeObject([output] { return nb::object(output->arrays()); });
  });
}

// Replays.

std::unique_ptr<Job> start_replay(const ScenarioSource& source, std::size_t condition,
                                  std::uint64_t replicate, const std::string& backend,
                                  const OptionalText& threads) {
  Session session{.backend = backend};
  *session.backend;  // made here, or refused
  session.threads = threads_of(threads);
  return std::make_unique<Job>(std::move(session), [=](Job& job) {
    const Session& own = job.session();
    const auto scenario = std::make_shared<const Scenario>(
        source.read({.stop = own.stop_hook(), .report = {}, .depth = false}));
    if (condition >= scenario->conditions.size()) {
      throw InvalidInput("condition: is " + std::to_string(condition) + " (allowed: 0 to " +
                         std::to_string(scenario->conditions.size() - 1) + ")");
    }
    const Condition& of = scenario->conditions[condition];
    if (replicate >= of.replicates) {
      throw InvalidInput("replicate: is " + std::to_string(replicate) + " (allowed: 0 to " +
                         std::to_string(of.replicates - 1) + ")");
    }
    const auto replay = std::make_shared<const Replay>(replay_replicate(of, replicate, own));
    if (!replay->outcome.complete) throw Stopped();
    const auto lock = use_netcdf();
    return Job::MakeObject([content = written_content([&](const NetcdfGroup& root) {
                              put_replay(root, *scenario, condition, *replay, provenance());
                            }),
                            table = tools::replay_table(*scenario, condition, *replay)] {
      return nb::object(nb::make_tuple(object_of(content), table));
    });
  });
}

// Files of results.

nb::dict open_results(const std::string& path) {
  try {
    const auto read = [&] {
      const nb::gil_scoped_release released;
      const auto lock = use_netcdf();
      return content_of(NetcdfInput(path).root());
    };
    return object_of(read());
  } catch (const NetcdfError& error) {
    throw InvalidInput(path + ": cannot be read (" + error.what() + ")");
  }
}

/// A run as its results.nc has it, recomputed from the nodes. Throws InvalidInput where the
/// scenario in the file, read from `directory`, does not lead to the plan that was simulated: data
/// files may have moved.
std::shared_ptr<RunOutcome> restore_results(const std::string& path, const std::string& directory) {
  const nb::gil_scoped_release released;
  const auto lock = use_netcdf();
  try {
    const NetcdfInput input(path);
    const NetcdfGroup root = input.root();
    std::vector<std::string> sets;
    std::string line;
    for (const char c : root.text_attribute("set_arguments") + "\n") {
      if (c != '\n') {
        line += c;
      } else if (!line.empty()) {
        sets.push_back(std::exchange(line, ""));
      }
    }
    auto outcome = std::make_shared<RunOutcome>();
    outcome->scenario = std::make_shared<const Scenario>(
        parse_scenario(root.text_attribute("scenario_text"), root.text_attribute("scenario_file"),
                       sets, directory));
    const Scenario& scenario = *outcome->scenario;
    const ResultsReader reader(root);
    RunResult& result = outcome->result;
    result.machine = {.backend = root.text_attribute("backend"),
                      .simd = root.text_attribute("simd"),
                      .device = root.text_attribute("device"),
                      .threads = static_cast<int>(root.integer_attribute("threads"))};
    result.outcome.complete = root.integer_attribute("complete") != 0;
    const std::vector<double> seconds = root.doubles("seconds");
    for (std::size_t i = 0; i < std::min(reader.conditions(), scenario.conditions.size()); ++i) {
      StoredCondition stored = reader.read(i);
      const std::shared_ptr<const Condition> condition(outcome->scenario, &scenario.conditions[i]);
      Preparation found;
      if (!stored.head_weights.empty()) found.head_weights = stored.head_weights;
      if (stored.controls) {
        found.controls =
            std::make_shared<const FoundControls>(FoundControls{.controls = *stored.controls});
      }
      Plan plan = make_plan(*condition, found);
      if (!stored.plan_sha256.empty() && plan_sha256(plan) != stored.plan_sha256) {
        throw InvalidInput(path + ": its scenario does not lead to the plan that was simulated");
      }
      MomentTree tree(stored.layout, std::move(stored.nodes), std::move(stored.extremes));
      std::shared_ptr<const LayerEstimates> layers;
      if (plan.stack) {
        layers = std::make_shared<const LayerEstimates>(estimate_layers(tree, plan.n));
      }
      ConditionEstimates estimates =
          plan.stack ? counts_of_layers(tree) : estimate(tree, plan, condition->measures);
      result.conditions.push_back({.condition = condition,
                                   .found = std::move(found),
                                   .plan = std::move(plan),
                                   .tree = std::move(tree),
                                   .estimates = std::move(estimates),
                                   .seconds = seconds.at(i),
                                   .layers = layers});
      result.outcome.seconds += seconds.at(i);
      if (root.has_variable("weights_per_second")) {
        result.conditions.back().weights_per_second = root.doubles("weights_per_second").at(i);
      }
    }
    outcome->report.indices = tools::condition_indices(result);
    return outcome;
  } catch (const NetcdfError& error) {
    throw InvalidInput(path + ": cannot be read (" + error.what() + ")");
  } catch (const ParameterError& error) {
    throw InvalidInput(path + ": " + error.what());
  }
}

// Notes on files, until Python asks for them: those who read have no GIL.

struct FileNotes {
  std::mutex mutex;
  std::vector<std::string> lines;
};

FileNotes& file_notes() {
  static FileNotes notes;
  return notes;
}

void set_foreign_reader(const std::vector<std::string>& command) {
  set_foreign_files({.command = command});
  set_notes([](const std::string& line) {
    const std::lock_guard lock(file_notes().mutex);
    file_notes().lines.push_back(line);
  });
}

std::vector<std::string> take_file_notes() {
  const std::lock_guard lock(file_notes().mutex);
  return std::exchange(file_notes().lines, {});
}

}  // namespace

void bind_data(nb::module_& module) {
  nb::class_<PlannedDataset>(module, "PlannedDataset")
      .def_prop_ro("conditions", [](const PlannedDataset& p) { return p.plans.size(); })
      .def_prop_ro("swept", [](const PlannedDataset& p) { return p.swept; })
      .def("replicates",
           [](const PlannedDataset& p, std::size_t condition) {
             return p.dataset.conditions.at(condition).condition->replicates;
           })
      .def("values", [](const PlannedDataset& p, std::size_t condition) {
        return p.dataset.conditions.at(condition).condition->swept;
      });
  module.def("dataset", &start_dataset, nb::arg("source"), nb::arg("estimates"), nb::arg("weights"),
             nb::arg("threads").none());
  module.def("draw", &start_draw, nb::arg("dataset"), nb::arg("condition"), nb::arg("first"),
             nb::arg("count"), nb::arg("threads").none());
  module.def("replay", &start_replay, nb::arg("source"), nb::arg("condition"), nb::arg("replicate"),
             nb::arg("backend"), nb::arg("threads").none());
  module.def("open_results", &open_results, nb::arg("path"),
             nb::sig("def open_results(path: str) -> dict[str, typing.Any]"));
  module.def("set_foreign_reader", &set_foreign_reader, nb::arg("command"));
  module.def("serve_foreign_files", &serve_foreign_files);
  module.def("take_file_notes", &take_file_notes);
  module.def(
      "check_json_sum",
      [](const std::string& path, const std::string& text) {
        if (!check_json_sum(path, text)) note_without_sums(path);
      },
      nb::arg("path"), nb::arg("text"));
  module.def("restore_results", &restore_results, nb::arg("path"), nb::arg("directory"));
}

}  // namespace headlab::python
