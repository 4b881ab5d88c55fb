// SPDX-License-Identifier: Apache-2.0
#include "tools/python/src/studies.h"

#include <cmath>
#include <cstdint>
#include <map>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>
#include <string_view>

#include "engine/files/atomic_file.h"
#include "engine/files/error.h"
#include "engine/files/models/import_heads.h"
#include "engine/files/models/model_checkpoint.h"
#include "engine/files/provenance.h"
#include "engine/files/words.h"
#include "engine/results/condition_record.h"
#include "engine/results/netcdf_fields.h"
#include "engine/results/results_scenario.h"
#include "engine/results/stored_figures.h"
#include "engine/results/summary_json.h"
#include "engine/scenario/scenario.h"
#include "kernels/counted.h"
#include "kernels/parallel_for.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/commands/plot.h"
#include "tools/cli/computed_conditions.h"
#include "tools/cli/output_folder.h"
#include "tools/cli/results_folder.h"
#include "tools/cli/table.h"
#include "tools/cli/verdict_table.h"
#include "tools/report/page.h"
#include "tools/report/read_sources.h"
#include "validation/compression/compression.h"
#include "validation/diversity/alike_heads.h"
#include "validation/verdicts/validate.h"

namespace headlab::python {

namespace nb = nanobind;

namespace {

// Closed forms.

TheorySource theory_source(const std::string& name) {
  tools::known_word("--source", name, {"auto", "exact", "first_order"});
  return name == "auto"    ? TheorySource::automatic
         : name == "exact" ? TheorySource::exact
                           : TheorySource::first_order;
}

/// Closed forms under the names of results.nc, with `_remainder` in place of `_mcse`. What some
/// conditions have fewer of is padded with NaN.
void put_theory(const NetcdfGroup& root, const Scenario& scenario,
                const std::vector<ComputedCondition>& theory) {
  std::map<std::string, std::size_t> lengths = {{"condition", theory.size()}};
  const auto at_least_as_long = [&](const char* axis, std::size_t length) {
    lengths[axis] = std::max(lengths[axis], length);
  };
  std::vector<const Condition*> conditions;
  for (const ComputedCondition& one : theory) {
    conditions.push_back(one.condition.get());
    if (one.condition->stack) {
      at_least_as_long("layer", one.result.layers.rows.size());
      continue;
    }
    const Plan& plan = *one.result.plan;
    at_least_as_long("query", plan.truth.size());
    at_least_as_long("head", static_cast<std::size_t>(plan.heads));
    at_least_as_long("head_2", static_cast<std::size_t>(plan.heads));
    at_least_as_long("coordinate", static_cast<std::size_t>(plan.d));
  }
  FieldTable table(lengths);
  std::vector<std::string> sources;
  for (std::size_t c = 0; c < theory.size(); ++c) {
    const NetcdfFields::Place place{&table, {{"condition"}, {c}}};
    NetcdfFields visit(place, place);
    visit_condition(theory[c], visit);
    sources.push_back(theory[c].result.source);
  }
  for (const auto& [axis, length] : lengths) root.define_dimension(axis, length);
  write_scenario(root, scenario, provenance());
  table.write(root);
  root.write("theory_source", {"condition"}, {"which closed form", ""}, sources);
  write_swept(root, "condition", scenario.swept, conditions);
}

std::unique_ptr<Job> start_theory(const ScenarioSource& source, const std::string& kind,
                                  const OptionalText& threads) {
  const TheorySource forms = theory_source(kind);
  return std::make_unique<Job>(cpu_session(threads), [source, forms](Job& job) {
    const Session& session = job.session();
    ReadHooks hooks = hooks_of(session);
    hooks.simulates = false;
    const auto scenario = std::make_shared<const Scenario>(source.read(hooks));
    const int count = thread_count(session.threads);
    const auto theory =
        std::make_shared<const std::vector<ComputedCondition>>(tools::computed_conditions(
            *scenario, tools::compute_theories(*scenario, forms, count, session.stop_hook())));
    std::string json;
    write_theory_json([&](std::string_view part) { json += part; }, *theory, count, provenance(),
                      "");
    const std::string table = tools::theory_table(*scenario, *theory);
    const auto lock = use_netcdf();
    const auto content =
        written_content([&](const NetcdfGroup& root) { put_theory(root, *scenario, *theory); });
    return Job::MakeObject(
        [=]() -> nb::object { return nb::make_tuple(json, table, object_of(content)); });
  });
}

// Verdicts.

std::unique_ptr<Job> start_validate(const std::vector<std::string>& claims,
                                    const OptionalText& scenario, const std::string& level,
                                    const OptionalText& seed, const OptionalText& replicates,
                                    const std::string& backend, const OptionalText& threads,
                                    const OptionalText& max_time) {
  const auto arguments = arguments_of({{"--seed", seed},
                                       {"--replicates", replicates},
                                       {"--backend", backend},
                                       {"--threads", threads},
                                       {"--max-time", max_time}});
  const ValidateOptions options{
      .full = tools::known_word("--level", level, {"quick", "full"}) == "full",
      .seed = arguments.seed,
      .replicates = arguments.replicates};
  if (options.full && options.replicates) {
    throw InvalidInput(
        "--replicates: not with --level full, which says how many - leave one of them out");
  }
  return std::make_unique<Job>(job_session(arguments), [claims, scenario, options](Job& job) {
    const Validation validation = scenario ? validate_scenario(*scenario, job.session(), options)
                                           : validate(claims, job.session(), options);
    return document(verdicts_json(validation, provenance()), tools::verdict_table(validation),
                    validation.outcome.complete);
  });
}

// Heads of models.

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using HeadArray = nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

/// A file of heads in memory with the name that messages give it.
struct Heads {
  HeadFile file;
  std::string name;
};

/// One layer with the subspaces [head][d][k].
std::shared_ptr<const Heads> heads_of_array(const HeadArray& array) {
  HeadLayer layer;
  const auto rows = static_cast<Eigen::Index>(array.shape(1));
  const auto columns = static_cast<Eigen::Index>(array.shape(2));
  const double* next = array.data();
  for (std::size_t h = 0; h < array.shape(0); ++h, next += rows * columns) {
    layer.subspaces.emplace_back(Eigen::Map<const RowMajor>(next, rows, columns));
  }
  if (array.size() == 0) throw InvalidInput("heads: have no numbers, need H x d x k");
  if (array.shape(2) > array.shape(1)) {
    throw InvalidInput("heads: have d x k = " + std::to_string(array.shape(1)) + " x " +
                       std::to_string(array.shape(2)) + ", need k <= d");
  }
  if (array.shape(0) > static_cast<std::size_t>(max_model_heads)) {
    throw InvalidInput("heads: are " + std::to_string(array.shape(0)) + " (allowed: at most 1024)");
  }
  for (std::size_t i = 0; i < array.size(); ++i) {
    if (!std::isfinite(array.data()[i])) throw InvalidInput("heads: have a number not finite");
  }
  auto heads = std::make_shared<Heads>();
  heads->file.layers.push_back(std::move(layer));
  heads->name = "heads";
  return heads;
}

nb::object matrices_object(const Matrices& matrices) {
  if (matrices.empty()) return nb::none();
  const auto rows = static_cast<std::size_t>(matrices[0].rows());
  const auto columns = static_cast<std::size_t>(matrices[0].cols());
  std::vector<double> numbers;
  for (const Eigen::MatrixXd& w : matrices) {
    const RowMajor all = w;
    numbers.insert(numbers.end(), all.data(), all.data() + all.size());
  }
  return array_object(std::move(numbers), {matrices.size(), rows, columns});
}

const HeadLayer& layer_of(const Heads& heads, int number) {
  for (const HeadLayer& layer : heads.file.layers) {
    if (layer.number == number) return layer;
  }
  throw InvalidInput("layer: is " + std::to_string(number) + ", which " + heads.name +
                     " does not have");
}

std::unique_ptr<Job> start_import(const tools::ImportHeadsArguments& arguments,
                                  std::optional<int> layer) {
  return std::make_unique<Job>(
      Session{.backend = "cpu", .threads = arguments.threads.value_or(0)},
      [arguments, layer](Job& job) {
        const ModelCheckpoint readable(arguments.checkpoint);
        const ModelConfig config = tools::model_config_of(arguments);
        const HeadImport import{.architecture = config.architecture,
                                .counts = config.counts,
                                .layer = layer,
                                .biases = arguments.biases,
                                .stop = job.session().stop_hook()};
        auto heads = std::make_shared<Heads>();
        heads->file =
            import_heads(arguments.checkpoint, import, thread_count(job.session().threads));
        heads->name = arguments.checkpoint;
        return Job::MakeObject([heads] { return nb::cast(std::shared_ptr<const Heads>(heads)); });
      });
}

/// \param name what messages call them; empty: the path
std::shared_ptr<const Heads> read_heads(const std::string& path, const std::string& name) {
  const nb::gil_scoped_release released;
  const auto lock = use_netcdf();
  auto heads = std::make_shared<Heads>();
  heads->file = read_head_file(path);
  heads->name = name.empty() ? path : name;
  return heads;
}

/// The compressed heads and the document of the losses.
/// \param inputs [rows][d], or None
std::unique_ptr<Job> start_compress(
    const std::shared_ptr<const Heads>& heads, int rank, const std::string& by,
    const std::optional<nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>>&
        inputs,
    bool centre, std::optional<int> layer, std::uint64_t keys, std::uint64_t replicates,
    std::uint64_t seed, const OptionalText& threads) {
  CompressionSetting setting{.rank = rank,
                             .centre = centre,
                             .tokens = {},
                             .keys = keys,
                             .replicates = replicates,
                             .seed = seed};
  if (inputs) {
    setting.tokens =
        Eigen::Map<const RowMajor>(inputs->data(), static_cast<Eigen::Index>(inputs->shape(0)),
                                   static_cast<Eigen::Index>(inputs->shape(1)));
  }
  const LowRankMethod method = *low_rank_method(tools::known_word("--by", by, low_rank_methods()));
  return std::make_unique<Job>(cpu_session(threads), [=](Job& job) {
    HeadFile file = heads->file;
    if (layer) file.layers = {layer_of(*heads, *layer)};
    const int count = thread_count(job.session().threads);
    const auto stop = job.session().stop_hook();
    auto compressed = std::make_shared<Heads>();
    compressed->file = compressed_heads(file, heads->name, method, setting, count, stop);
    compressed->name = heads->name + ", rank " + std::to_string(rank);
    const Compression losses = compression_of(file, heads->name, setting, count, stop);
    return Job::MakeObject([compressed, json = compression_json(losses, heads->name, provenance()),
                            text = tools::compression_text(losses, heads->name, "data")] {
      return nb::object(
          nb::make_tuple(nb::cast(std::shared_ptr<const Heads>(compressed)), json, text));
    });
  });
}

std::unique_ptr<Job> start_hdi(const std::shared_ptr<const Heads>& heads, int kv_heads,
                               std::uint64_t seed, std::size_t top, const OptionalText& threads) {
  return std::make_unique<Job>(cpu_session(threads), [=](Job& job) {
    HeadFile file = heads->file;
    if (kv_heads > 0) {
      if (file.heads() % kv_heads != 0) {
        throw InvalidInput("kv_heads: " + std::to_string(kv_heads) + " does not divide the " +
                           counted(static_cast<std::uint64_t>(file.heads()), "head") +
                           " into groups");
      }
      file.kv_heads = kv_heads;
    }
    const HeadDiversity diversity = head_diversity(
        file, heads->name, seed, thread_count(job.session().threads), job.session().stop_hook());
    const AlikeHeads alike = alike_heads(diversity, top);
    return document(
        head_diversity_json(diversity, alike, heads->name, provenance()),
        tools::diversity_text(diversity, heads->name) + tools::alike_text(diversity, alike));
  });
}

// Differences and reports.

nb::typed<nb::tuple, nb::str, nb::str> difference(const std::string& a, const std::string& b) {
  const auto found = [&] {
    const nb::gil_scoped_release released;
    const auto lock = use_netcdf();
    for (const std::string& result : {a, b}) tools::require_merged(result);
    const StoredResults first(a), second(b);
    const ResultsDifference difference = difference_of(first, second);
    return std::pair(tools::difference_json(difference, first, second),
                     tools::difference_text(difference, first, second));
  }();
  return nb::make_tuple(found.first, found.second);
}

std::vector<std::string> report(const std::string& path, const std::vector<std::string>& folders,
                                const std::vector<std::string>& documents) {
  const nb::gil_scoped_release released;
  const auto lock = use_netcdf();
  tools::require_report_writable("--out", path, folders);
  std::vector<tools::Source> sources;
  tools::SourceReader reader;
  for (const std::string& folder : folders) {
    for (tools::Source& source : reader.read(folder)) sources.push_back(std::move(source));
  }
  for (const std::string& text : documents) sources.push_back(tools::source_of_document(text));
  tools::write_report(path, sources);
  return reader.notes();
}

/// A picture as SVG, and a line for everything that could not be used.
nb::typed<nb::tuple, nb::str, nb::typed<nb::list, nb::str>> plot(
    const tools::PlotArguments& arguments) {
  std::vector<std::string> notes;
  const std::string svg = [&] {
    const nb::gil_scoped_release released;
    const auto lock = use_netcdf();
    return tools::plot_svg(arguments, notes);
  }();
  return nb::make_tuple(svg, notes);
}

}  // namespace

void bind_studies(nb::module_& module) {
  module.def("theory", &start_theory, nb::arg("source"), nb::arg("kind"),
             nb::arg("threads").none());
  module.def("validate", &start_validate, nb::arg("claims"), nb::arg("scenario").none(),
             nb::arg("level"), nb::arg("seed").none(), nb::arg("replicates").none(),
             nb::arg("backend"), nb::arg("threads").none(), nb::arg("max_time").none());
  nb::class_<Heads>(module, "Heads")
      .def_prop_ro("name", [](const Heads& heads) { return heads.name; })
      .def_prop_ro("architecture", [](const Heads& heads) { return heads.file.architecture; })
      .def_prop_ro("temperature", [](const Heads& heads) { return heads.file.temperature; })
      .def_prop_ro("rotary", [](const Heads& heads) { return heads.file.rotary; })
      .def_prop_ro("kv_heads", [](const Heads& heads) { return heads.file.groups(); })
      .def_prop_ro("left_out", [](const Heads& heads) { return heads.file.left_out; })
      .def_prop_ro("layers",
                   [](const Heads& heads) {
                     std::vector<int> numbers;
                     for (const HeadLayer& layer : heads.file.layers) {
                       numbers.push_back(layer.number);
                     }
                     return numbers;
                   })
      .def("subspaces", [](const Heads& heads,
                           int layer) { return matrices_object(layer_of(heads, layer).subspaces); })
      .def("w_q", [](const Heads& heads,
                     int layer) { return matrices_object(layer_of(heads, layer).w_q); })
      .def("w_k", [](const Heads& heads,
                     int layer) { return matrices_object(layer_of(heads, layer).w_k); })
      .def("save", [](const Heads& heads, const std::string& path, bool overwrite) {
        const nb::gil_scoped_release released;
        const auto lock = use_netcdf();
        check_head_path(path, heads.file.layers.size());
        if (!overwrite) tools::require_nothing_at(path, tools::overwrite_only);
        tools::require_writable("--out", path);
        write_head_file(path, heads.file);
      });
  bind_arguments<tools::ImportHeadsArguments>(module, "ImportHeadsArguments");
  module.def("import_heads", &start_import, nb::arg("arguments"), nb::arg("layer").none());
  module.def("heads_of_array", &heads_of_array, nb::arg("array"));
  module.def("read_heads", &read_heads, nb::arg("path"), nb::arg("name") = "");
  module.def("compress", &start_compress, nb::arg("heads"), nb::arg("rank"), nb::arg("by"),
             nb::arg("inputs").none(), nb::arg("centre"), nb::arg("layer").none(), nb::arg("keys"),
             nb::arg("replicates"), nb::arg("seed"), nb::arg("threads").none());
  module.def("hdi", &start_hdi, nb::arg("heads"), nb::arg("kv_heads"), nb::arg("seed"),
             nb::arg("top"), nb::arg("threads").none());

  module.def("diff", &difference, nb::arg("a"), nb::arg("b"));
  bind_arguments<tools::PlotArguments>(module, "PlotArguments");
  module.def("plot", &plot, nb::arg("arguments"));
  module.def("report", &report, nb::arg("path"), nb::arg("folders"), nb::arg("documents"));
  module.def(
      "write_file",
      [](const std::string& path, const nb::bytes& content) {
        const std::string_view bytes(content.c_str(), content.size());
        const nb::gil_scoped_release released;
        write_atomically(path, bytes);
      },
      nb::arg("path"), nb::arg("content"));
}

}  // namespace headlab::python
