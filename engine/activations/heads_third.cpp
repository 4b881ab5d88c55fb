// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "engine/activations/activations.h"

namespace headlab {
namespace {

/// A file whose arrays by head are [B][T][H][n], as [B][H][T][n].
class HeadsThird : public ArrayFile {
 public:
  explicit HeadsThird(std::shared_ptr<ArrayFile> file)
      : ArrayFile(file->source()), file_(std::move(file)) {
    texts_ = file_->texts();
    arrays_ = file_->arrays();
    for (auto& [name, info] : arrays_) {
      if (is_turned(name)) std::swap(info.shape[1], info.shape[2]);
    }
  }

  std::vector<double> read(const std::string& name, std::uint64_t first,
                           std::uint64_t count) override {
    const std::vector<double> numbers = file_->read(name, first, count);
    if (!is_turned(name)) return numbers;
    const std::vector<std::uint64_t>& shape = file_->arrays().at(name).shape;
    const std::uint64_t tokens = shape[1], heads = shape[2], size = shape[3];
    std::vector<double> out(numbers.size());
    for (std::uint64_t at = 0; at < count * tokens * heads; ++at) {
      const std::uint64_t b = at / (tokens * heads), t = at / heads % tokens, h = at % heads;
      std::copy_n(numbers.begin() + static_cast<std::ptrdiff_t>(at * size), size,
                  out.begin() + static_cast<std::ptrdiff_t>(((b * heads + h) * tokens + t) * size));
    }
    return out;
  }

 private:
  bool is_turned(const std::string& full) const {
    const std::string name = full.substr(full.rfind('.') + 1);
    const bool by_head =
        name == "q" || name == "k" || name == "v" || name == "z" || name == "grad_z";
    return by_head && file_->arrays().at(full).shape.size() == 4;
  }

  std::shared_ptr<ArrayFile> file_;
};

}  // namespace

const std::vector<std::string>& activation_layouts() {
  static const std::vector<std::string> all = {"bhtk", "bthk"};
  return all;
}

std::shared_ptr<ArrayFile> heads_second(std::shared_ptr<ArrayFile> file,
                                        const std::string& layout) {
  if (layout == "bhtk") return file;
  return std::make_shared<HeadsThird>(std::move(file));
}

}  // namespace headlab
