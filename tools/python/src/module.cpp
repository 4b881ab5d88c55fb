// SPDX-License-Identifier: Apache-2.0
/// \file The module headlab._engine: what the package of Python functions is built on.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "engine/files/error.h"
#include "engine/files/provenance.h"
#include "engine/moments/error_terms.h"
#include "engine/moments/jackknife.h"
#include "engine/scenario/law_reader.h"
#include "engine/scenario/scenario.h"
#include "kernels/backends.h"
#include "tools/cli/results_folder.h"
#include "tools/python/src/studies.h"
#include "tools/python/src/values.h"
#include "tools/report/sweep.h"

namespace headlab::python {

namespace nb = nanobind;

namespace {

ScenarioSource source_of_document(nb::handle document,
                                  const nb::typed<nb::dict, nb::str, nb::any>& arrays,
                                  const std::string& directory) {
  return {.kind = ScenarioSource::Kind::document,
          .text = {},
          .document = document_of(document),
          .arrays = arrays_of(arrays),
          .directory = directory};
}

/// {"stage": text, ...} of the last report, or None.
nb::object progress_object(Job& job) {
  const std::optional<Progress> progress = job.progress();
  if (!progress) return nb::none();
  nb::dict all;
  all["stage"] = progress->stage;
  all["condition"] = progress->condition;
  all["conditions"] = progress->conditions;
  all["done"] = progress->done;
  all["total"] = progress->total;
  all["what"] = progress->what;
  all["share"] = progress->share;
  all["seconds_left"] = progress->seconds_left;
  all["figure"] = progress->figure;
  all["value"] = progress->estimate.value;
  all["mcse"] = progress->estimate.mcse;
  return all;
}

/// Reads a scenario and gives what it was read as: the TOML text, the swept keys, the number of
/// conditions.
std::unique_ptr<Job> start_read(const ScenarioSource& source, bool simulates) {
  return std::make_unique<Job>(Session{.backend = "cpu"}, [=](Job& job) {
    ReadHooks hooks;
    hooks.stop = job.session().stop_hook();
    hooks.simulates = simulates;
    const Scenario scenario = source.read(hooks);
    return Job::MakeObject([text = to_toml_document(scenario_tree(scenario)),
                            swept = scenario.swept, count = scenario.conditions.size()] {
      return nb::object(nb::make_tuple(text, swept, count));
    });
  });
}

/// The TOML text of a document, which need not be a scenario.
std::string toml_of(nb::handle document) {
  return to_toml_document(document_of(document));
}

/// "KEY=VALUE" as in --set.
std::string set_of(const std::string& key, nb::handle value) {
  nb::dict one;
  one[nb::str(key.c_str())] = value;
  const Value document = document_of(one);
  return key + "=" + to_toml(std::get<Value::Members>(document.data).front().value);
}

nb::dict build_object() {
  const Provenance program = provenance();
  nb::dict all;
  all["version"] = program.version;
  all["git"] = program.git;
  all["compiler"] = program.compiler;
  all["build_type"] = program.build_type;
  all["backends"] = backend_names();
  return all;
}

/// Labels of figures by their names.
nb::typed<nb::dict, nb::str, nb::str> labels_object() {
  nb::dict all;
  const ErrorTerms<Estimate> terms;
  for (const auto& [name, number, text] : numbers_of(terms)) {
    if (*text.label != 0) all[name] = text.label;
  }
  return all;
}

/// The least that a scenario says of each law, in TOML, by family and name.
nb::typed<nb::dict, nb::str, nb::typed<nb::dict, nb::str, nb::str>> laws_object() {
  nb::dict families;
  for (const LawDescription& law : describe_laws()) {
    const char* family = law.family.c_str();
    if (!families.contains(family)) families[family] = nb::dict();
    nb::cast<nb::dict>(families[family])[law.name.c_str()] = law.example;
  }
  return families;
}

}  // namespace

NB_MODULE(_engine, module) {
  module.doc() = "The engine of headlab; use the package headlab.";
  nb::set_leak_warnings(false);

  // The last that is registered is asked first.
  nb::exception<RunFailed>(module, "RunFailed", PyExc_RuntimeError);
  nb::exception<Unfinished>(module, "Unfinished", PyExc_RuntimeError);
  nb::exception<Stopped>(module, "Stopped", PyExc_RuntimeError);
  nb::exception<NetcdfError>(module, "NetcdfError", PyExc_RuntimeError);
  nb::exception<InvalidInput>(module, "InvalidInput", PyExc_ValueError);

  nb::class_<ScenarioSource>(module, "Source").def_rw("sets", &ScenarioSource::sets);
  module.def(
      "source_of_file",
      [](const std::string& path) {
        return ScenarioSource{.kind = ScenarioSource::Kind::file, .text = path};
      },
      nb::arg("path"));
  module.def(
      "source_of_text",
      [](const std::string& text, const std::string& directory) {
        return ScenarioSource{
            .kind = ScenarioSource::Kind::text, .text = text, .directory = directory};
      },
      nb::arg("text"), nb::arg("directory"));
  module.def("source_of_document", &source_of_document, nb::arg("document"), nb::arg("arrays"),
             nb::arg("directory"));
  module.def("read", &start_read, nb::arg("source"), nb::arg("simulates") = true);
  module.def("toml_of", &toml_of, nb::arg("document"));
  module.def("set_of", &set_of, nb::arg("key"), nb::arg("value"));
  module.def("labels", &labels_object);
  module.def("laws", &laws_object);
  module.def("axis_title", &tools::axis_title, nb::arg("key"));
  module.def("level_labels", &tools::level_labels, nb::arg("written"), nb::arg("most"));
  module.def(
      "require_merged",
      [](const std::string& path) {
        const auto lock = use_netcdf();
        tools::require_merged(path);
      },
      nb::arg("path"));
  module.def("figure_words", &tools::figure_words, nb::arg("figure"));
  module.def("build", &build_object, nb::sig("def build() -> dict[str, typing.Any]"));

  nb::class_<Job>(module, "Job")
      .def("wait", &Job::wait, nb::arg("seconds"))
      .def("stop", &Job::stop)
      .def("progress", &progress_object,
           nb::sig("def progress(self) -> dict[str, typing.Any] | None"))
      .def("interim", &Job::interim, nb::sig("def interim(self) -> typing.Any"))
      .def("result", &Job::result, nb::sig("def result(self) -> typing.Any"));

  bind_run(module);
  bind_studies(module);
  bind_tables(module);
  bind_allocations(module);
  bind_data(module);
  bind_estimates(module);
  bind_attention(module);
  bind_heads_on_text(module);
}

}  // namespace headlab::python
