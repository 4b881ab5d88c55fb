// SPDX-License-Identifier: Apache-2.0
/// \file What attention layers of a model did on text: queries, keys, values, outputs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <Eigen/Core>

#include "engine/files/array_file.h"
#include "kernels/cpu/attention.h"

namespace headlab {

/// Numbers of tokens, one row each.
using TokenRows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// An array that a layer may have.
struct ActivationArray {
  const char* name;
  std::vector<std::string> axes;
  bool whole;  ///< integers or booleans
  const char* meaning;
};

/// All of them, in the order of files.
const std::vector<ActivationArray>& activation_arrays();

/// One attention layer. A sequence is read when it is asked for; two threads may not do so at once.
class LayerActivations {
 public:
  /// Checks all names, types and shapes. Throws InvalidInput, one line that begins with the file.
  LayerActivations(std::shared_ptr<ArrayFile> file, int number);

  int number() const { return number_; }
  const std::string& source() const { return file_->source(); }
  /// Names of the array as the file has it.
  bool has(const std::string& name) const { return !name_of(name).empty(); }
  const ArrayInfo& info(const std::string& name) const;
  std::vector<double> all(const std::string& name) const;

  std::size_t sequences() const { return sequences_; }
  /// Where there are no q, k and v: heads, T = S and e alone.
  const AttentionShape& shape() const { return shape_; }
  bool has_attention() const { return has("q"); }
  std::size_t d() const { return info("W_O").shape[2]; }
  std::size_t columns() const { return shape_.heads * shape_.e; }  ///< H e
  const AttentionRule& rule() const { return rule_; }
  /// What the model computed with: of q, k and v the shortest floats.
  NumberKind precision() const { return precision_; }
  /// The output maps of the heads [H e][d], read anew. \tparam T float or double
  template <class T = double>
  Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> output_map() const;
  /// Documents in the order of their numbers: that of each sequence [B], counted from 0.
  const std::vector<std::size_t>& document_of() const { return document_of_; }
  std::size_t documents() const { return documents_; }

  /// What attention needs of sequence b. \tparam T float or double
  template <class T>
  AttentionSequence<T> sequence(std::size_t b) const;
  /// The same in the memory of another, with these of its queries alone, ascending, or with all
  /// where there are none of these.
  template <class T>
  void read_sequence(std::size_t b, std::span<const std::uint32_t> queries,
                     AttentionSequence<T>& out) const;
  /// Keys of a sequence that are not padding, ascending.
  std::vector<std::uint32_t> keys(std::size_t b) const;
  /// Queries of a sequence that are not padding, ascending.
  std::vector<std::uint32_t> tokens(std::size_t b) const;
  /// An array [B][T][n] or [B][H][T][n] of a sequence, heads side by side.
  TokenRows rows(const std::string& name, std::size_t b) const;

 private:
  [[noreturn]] void fail(const std::string& name, const std::string& problem) const;
  std::string name_of(const std::string& name) const;
  std::optional<double> number(const std::string& name) const;
  std::string text(const std::string& name) const;
  [[noreturn]] void fail_not_finite(const std::string& name, std::size_t b,
                                    std::size_t position) const;
  template <class T>
  void read_item(const std::string& name, std::size_t b, std::vector<T>& numbers) const;
  std::vector<double> item(const std::string& name, std::size_t b) const;
  std::vector<unsigned char> padding(std::size_t b) const;
  void read_shape();
  void read_rule();
  void read_documents();
  void check_shapes() const;

  std::shared_ptr<ArrayFile> file_;
  int number_;
  AttentionShape shape_;
  AttentionRule rule_;
  NumberKind precision_ = NumberKind::exact;
  std::size_t sequences_ = 0, documents_ = 0;
  std::vector<std::size_t> document_of_;
};

/// Opens files of activations as one. Throws InvalidInput as open_array_files().
std::shared_ptr<ArrayFile> open_activation_files(const std::vector<std::string>& paths);

/// Numbers of the layers of a file, ascending; layer 0 where its arrays have plain names. Throws
/// InvalidInput where an array has a name that none of a layer has.
std::vector<int> layers_of(const ArrayFile& file);

/// Orders of the axes of q, k, v, z and grad_z in files: heads second, or third.
const std::vector<std::string>& activation_layouts();
/// The file with its heads second.
std::shared_ptr<ArrayFile> heads_second(std::shared_ptr<ArrayFile> file, const std::string& layout);

/// Writes all layers of a file as NetCDF, a group layer_L each. Throws RunFailed.
void write_activations(const std::string& path, const std::shared_ptr<ArrayFile>& file);

}  // namespace headlab
