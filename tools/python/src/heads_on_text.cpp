// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <memory>
#include <mutex>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/activations/activations.h"
#include "engine/files/error.h"
#include "engine/files/provenance.h"
#include "kernels/parallel_for.h"
#include "tools/cli/commands/commands.h"
#include "tools/python/src/job.h"
#include "tools/python/src/studies.h"
#include "tools/python/src/values.h"
#include "validation/heads/contexts.h"
#include "validation/heads/measure.h"
#include "validation/heads/refit.h"

namespace headlab::python {

namespace nb = nanobind;

namespace {

using HostArray = nb::ndarray<nb::c_contig, nb::device::cpu>;

/// Arrays of the caller, where they are.
class ArraysOfCaller : public ArrayFile {
 public:
  explicit ArraysOfCaller(const nb::dict& arrays, std::map<std::string, std::string> texts)
      : ArrayFile("activations") {
    texts_ = std::move(texts);
    for (const auto [key, object] : arrays) {
      const auto name = nb::cast<std::string>(key);
      const auto array = nb::cast<HostArray>(object);
      Held& held = held_[name];
      ArrayInfo& info = arrays_[name];
      for (std::size_t i = 0; i < array.ndim(); ++i) info.shape.push_back(array.shape(i));
      held.data = array.data();
      if (array.dtype() == nb::dtype<float>()) {
        info.kind = NumberKind::single;
        held.number = number_at<float>;
      } else if (array.dtype() == nb::dtype<double>()) {
        info.kind = NumberKind::exact;
        held.number = number_at<double>;
      } else {
        info.kind = NumberKind::whole;
        held.number =
            array.dtype() == nb::dtype<bool>() ? number_at<bool> : number_at<std::int64_t>;
      }
      // Let go with the GIL, wherever the last copy ends.
      held.owner =
          std::shared_ptr<const void>(new nb::object(nb::borrow(object)), [](const void* p) {
            const nb::gil_scoped_acquire gil;
            delete static_cast<const nb::object*>(p);
          });
    }
  }

  std::vector<double> read(const std::string& name, std::uint64_t first,
                           std::uint64_t count) override {
    const ArrayInfo& info = arrays_.at(name);
    std::uint64_t item = 1;
    for (std::size_t axis = 1; axis < info.shape.size(); ++axis) item *= info.shape[axis];
    const Held& held = held_.at(name);
    std::vector<double> numbers(count * item);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      numbers[i] = held.number(held.data, first * item + i);
    }
    return numbers;
  }

