// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <memory>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/activations/activations.h"
#include "engine/files/error.h"
#include "engine/files/models/head_cuts.h"
#include "engine/files/provenance.h"
#include "kernels/parallel_for.h"
#include "tools/cli/commands/commands.h"
#include "tools/python/src/job.h"
#include "tools/python/src/studies.h"
#include "tools/python/src/values.h"
#include "validation/heads/contexts.h"
#include "validation/heads/measure.h"
#include "validation/heads/removal.h"

namespace headlab::python {

namespace nb = nanobind;

namespace {

using HostArray = nb::ndarray<nb::c_contig, nb::device::cpu>;

/// Arrays of the caller, where they are.
class ArraysOfCaller : public FlatArrayFile {
 public:
  explicit ArraysOfCaller(const nb::dict& arrays, std::map<std::string, std::string> texts)
      : FlatArrayFile("activations") {
    texts_ = std::move(texts);
    for (const auto [key, object] : arrays) {
      const auto name = nb::cast<std::string>(key);
      const auto array = nb::cast<HostArray>(object);
      Held& held = held_[name];
      ArrayInfo& info = arrays_[name];
      for (std::size_t i = 0; i < array.ndim(); ++i) info.shape.push_back(array.shape(i));
      held.data = static_cast<const char*>(array.data());
      if (array.dtype() == nb::dtype<float>()) {
        info.kind = NumberKind::single;
        held.type = StoredType::float32;
      } else if (array.dtype() == nb::dtype<double>()) {
        info.kind = NumberKind::exact;
        held.type = StoredType::float64;
      } else {
        info.kind = NumberKind::whole;
        held.type =
            array.dtype() == nb::dtype<bool>() ? StoredType::unsigned8 : StoredType::signed64;
      }
      // Let go with the GIL, wherever the last copy ends.
      held.owner =
          std::shared_ptr<const void>(new nb::object(nb::borrow(object)), [](const void* p) {
            const nb::gil_scoped_acquire gil;
            delete static_cast<const nb::object*>(p);
          });
    }
  }

 protected:
  void numbers(const std::string& name, std::uint64_t first, std::span<double> to) override {
    take(name, first, to);
  }
  void numbers(const std::string& name, std::uint64_t first, std::span<float> to) override {
    take(name, first, to);
  }

 private:
  template <class T>
  void take(const std::string& name, std::uint64_t first, std::span<T> to) const {
    const Held& held = held_.at(name);
    convert_run(held.type, held.data + first * bytes_of(held.type), to);
  }
  struct Held {
    const char* data = nullptr;
    StoredType type = StoredType::float64;
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

/// Layers that a plan of removal is about.
struct RemovableLayers {
  std::vector<RemovableLayer> all;

