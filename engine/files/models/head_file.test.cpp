// SPDX-License-Identifier: Apache-2.0
#include "engine/files/models/head_file.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <string>

#include <Eigen/Dense>
#include <gtest/gtest.h>
#include <netcdf.h>

#include "engine/files/input_file.h"
#include "engine/files/netcdf/file.h"
#include "engine/files/npy_file.h"
#include "engine/scenario/scenario.h"
#include "engine/scenario/subspaces.h"
#include "engine/scenario/world.h"
#include "engine/testing/folder_test.h"
#include "kernels/plan.h"

namespace headlab {
namespace {

using Eigen::MatrixXd;

class HeadFiles : public FolderTest {
 protected:
  std::string read_refusal(const std::string& name, std::optional<int> layer = {}) const {
    return refusal_here([&] { read_head_file(at(name), layer); });
  }
  /// Writes a.nc with what `fill` puts there and reads it.
  std::string netcdf_refusal(const std::function<void(const NetcdfGroup&)>& fill,
                             std::optional<int> layer = {}) const {
    NetcdfImage image;
    const NetcdfGroup root = image.root();
    for (const auto& [name, length] : {std::pair("layer", 2),
                                       {"head", 2},
                                       {"d", 3},
                                       {"k", 1},
                                       {"other", 5},
                                       {"x", 1},
                                       {"y", 3}}) {
      root.define_dimension(name, static_cast<std::size_t>(length));
    }
    fill(root);
    image.save(at("a.nc"));
    return read_refusal("a.nc", layer);
  }
};

const std::vector<std::string> axes = {"layer", "head", "d", "k"};

/// Layers 3 and 4 of two heads, d = 3, k = 2.
HeadFile example() {
  HeadFile file;
  file.temperature = 1.5;
  file.rotary = true;
  file.architecture = "llama";
  for (int n = 3; n < 5; ++n) {
    HeadLayer& layer = file.layers.emplace_back();
    layer.number = n;
    for (int h = 0; h < 2; ++h) {
      MatrixXd w(3, 2);
      w << 1, n, 0.1, h, -2, 5;
      layer.subspaces.push_back(w);
      layer.w_q.push_back(2 * w);
      layer.w_k.push_back(3 * w);
    }
  }
  return file;
}

TEST_F(HeadFiles, NetcdfComesBackAsItWasWritten) {
  const HeadFile file = example();
  write_head_file(at("h.nc"), file);
  const HeadFile back = read_head_file(at("h.nc"));
  EXPECT_EQ(back.temperature, 1.5);
  EXPECT_TRUE(back.rotary);
  EXPECT_EQ(back.architecture, "llama");
  ASSERT_EQ(back.layers.size(), 2u);
  for (std::size_t n = 0; n < 2; ++n) {
    EXPECT_EQ(back.layers[n].number, static_cast<int>(n) + 3);
    EXPECT_EQ(back.layers[n].subspaces, file.layers[n].subspaces);
    EXPECT_EQ(back.layers[n].w_q, file.layers[n].w_q);
    EXPECT_EQ(back.layers[n].w_k, file.layers[n].w_k);
  }
  const HeadFile one = read_head_file(at("h.nc"), 4);
  ASSERT_EQ(one.layers.size(), 1u);
  EXPECT_EQ(one.layers[0].w_k, file.layers[1].w_k);
  EXPECT_EQ(read_head_layer(at("h.nc"), 3).subspaces, file.layers[0].subspaces);
  EXPECT_TRUE(read_head_layer(at("h.nc"), 3).w_q.empty());
  EXPECT_EQ(refusal_here([&] { read_head_layer(at("h.nc"), {}); }),
            "h.nc: holds 2 layers - choose one with layer = 3");
  EXPECT_EQ(read_refusal("h.nc", 5), "h.nc: has no layer 5 (its layers: 3 to 4)");
  HeadFile single = file;
  single.layers.pop_back();
  write_head_file(at("one.nc"), single);
  EXPECT_EQ(read_refusal("one.nc", 0), "one.nc: has no layer 0 (its only layer is 3)");
}

TEST_F(HeadFiles, NpyHoldsOneLayer) {
  HeadFile file = example();
  file.layers.pop_back();
  write_head_file(at("h.npy"), file);
  const HeadFile back = read_head_file(at("h.npy"));
  EXPECT_EQ(back.layers.at(0).subspaces, file.layers[0].subspaces);
  EXPECT_EQ(back.layers[0].number, 0);
  EXPECT_FALSE(back.temperature);
  EXPECT_EQ(read_refusal("h.npy", 1),
            "h.npy: holds one layer, layer 0, and not layer 1 - an NPY file has no others");
}

TEST_F(HeadFiles, AFileOfAnotherProgramNeedsSubspacesAlone) {
  EXPECT_EQ(netcdf_refusal([](const NetcdfGroup& root) {
              root.write("subspaces", axes, {}, std::vector<double>(12, 0.5));
            }),
            "accepted");
  const HeadFile file = read_head_file(at("a.nc"));
  EXPECT_EQ(file.layers.size(), 2u);
  EXPECT_EQ(file.layers[1].number, 1);
  EXPECT_TRUE(file.layers[1].w_q.empty());
}

/// Three layers of two heads, d = 4, k = 1: number 100 l + 10 h + i.
HeadFile in_order(const std::string& path, const std::vector<std::string>& names) {
  const std::map<std::string, std::size_t> lengths = {
      {"layer", 3}, {"head", 2}, {"d", 4}, {"k", 1}};
  NetcdfImage image;
  std::vector<double> numbers;
  std::map<std::string, std::size_t> at;
  for (const std::string& name : names) image.root().define_dimension(name, lengths.at(name));
  const std::function<void(std::size_t)> add = [&](std::size_t axis) {
    if (axis == names.size()) {
      return numbers.push_back(static_cast<double>(100 * at["layer"] + 10 * at["head"] + at["d"]));
    }
    for (at[names[axis]] = 0; at[names[axis]] < lengths.at(names[axis]); ++at[names[axis]]) {
      add(axis + 1);
    }
  };
  add(0);
  image.root().write("subspaces", names, {}, numbers);
  image.root().write("rank",
                     {names[0] == "head" ? "head" : "layer", names[0] == "head" ? "layer" : "head"},
                     {}, std::vector<std::int64_t>(6, 1));
  image.save(path);
  return read_head_file(path);
}

TEST_F(HeadFiles, DimensionsGoByTheirNames) {
  std::vector<std::string> names = {"d", "head", "k", "layer"};
  do {
    const HeadFile file = in_order(at("h.nc"), names);
    ASSERT_EQ(file.layers.size(), 3u);
    for (int l = 0; l < 3; ++l) {
      for (int h = 0; h < 2; ++h) {
        const Eigen::VectorXd wanted =
            Eigen::VectorXd::LinSpaced(4, 0, 3).array() + 100 * l + 10 * h;
        EXPECT_EQ(
            file.layers[static_cast<std::size_t>(l)].subspaces.at(static_cast<std::size_t>(h)),
            wanted);
      }
    }
  } while (std::ranges::next_permutation(names).found);
  const auto refused = [&](const std::vector<std::string>& dimensions) {
    return netcdf_refusal([&](const NetcdfGroup& root) {
      root.write("subspaces", dimensions, {}, std::vector<double>(12, 0.5));
    });
  };
  EXPECT_EQ(
      refused({"head", "layer", "y", "k"}),
      "a.nc: variable subspaces has dimensions head, layer, y, k, needs layer, head, d, k, in "
      "any order");
  EXPECT_EQ(
      refused({"y", "head", "layer", "x"}),
      "a.nc: variable subspaces has dimensions y, head, layer, x, needs layer, head, d, k, in "
      "any order");
  EXPECT_EQ(refused({"layer", "head", "y", "x"}), "accepted");
}

TEST_F(HeadFiles, CoordinatesAreWholeAndUnique) {
  const auto refused = [&](const std::string& name, const std::vector<double>& numbers) {
    return netcdf_refusal([&](const NetcdfGroup& root) {
      root.write("subspaces", axes, {}, std::vector<double>(12, 0.5));
      root.write(name, {name}, {}, numbers);
    });
  };
  EXPECT_EQ(refused("layer", {7, 3}), "accepted");
  EXPECT_EQ(refused("layer", {0.5, 1}),
            "a.nc: layer: has a number that is not whole, or is missing");
  EXPECT_EQ(refused("layer", {0, std::nan("")}),
            "a.nc: layer: has a number that is not whole, or is missing");
  EXPECT_EQ(refused("layer", {3, 3}), "a.nc: variable layer has a number twice");
  EXPECT_EQ(refused("head", {0, 1}), "accepted");
  EXPECT_EQ(refused("head", {1, 0}),
            "a.nc: variable head has 1 at place 0, needs 0, 1, .. in this order - sort by it, or "
            "leave it out");
  EXPECT_EQ(refused("d", {0, 1, 1}), "a.nc: variable d has a number twice");
}

TEST_F(HeadFiles, RefusesDamagedNetcdf) {
  const std::vector<double> twelve(12, 0.5);
  const auto with = [&](const std::function<void(const NetcdfGroup&)>& more) {
    return netcdf_refusal([&](const NetcdfGroup& root) {
      root.write("subspaces", axes, {}, twelve);
      more(root);
    });
  };
  EXPECT_EQ(netcdf_refusal([](const NetcdfGroup&) {}),
            "a.nc: has no variable subspaces [layer, head, d, k] - headlab import-heads makes such "
            "a file");
  EXPECT_TRUE(
      netcdf_refusal([&](const NetcdfGroup& root) {
        root.write("subspaces", {"head", "d", "k"}, {}, std::vector<double>(6, 0.5));
      }).starts_with("a.nc: variable subspaces is 2 x 3 x 1, which is not a shape of 4 axes"));
  EXPECT_EQ(
      netcdf_refusal([&](const NetcdfGroup& root) {
        root.write("subspaces", {"layer", "head", "x", "y"}, {}, twelve);
      }),
      "a.nc: has subspaces of shape 2 x 1 x 3 (allowed: H x d x k with H from 1 to 1024, d at "
      "most 65536, k from 1 to d) - are the last two axes swapped?");
  EXPECT_EQ(netcdf_refusal([&](const NetcdfGroup& root) {
              root.write("subspaces", axes, {}, std::vector<std::string>(12, "x"));
            }),
            "a.nc: subspaces: is not a number");
  EXPECT_EQ(
      netcdf_refusal([&](const NetcdfGroup& root) { root.define_doubles("subspaces", axes, {}); }),
      "a.nc: variable subspaces has a number that is not finite in head 0 of place 0 along "
      "layer");
  EXPECT_EQ(with([](const NetcdfGroup& root) {
              root.write("layer", {"other"}, {}, std::vector<std::int64_t>(5, 1));
            }),
            "a.nc: variable layer does not fit subspaces");
  EXPECT_EQ(with([](const NetcdfGroup& root) {
              root.write("layer", {"layer"}, {}, std::vector<std::int64_t>{0, -1});
            }),
            "a.nc: variable layer has -1, needs the number of a layer");
  EXPECT_EQ(with([&](const NetcdfGroup& root) { root.write("w_q", axes, {}, twelve); }),
            "a.nc: has one of w_q and w_k only");
  EXPECT_EQ(with([&](const NetcdfGroup& root) {
              root.write("w_q", {"head", "layer", "d", "k"}, {}, twelve);
              root.write("w_k", {"layer", "head", "x", "y"}, {}, twelve);
            }),
            "a.nc: variable w_k has another shape than subspaces");
  for (const double t : {0.0, -1.0, 0.0 / 0.0}) {
    EXPECT_EQ(with([&](const NetcdfGroup& root) {
                root.write("temperature", {}, {}, std::vector<double>{t});
              }),
              "a.nc: variable temperature must be one number in [1e-100, 1e100]");
  }
  EXPECT_EQ(with([&](const NetcdfGroup& root) {
              root.write("temperature", {"layer"}, {}, std::vector<double>{1, 2});
            }),
            "a.nc: variable temperature must be one number in [1e-100, 1e100]");
  // As many numbers as no file of this size holds, all of them left out.
  int file = -1, variable = -1;
  std::vector<int> dimensions;
  ASSERT_EQ(nc_create(at("huge.nc").c_str(), NC_NETCDF4, &file), NC_NOERR);
  for (const auto& name : axes) {
    nc_def_dim(file, name.c_str(), 1000, &dimensions.emplace_back());
  }
  nc_def_var(file, "subspaces", NC_DOUBLE, 4, dimensions.data(), &variable);
  ASSERT_EQ(nc_close(file), NC_NOERR);
  EXPECT_TRUE(read_refusal("huge.nc").starts_with(
      "huge.nc: is damaged: variable /subspaces: has more values than a "
      "file of "))
      << read_refusal("huge.nc");
}

TEST_F(HeadFiles, HeadsThatAnotherProgramChangedAreReadWithoutTheListOfSums) {
  const auto edit = [&](const std::function<int(int)>& change) {
    int root = -1;
    ASSERT_EQ(nc_open(at("heads.nc").c_str(), NC_WRITE, &root), NC_NOERR);
    EXPECT_EQ(change(root), NC_NOERR);
    ASSERT_EQ(nc_close(root), NC_NOERR);
  };
  const std::string advice =
      " - if another program changed it on purpose, leave out its attribute `sums`";
  write_head_file(at("heads.nc"), example());
  std::string bytes = read_file(at("heads.nc"), 1 << 20);
  edit([](int root) {
    int variable = -1;
    const std::size_t first[] = {0, 0, 0, 0};
    const double number = 7;
    if (const int bad = nc_inq_varid(root, "w_q", &variable)) return bad;
    return nc_put_var1_double(root, variable, first, &number);
  });
  EXPECT_EQ(read_refusal("heads.nc"),
            "heads.nc: is damaged: variable /w_q has another sum" + advice);
  edit([](int root) { return nc_del_att(root, NC_GLOBAL, "sums"); });
  EXPECT_EQ(read_head_file(at("heads.nc")).layers[0].w_q[0](0, 0), 7);
  // A sum behind the bytes is of headlab: they changed by themselves.
  bytes[bytes.size() / 2] ^= 1;
  std::ofstream(at("bad.nc"), std::ios::binary) << bytes;
  EXPECT_EQ(read_refusal("bad.nc"), "bad.nc: is damaged: its bytes have another sum");
}

TEST_F(HeadFiles, RefusesOtherFiles) {
  const auto write = [&](const char* name, const std::string& bytes) {
    std::ofstream(at(name), std::ios::binary) << bytes;
  };
  write("b.npy", "1,2\n");
  write("e.nc", "\x89HDF\r\n\x1a\n and then nothing that belongs there");
  write("f.nc", "");
  const std::string advice = " - headlab import-heads makes heads.nc from a model";
  EXPECT_EQ(read_refusal("b.npy"), "b.npy: is not an NPY file: it begins with other bytes");
  EXPECT_TRUE(read_refusal("e.nc").starts_with("e.nc: ")) << read_refusal("e.nc");
  EXPECT_EQ(read_refusal("f.nc"),
            "f.nc: is neither NPY nor NetCDF: it begins with other bytes" + advice);
}

// The law of subspaces
// -----------------------------------------------------------------------------

const std::string scenario_text = World{.n = "5",
                                        .design = "{ law = 'normal', dim = 3 }",
                                        .noise = "{ law = 'normal', sd = 0.5 }",
                                        .heads =
                                            "count = 2\ndim = 2\nsubspaces = { law = 'file', path "
                                            "= 'h.nc', layer = 4, orthonormalise = true }",
                                        .kernel = "{ law = 'gaussian', bandwidth = 0.5 }",
                                        .points = "[[0, 0, 0]]",
                                        .run = "replicates = 10"}
                                      .text();

TEST_F(HeadFiles, AreALawOfSubspaces) {
  HeadFile file = example();
  write_head_file(at("h.nc"), file);
  const Scenario scenario = parse_scenario(scenario_text, "s.toml", {}, folder_.string());
  const auto subspaces = subspace_bases(scenario.conditions.at(0));
  ASSERT_EQ(subspaces.size(), 2u);
  for (std::size_t h = 0; h < 2; ++h) {
    // Orthonormal, with the span of the matrix in the file: the first column keeps its direction.
    EXPECT_LE(
        (subspaces[h].transpose() * subspaces[h] - MatrixXd::Identity(2, 2)).cwiseAbs().maxCoeff(),
        1e-15);
    const MatrixXd& w = file.layers[1].subspaces[h];
    EXPECT_LE((subspaces[h] * subspaces[h].transpose() * w - w).cwiseAbs().maxCoeff(), 1e-14);
    EXPECT_LE((subspaces[h].col(0) - w.col(0).normalized()).cwiseAbs().maxCoeff(), 1e-15);
    EXPECT_GT((subspaces[h].col(1) - file.layers[0].subspaces[h].col(1).normalized()).norm(), 1e-3);
  }
  EXPECT_EQ(make_plan(scenario.conditions[0]).projections.size(), 12u);

  // Orthonormal ones need no more, and are taken to the bit; a sweep may go over layers.
  for (HeadLayer& layer : file.layers) layer.subspaces = subspaces;
  file.layers[0].subspaces[0].col(0) *= -1;
  write_head_file(at("o.nc"), file);
  const Scenario swept = parse_scenario(
      scenario_text, "s.toml",
      {R"(heads.subspaces={law="file", path="o.nc"})", R"(sweep={"heads.subspaces.layer"=[3, 4]})"},
      folder_.string());
  ASSERT_EQ(swept.conditions.size(), 2u);
  EXPECT_EQ(subspace_bases(swept.conditions[0])[0], file.layers[0].subspaces[0]);
  EXPECT_EQ(subspace_bases(swept.conditions[1])[0], subspaces[0]);
}

TEST_F(HeadFiles, AreRefusedAtTheirKeyInTheScenario) {
  HeadFile file = example();
  write_head_file(at("h.nc"), file);
  file.layers.pop_back();
  file.layers[0].subspaces[1].col(1) = 2 * file.layers[0].subspaces[1].col(0);
  write_head_file(at("rank.npy"), file);
  const auto with = [&](const std::string& set) {
    return refusal_here([&] {
      parse_scenario(scenario_text, "s.toml", {"heads.subspaces" + set}, folder_.string());
    });
  };
  const std::string set = "--set heads.subspaces";
  const auto at = [&](const std::string& what, const std::string& key) {
    return set + what + ": heads.subspaces" + key + ": ";
  };
  ASSERT_EQ(with(".layer=3"), "accepted");
  EXPECT_EQ(with(".layer=5"),
            "s.toml:11:36: heads.subspaces.path: h.nc: has no layer 5 (its layers: 3 to 4)");
  EXPECT_EQ(with(".layer=-1"), at(".layer=-1", ".layer") + "is -1, must be in [0, 1000000]");
  EXPECT_EQ(with(R"(={law="file", path="h.nc"})"),
            at(R"(={law="file", path="h.nc"})", ".path") +
                "h.nc: holds 2 layers - choose one with layer = 3");
  EXPECT_EQ(with(R"(={law="file"})"),
            at(R"(={law="file"})", ".path") +
                "is missing - NPY or NetCDF, relative to the scenario file");
  EXPECT_EQ(with(R"(.path="")"), at(R"(.path="")", ".path") + "is empty");
  EXPECT_EQ(with(R"(.path="nowhere.npy")"),
            at(R"(.path="nowhere.npy")", ".path") +
                "nowhere.npy: cannot be opened: No such file or directory");
  EXPECT_EQ(with(".orthonormalise=false"),
            "s.toml:11:36: heads.subspaces.path: file: matrix of head 0 has columns that are off "
            "orthonormal by 40 (allowed: 1e-10) - set orthonormalise = true");
  EXPECT_EQ(with(R"(={law="file", path="rank.npy", orthonormalise=true})"),
            at(R"(={law="file", path="rank.npy", orthonormalise=true})", ".path") +
                "file: matrix of head 1 has rank below k: column 2 depends on those before it");
  EXPECT_EQ(refusal_here([&] {
              parse_scenario(scenario_text, "s.toml", {"heads.count=3"}, folder_.string());
            }),
            "s.toml:11:36: heads.subspaces.path: file: has 2 matrices, needs 3, one for each "
            "head");
}

}  // namespace
}  // namespace headlab