 private:
  template <class T>
  static double number_at(const void* data, std::size_t i) {
    return static_cast<double>(static_cast<const T*>(data)[i]);
  }
  struct Held {
    const void* data = nullptr;
    double (*number)(const void*, std::size_t) = nullptr;
    std::shared_ptr<const void> owner;
  };
  std::map<std::string, Held> held_;
};

/// What attention layers did, in memory or in a file.
struct Activations {
  std::shared_ptr<ArrayFile> file;
};

std::shared_ptr<Activations> activations_of(const nb::typed<nb::dict, nb::str, nb::any>& arrays,
                                            std::map<std::string, std::string> texts) {
  auto file = std::make_shared<ArraysOfCaller>(arrays, std::move(texts));
  for (const int number : layers_of(*file)) LayerActivations(file, number);
  return std::make_shared<Activations>(Activations{file});
}

std::shared_ptr<Activations> open_activations(const std::vector<std::string>& paths) {
  const nb::gil_scoped_release released;
  const auto lock = use_netcdf();
  return std::make_shared<Activations>(Activations{open_activation_files(paths)});
}

void save_activations(const Activations& activations, const std::string& path, bool overwrite) {
  const nb::gil_scoped_release released;
  const auto lock = use_netcdf();
  tools::require_netcdf_out(path, {}, overwrite);
  write_activations(path, activations.file);
}

void save_measured(const MeasuredHeads& measured, const std::string& path, bool overwrite) {
  const nb::gil_scoped_release released;
  const auto lock = use_netcdf();
  tools::require_netcdf_out(path, {}, overwrite);
  NetcdfImage image;
  put_measured_heads(image.root(), measured, provenance());
  image.save(path);
}

std::unique_ptr<Job> start_measure(const std::shared_ptr<Activations>& activations,
                                   std::optional<int> layer, const HeadSetting& setting,
                                   const OptionalText& threads) {
  if (!setting.target.empty()) tools::known_word("target", setting.target, context_targets());
  tools::known_word("strata", setting.strata, context_strata());
  return std::make_unique<Job>(cpu_session(threads), [=](Job& job) {
    // The file may be one of NetCDF.
    const auto lock = use_netcdf();
    const auto measured = std::make_shared<const MeasuredHeads>(
        measure_heads(activations->file, layer, setting, thread_count(job.session().threads),
                      job.session().stop_hook()));
    NetcdfImage image;
    put_measured_heads(image.root(), *measured, provenance());
    const NetcdfBytes bytes = image.bytes();
    return Job::MakeObject([measured, content = content_of(NetcdfInput(bytes).root())] {
      return nb::object(nb::make_tuple(object_of(content), nb::cast(measured)));
    });
  });
}

nb::object matrix_object(const Eigen::MatrixXd& matrix) {
  const TokenRows by_rows = matrix;
  return array_object(
      std::vector<double>(by_rows.data(), by_rows.data() + by_rows.size()),
      {static_cast<std::size_t>(matrix.rows()), static_cast<std::size_t>(matrix.cols())});
}

std::unique_ptr<Job> start_moments(const std::shared_ptr<Activations>& activations, int layer,
                                   const OptionalText& threads) {
  return std::make_unique<Job>(cpu_session(threads), [=](Job& job) {
    const auto lock = use_netcdf();
    const LayerActivations of(activations->file, layer);
    const auto found = std::make_shared<const RemovalMoments>(removal_moments(
        of, HeadSetting(), thread_count(job.session().threads), job.session().stop_hook()));
    return Job::MakeObject(
        [found, map = of.output_map(), heads = of.shape().heads, has_bias = of.has("b_O")] {
          nb::dict all;
          all["tokens"] = found->tokens;
          all["stream"] = found->stream;
          all["heads"] = heads;
          all["has_bias"] = has_bias;
          all["mean"] = matrix_object(found->mean.transpose());
          all["squares"] = matrix_object(found->squares);
          all["output_map"] = matrix_object(map);
          all["losses"] = matrix_object(found->losses);
          return nb::object(all);
        });
  });
}

}  // namespace

void bind_heads_on_text(nb::module_& module) {
  nb::class_<Activations>(module, "Activations")
      .def_prop_ro("layers", [](const Activations& of) { return layers_of(*of.file); })
      .def_prop_ro("source", [](const Activations& of) { return of.file->source(); })
      .def("save", &save_activations, nb::arg("path"), nb::arg("overwrite"));
  module.def("activations_of", &activations_of, nb::arg("arrays"), nb::arg("texts"));
  module.def("open_activations", &open_activations, nb::arg("paths"));
  module.def("removal_moments", &start_moments, nb::arg("activations"), nb::arg("layer"),
             nb::arg("threads").none());
  nb::class_<MeasuredHeads>(module, "MeasuredHeads")
      .def(
          "text",
          [](const MeasuredHeads& of, const std::string& noise, std::size_t top) {
            return tools::measured_text(of, tools::known_word("noise", noise, noise_kinds()), top);
          },
          nb::arg("noise"), nb::arg("top"))
      .def("json", [](const MeasuredHeads& of) { return measured_heads_json(of, provenance()); })
      .def("save", &save_measured, nb::arg("path"), nb::arg("overwrite"));
  nb::class_<HeadSetting>(module, "HeadSetting")
      .def(nb::init<>())
      .def_rw("queries", &HeadSetting::queries)
      .def_rw("seed", &HeadSetting::seed)
      .def_rw("exact", &HeadSetting::exact)
      .def_rw("target", &HeadSetting::target)
      .def_rw("strata", &HeadSetting::strata)
      .def_rw("leave_one_out", &HeadSetting::leave_one_out)
      .def_rw("writes_little", &HeadSetting::writes_little)
      .def_rw("can_be_written", &HeadSetting::can_be_written)
      .def_rw("exchangeable", &HeadSetting::exchangeable);
  module.def("measure_heads", &start_measure, nb::arg("activations"), nb::arg("layer").none(),
             nb::arg("setting"), nb::arg("threads").none());
}

}  // namespace headlab::python