  const RemovableLayer& of(int number) const {
    const auto found = std::ranges::find(all, number, &RemovableLayer::number);
    if (found == all.end()) throw InvalidInput("layers: there is no " + std::to_string(number));
    return *found;
  }
};

std::unique_ptr<Job> start_removable(const std::shared_ptr<Activations>& activations,
                                     const std::vector<int>& numbers, const OptionalText& threads) {
  return std::make_unique<Job>(cpu_session(threads), [=](Job& job) {
    const auto lock = use_netcdf();
    const auto layers = std::make_shared<RemovableLayers>();
    for (const int number : numbers) {
      const LayerActivations of(activations->file, number);
      layers->all.emplace_back(of, removal_moments(of, {}, thread_count(job.session().threads),
                                                   job.session().stop_hook()));
    }
    return Job::MakeObject([layers] { return nb::cast(layers); });
  });
}

using Head = std::pair<int, std::size_t>;

std::vector<RemovedHead> removed_heads(const std::vector<Head>& heads) {
  std::vector<RemovedHead> all;
  for (const auto& [layer, head] : heads) all.push_back({layer, head});
  return all;
}

std::vector<Head> order_of(const RemovableLayers& layers, const RemovalSetting& setting,
                           std::size_t count) {
  std::vector<Head> all;
  for (const RemovedHead& one : removal_order(layers.all, setting, count)) {
    all.emplace_back(one.layer, one.head);
  }
  return all;
}

/// Shares of the stream and nats, NaN where there are no gradients.
std::vector<std::pair<double, double>> predictions_of(const RemovableLayers& layers,
                                                      const std::vector<Head>& order, bool refit) {
  std::vector<std::pair<double, double>> all;
  for (const RemovalPrediction& one :
       removal_predictions(layers.all, removed_heads(order), refit)) {
    all.emplace_back(one.share, one.nats);
  }
  return all;
}

/// The map [H e, d], and what the bias gains [1, d] or nothing.
nb::tuple maps_without(const RemovableLayers& layers, int number,
                       const std::vector<std::size_t>& heads, bool refit) {
  const ChangedMap found = layers.of(number).without(heads, refit);
  nb::object constant = nb::none();
  if (found.constant.size() > 0) constant = matrix_object(found.constant.transpose());
  return nb::make_tuple(matrix_object(found.map), constant);
}

/// A tensor that gets other numbers: its name, those, and whether they are added.
using Change =
    std::tuple<std::string, nb::ndarray<const double, nb::c_contig, nb::device::cpu>, bool>;

/// \param cut heads that are cut out of the tensors, where they are
void write_changes(const std::string& checkpoint, const std::string& out,
                   const std::vector<Change>& changes, const std::string& record, bool overwrite,
                   const std::optional<HeadsOfLayers>& cut) {
  CheckpointChanges all;
  for (const auto& [name, numbers, added] : changes) {
    TensorChange change{.name = name, .shape = {}, .numbers = {}, .added = added};
    for (std::size_t i = 0; i < numbers.ndim(); ++i) change.shape.push_back(numbers.shape(i));
    change.numbers.assign(numbers.data(), numbers.data() + numbers.size());
    all.tensors.push_back(std::move(change));
  }
  const nb::gil_scoped_release released;
  all.record = record;
  if (cut) cut_heads(checkpoint, *cut, all);
  write_changed_checkpoint(checkpoint, out, all, overwrite);
}

}  // namespace

void bind_heads_on_text(nb::module_& module) {
  nb::class_<Activations>(module, "Activations")
      .def_prop_ro("layers", [](const Activations& of) { return layers_of(*of.file); })
      .def_prop_ro("source", [](const Activations& of) { return of.file->source(); })
      .def("save", &save_activations, nb::arg("path"), nb::arg("overwrite"));
  module.def("activations_of", &activations_of, nb::arg("arrays"), nb::arg("texts"));
  module.def("open_activations", &open_activations, nb::arg("paths"));
  nb::class_<RemovalSetting>(module, "RemovalSetting")
      .def(nb::init<>())
      .def_rw("by", &RemovalSetting::by)
      .def_rw("refit", &RemovalSetting::refit)
      .def_rw("seed", &RemovalSetting::seed)
      .def_rw("even", &RemovalSetting::even);
  nb::class_<RemovableLayers>(module, "RemovableLayers")
      .def_prop_ro("heads",
                   [](const RemovableLayers& of) {
                     std::map<int, std::size_t> all;
                     for (const RemovableLayer& one : of.all) all[one.number()] = one.heads();
                     return all;
                   })
      .def(
          "size", [](const RemovableLayers& of, int number) { return of.of(number).shape().e; },
          nb::arg("layer"))
      .def(
          "moment",
          [](const RemovableLayers& of, int number) {
            return matrix_object(of.of(number).moment());
          },
          nb::arg("layer"), nb::sig("def moment(self, layer: int) -> typing.Any"))
      .def(
          "map",
          [](const RemovableLayers& of, int number) { return matrix_object(of.of(number).map()); },
          nb::arg("layer"), nb::sig("def map(self, layer: int) -> typing.Any"))
      .def(
          "mean",
          [](const RemovableLayers& of, int number) -> nb::object {
            if (!of.of(number).has_bias()) return nb::none();
            return matrix_object(of.of(number).moments().mean.transpose());
          },
          nb::arg("layer"), nb::sig("def mean(self, layer: int) -> typing.Any"),
          "The mean of z [1, H e], where the bias takes up what it loses.")
      .def(
          "require",
          [](const RemovableLayers& of, const RemovalSetting& setting) {
            require_removable(of.all, setting);
          },
          nb::arg("setting"))
      .def("order", &order_of, nb::arg("setting"), nb::arg("count"))
      .def("predictions", &predictions_of, nb::arg("order"), nb::arg("refit"))
      .def("without", &maps_without, nb::arg("layer"), nb::arg("heads"), nb::arg("refit"),
           nb::sig("def without(self, layer: int, heads: collections.abc.Sequence[int], refit: "
                   "bool) -> typing.Any"));
  module.def("removable_layers", &start_removable, nb::arg("activations"), nb::arg("layers"),
             nb::arg("threads").none());
  module.def("removal_orders", &removal_orders);
  module.def("write_changed_checkpoint", &write_changes, nb::arg("checkpoint"), nb::arg("out"),
             nb::arg("changes"), nb::arg("record"), nb::arg("overwrite"), nb::arg("cut").none());
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
