// SPDX-License-Identifier: Apache-2.0
/// \file Strict reader of safetensors, the format that model weights are exchanged in: eight bytes
/// with the length of a JSON header, the header, and the tensors one after the other.
/// Source: the format as documented with the safetensors library of Hugging Face, 2022.
#pragma once

#include <cstdint>
#include <istream>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headlab {

/// One tensor as the header describes it, found consistent with the file.
struct TensorInfo {
  std::string type;                  ///< "F32", "BF16", ...
  std::vector<std::uint64_t> shape;  ///< length of each axis
  std::uint64_t begin = 0;           ///< first byte, counted from the end of the header
  std::uint64_t end = 0;
};

/// Tensors by name.
using TensorTable = std::map<std::string, TensorInfo>;

/// Reads the header of a file whose tensors take `data_bytes`. Throws InvalidInput, one line that
/// begins with `source`, unless the tensors have known types, lengths that fit type and shape, and
/// lie one after another without gap or overlap up to the last byte.
/// \param metadata becomes the texts that the header has besides tensors
TensorTable parse_safetensors_header(std::string_view text, std::uint64_t data_bytes,
                                     const std::string& source,
                                     std::map<std::string, std::string>* metadata = nullptr);

/// F64, F32, F16 or BF16.
bool is_float_tensor(const TensorInfo& tensor);

/// Numbers as bytes of one of these types, rounded to nearest.
std::string tensor_bytes(const std::string& type, std::span<const double> numbers);

/// A checkpoint that is open: the header is read at once, a tensor when it is asked for.
class SafetensorsFile {
 public:
  /// Throws InvalidInput, one line that begins with the path.
  explicit SafetensorsFile(const std::string& path);
  /// The same for bytes from elsewhere, which must be seekable; `source` names them.
  SafetensorsFile(std::unique_ptr<std::istream> bytes, std::string source);

  const std::string& source() const { return source_; }
  const TensorTable& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  /// Where in the file the tensors begin.
  std::uint64_t data() const { return data_; }

  /// The numbers of a tensor [product of its shape], the last axis varies fastest. Throws
  /// InvalidInput where its type is not F64, F32, F16 or BF16, where a number is not finite, and
  /// where the file ends early.
  std::vector<double> read(const std::string& name);
  /// Those from number `first` on, integers and booleans too. \tparam T float or double
  template <class T>
  void read_part(const std::string& name, std::uint64_t first, std::span<T> to);

 private:
  void read_header();

  std::unique_ptr<std::istream> bytes_;
  std::string source_;
  std::uint64_t data_ = 0;  ///< where the tensors begin
  TensorTable tensors_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace headlab
