// SPDX-License-Identifier: Apache-2.0
/// \file Heads of a trained model, measured on text: `headlab heads`.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/files/array_file.h"
#include "engine/files/fields.h"
#include "engine/files/netcdf/file.h"
#include "engine/files/provenance.h"
#include "validation/heads/head_figures.h"
#include "validation/heads/identity.h"

namespace headlab {

/// Heads of a layer that one sentence is about, and the figure of all of them together.
struct NamedHeads {
  std::vector<std::size_t> heads;
  double together = 0;
};

struct MeasuredLayer {
  int number = 0;
  AttentionShape shape;
  std::size_t d = 0, sequences = 0, documents = 0, tokens = 0, blind = 0;
  double largest_document = 0;  ///< share of the tokens
  Identity identity;
  std::string no_refit;  ///< why there is none, or empty
  std::vector<HeadFigure> figures;
  NamedHeads little;    ///< that write little, with the share of the stream of their sum
  NamedHeads refitted;  ///< that the others can write, with the share that remains without them

  const HeadFigure* find(const std::string& name) const;

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("layer", number, "number of the layer");
    visit("heads", shape.heads, "heads H");
    visit("groups", shape.groups, "groups of heads that share keys and values");
    visit("value_dim", shape.e, "dimension of a head's values");
    visit("d", d, "dimension of the residual stream");
    visit("sequences", sequences, "sequences");
    visit("documents", documents, "documents");
    visit("tokens", tokens, "tokens that count");
    visit("queries_without_keys", blind, "queries that see no key, which are left out");
    visit("largest_document", largest_document, "share of the tokens that one document has");
    visit("identity", identity, "distance to what the model gave");
    for (const HeadFigure& figure : figures) {
      const char* const axes = figure.of == FigureOf::pair ? "head head_2" : "head";
      const std::size_t size = shape.heads;
      const auto put = [&](const std::string& name, const std::vector<double>& values) {
        if (figure.of == FigureOf::layer) {
          visit(name.c_str(), values[0], figure.meaning.c_str());
        } else {
          const std::vector<std::size_t> lengths(figure.of == FigureOf::pair ? 2 : 1, size);
          visit(name.c_str(), shaped(values, lengths), figure.meaning.c_str(), {.axes = axes});
        }
      };
      put(figure.name, figure.values);
      if (!figure.errors.empty()) put(figure.name + "_se", figure.errors);
    }
  }
};

struct MeasuredHeads {
  std::string source;
  HeadSetting setting;
  std::vector<MeasuredLayer> layers;
};

/// The layers of a file, or one alone. Throws InvalidInput where the file lacks it.
std::vector<int> layer_numbers(const ArrayFile& file, std::optional<int> layer);

/// \param layer one alone; the figures do not depend on `threads`
/// \param stop  true: throw Stopped; asked for each sequence
/// Throws InvalidInput, one line that begins with the file.
MeasuredHeads measure_heads(const std::shared_ptr<ArrayFile>& file, std::optional<int> layer,
                            const HeadSetting& setting, int threads,
                            const std::function<bool()>& stop = {});

/// What may be said of them, a sentence each; and what has to be said with the figures.
std::vector<std::string> words_of(const MeasuredHeads& heads);

/// The result as JSON.
std::string measured_heads_json(const MeasuredHeads& heads, const Provenance& program);

/// The result as NetCDF: figures along layer, head and head_2, standard errors with `_se`.
void put_measured_heads(const NetcdfGroup& root, const MeasuredHeads& heads,
                        const Provenance& program);

}  // namespace headlab
