// SPDX-License-Identifier: Apache-2.0
/// \file Checkpoints small enough to compute by hand, in the true format, for tests.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace headlab {

/// Tensors of a checkpoint under construction; they are written as float32.
struct SmallCheckpoint {
  struct Tensor {
    std::vector<std::size_t> shape;
    std::vector<float> numbers;
  };
  std::map<std::string, Tensor> tensors;

  /// Adds a tensor of numbers in (-1, 1), or with `gain` in (0.5, 1.5), that depend on `salt`
  /// alone.
  Tensor& add(const std::string& name, const std::vector<std::size_t>& shape, std::uint32_t salt,
              bool gain = false) {
    Tensor& tensor = tensors[name];
    tensor.shape = shape;
    std::size_t count = 1;
    for (const std::size_t length : shape) count *= length;
    std::uint32_t state = 2654435761u * (salt + 1);
    for (std::size_t i = 0; i < count; ++i) {
      state = 1664525u * state + 1013904223u;
      const float number = static_cast<float>(state >> 8) * 0x1p-24f;
      tensor.numbers.push_back(gain ? 0.5f + number : 2 * number - 1);
    }
    return tensor;
  }

  float at(const std::string& name, std::size_t i) const { return tensors.at(name).numbers.at(i); }

  /// The bytes of the file.
  std::string bytes() const {
    std::string header = R"({"__metadata__":{"format":"pt"})";
    std::string data;
    for (const auto& [name, tensor] : tensors) {
      std::string shape;
      for (const std::size_t length : tensor.shape) {
        shape += (shape.empty() ? "" : ",") + std::to_string(length);
      }
      const std::size_t begin = data.size();
      data.append(reinterpret_cast<const char*>(tensor.numbers.data()),
                  tensor.numbers.size() * sizeof(float));
      header += ",\"" + name + R"(":{"dtype":"F32","shape":[)" + shape + R"(],"data_offsets":[)" +
                std::to_string(begin) + "," + std::to_string(data.size()) + "]}";
    }
    header += "}";
    const auto length = std::bit_cast<std::array<char, 8>>(std::uint64_t{header.size()});
    return std::string(length.data(), length.size()) + header + data;
  }
};

/// Two layers, d = 12, 3 heads of k = 4, under BERT's names.
inline SmallCheckpoint small_bert(const std::string& prefix = "bert.",
                                  const std::string& gain = "weight") {
  SmallCheckpoint c;
  c.add(prefix + "embeddings.LayerNorm." + gain, {12}, 1, true);
  for (std::uint32_t n = 0; n < 2; ++n) {
    const std::string layer = prefix + "encoder.layer." + std::to_string(n);
    c.add(layer + ".attention.self.query.weight", {12, 12}, 10 * n + 2);
    c.add(layer + ".attention.self.key.weight", {12, 12}, 10 * n + 3);
    c.add(layer + ".attention.self.key.bias", {12}, 10 * n + 4);
    c.add(layer + ".output.LayerNorm." + gain, {12}, 10 * n + 5, true);
  }
  return c;
}

/// Two layers, d = 12, 3 heads of k = 4, under GPT-2's names.
inline SmallCheckpoint small_gpt2(const std::string& prefix = "transformer.") {
  SmallCheckpoint c;
  for (std::uint32_t n = 0; n < 2; ++n) {
    const std::string layer = prefix + "h." + std::to_string(n);
    c.add(layer + ".attn.c_attn.weight", {12, 36}, 10 * n + 102);
    c.add(layer + ".ln_1.weight", {12}, 10 * n + 103, true);
  }
  return c;
}

/// Two layers, d = 12, 6 heads of k = 2 in 3 groups that share keys, under Llama's names.
inline SmallCheckpoint small_llama() {
  SmallCheckpoint c;
  for (std::uint32_t n = 0; n < 2; ++n) {
    const std::string layer = "model.layers." + std::to_string(n);
    c.add(layer + ".self_attn.q_proj.weight", {12, 12}, 10 * n + 202);
    c.add(layer + ".self_attn.k_proj.weight", {6, 12}, 10 * n + 203);
    c.add(layer + ".input_layernorm.weight", {12}, 10 * n + 204, true);
  }
  return c;
}

}  // namespace headlab
