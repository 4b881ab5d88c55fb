// SPDX-License-Identifier: Apache-2.0
#include "engine/files/models/head_file.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <set>
#include <span>
#include <string_view>

#include "engine/files/atomic_file.h"
#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/files/input_file.h"
#include "engine/files/netcdf/axes.h"
#include "engine/files/netcdf/file.h"
#include "engine/files/netcdf/sums.h"
#include "engine/files/npy_file.h"
#include "engine/files/provenance.h"

namespace headlab {

namespace {

constexpr std::size_t max_npy_bytes = std::size_t{4} << 30;
constexpr std::int64_t format_version = 1;
/// Numbers may be stored shorter than they are held, and packed: but not by more than this.
constexpr std::uint64_t max_expansion = 16;
constexpr std::uint64_t max_heads = 1024;
constexpr std::uint64_t max_dimensions = 1 << 16;

using Shape = std::vector<std::size_t>;

/// [H][d][k], row by row, as H matrices.
Matrices matrices_of(std::span<const double> numbers, std::size_t heads, std::size_t d,
                     std::size_t k) {
  using ByRows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  Matrices matrices;
  for (std::size_t h = 0; h < heads; ++h) {
    matrices.emplace_back(Eigen::Map<const ByRows>(
        numbers.data() + h * d * k, static_cast<Eigen::Index>(d), static_cast<Eigen::Index>(k)));
  }
  return matrices;
}

void append(std::vector<double>& numbers, const Eigen::MatrixXd& matrix) {
  for (Eigen::Index i = 0; i < matrix.rows(); ++i) {
    for (Eigen::Index j = 0; j < matrix.cols(); ++j) numbers.push_back(matrix(i, j));
  }
}

void check_sizes(const std::string& path, std::uint64_t heads, std::uint64_t d, std::uint64_t k) {
  if (heads < 1 || heads > max_heads || d > max_dimensions || k < 1 || k > d) {
    reject({path}, "",
           "has subspaces of shape " + shape_text({heads, d, k}) +
               " (allowed: H x d x k with H from 1 to 1024, d at most 65536, k from 1 to d)" +
               (d >= 1 && k > d ? " - are the last two axes swapped?" : ""));
  }
}

HeadFile read_npy(const std::string& path, std::optional<int> layer) {
  const NpyArray array = parse_npy_array(read_file(path, max_npy_bytes), path, 3, 3);
  check_sizes(path, array.shape[0], array.shape[1], array.shape[2]);
  if (layer.value_or(0) != 0) {
    reject({path}, "",
           "holds one layer, layer 0, and not layer " + std::to_string(*layer) +
               " - an NPY file has no others");
  }
  HeadFile file;
  file.layers.emplace_back().subspaces =
      matrices_of(array.values, array.shape[0], array.shape[1], array.shape[2]);
  return file;
}

/// Reads what write_netcdf() wrote, or another program under the same names.
class NetcdfReader {
 public:
  explicit NetcdfReader(const std::string& path)
      : path_(path), bytes_(std::filesystem::file_size(path)), input_(path) {}

  HeadFile read(std::optional<int> layer, bool subspaces_alone) {
    root_ = input_.root();
    if (!root_.has_variable("subspaces"))
      fail(
          "has no variable subspaces [layer, head, d, k] - headlab import-heads makes such a file");
    for (const std::string& axis : axes_) check_coordinate(root_, axis, axis != axes_[0]);
    shape_ = checked_shape("subspaces", axes_);
    check_sizes(path_, shape_[1], shape_[2], shape_[3]);
    HeadFile file;
    file.model_heads = static_cast<int>(shape_[1]);
    read_ranks();
    for (const auto& [at, number] : chosen(layer)) {
      file.layers.push_back(read_layer(at, number, subspaces_alone));
    }
    if (root_.has_variable("temperature")) file.temperature = temperature();
    file.rotary = text("positions") == "rotary";
    file.architecture = text("architecture");
    file.origin = text("checkpoint");
    file.kv_heads = kv_heads();
    file.left_out = text("left_out");
    file.constant_coordinate = root_.has_attribute("constant_coordinate");
    return file;
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const { reject({path_}, "", problem); }

  std::string text(const char* name) const {
    return root_.has_attribute(name) ? root_.text_attribute(name) : "";
  }

  /// The attribute `kv_heads`; 0 where the file does not say.
  int kv_heads() const {
    if (!root_.has_attribute("kv_heads")) return 0;
    const std::int64_t groups = root_.integer_attribute("kv_heads");
    const auto heads = static_cast<std::int64_t>(shape_[1]);
    if (groups != 0 && (groups < 1 || heads % groups != 0)) {
      fail("attribute kv_heads is " + std::to_string(groups) + ", which does not divide the " +
           std::to_string(heads) + " heads into groups");
    }
    return static_cast<int>(groups);
  }

  /// The shape of a variable that the file can hold.
  Shape checked_shape(const std::string& name, const std::vector<std::string>& axes) const {
    const Shape shape = NetcdfArray(root_, name, axes).shape();
    const std::size_t rank = axes.size();
    std::uint64_t bytes = sizeof(double);
    bool fits = shape.size() == rank;
    for (const std::size_t length : shape) {
      fits = fits && length > 0 && !__builtin_mul_overflow(bytes, length, &bytes);
    }
    if (!fits || bytes / max_expansion > bytes_) {
      fail("variable " + name + " is " + shape_text({shape.begin(), shape.end()}) +
           ", which is not a shape of " + std::to_string(rank) + " axes that a file of " +
           std::to_string(bytes_) + " bytes can hold");
    }
    return shape;
  }

  double temperature() const {
    checked_shape("temperature", root_.dimensions("temperature").size() == 1
                                     ? root_.dimensions("temperature")
                                     : std::vector<std::string>());
    const std::vector<double> values = root_.doubles("temperature");
    if (values.size() != 1 || !(values[0] >= 1e-100 && values[0] <= 1e100)) {
      fail("variable temperature must be one number in [1e-100, 1e100]");
    }
    return values[0];
  }

  /// Places and numbers of the layers to read.
  std::vector<std::pair<std::size_t, int>> chosen(std::optional<int> layer) const {
    std::vector<std::int64_t> numbers;
    if (root_.has_variable("layer")) {
      if (root_.shape("layer") != Shape{shape_[0]}) fail("variable layer does not fit subspaces");
      numbers = root_.integers("layer");
      if (std::set(numbers.begin(), numbers.end()).size() < numbers.size()) {
        fail("variable layer has a number twice");
      }
    } else {
      for (std::size_t i = 0; i < shape_[0]; ++i) numbers.push_back(static_cast<std::int64_t>(i));
    }
    std::vector<std::pair<std::size_t, int>> all;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (numbers[i] < 0 || numbers[i] > std::numeric_limits<int>::max()) {
        fail("variable layer has " + std::to_string(numbers[i]) + ", needs the number of a layer");
      }
      if (!layer || *layer == numbers[i]) all.emplace_back(i, static_cast<int>(numbers[i]));
    }
    if (all.empty()) {
      const auto [least, most] = std::ranges::minmax(numbers);
      fail("has no layer " + std::to_string(*layer) +
           (least == most ? " (its only layer is " : " (its layers: ") + std::to_string(least) +
           (least == most ? "" : " to " + std::to_string(most)) + ")");
    }
    return all;
  }

  void read_ranks() {
    if (!root_.has_variable("rank")) return;
    const NetcdfArray rank(root_, "rank", {axes_[0], axes_[1]});
    if (rank.shape() != Shape{shape_[0], shape_[1]}) fail("variable rank does not fit subspaces");
    ranks_ = rank.integers();
  }

  /// Heads of a layer that have a subspace.
  std::vector<std::size_t> present(std::size_t at) const {
    std::vector<std::size_t> heads;
    for (std::size_t h = 0; h < shape_[1]; ++h) {
      const bool full =
          ranks_.empty() || ranks_[at * shape_[1] + h] >= static_cast<std::int64_t>(shape_[3]);
      if (full) heads.push_back(h);
    }
    return heads;
  }

  Matrices matrices(const std::string& name, std::size_t at) const {
    if (checked_shape(name, axes_) != shape_)
      fail("variable " + name + " has another shape than subspaces");
    const std::vector<double> numbers =
        NetcdfArray(root_, name, axes_)
            .doubles({{at, 0, 0, 0}, {1, shape_[1], shape_[2], shape_[3]}});
    const std::size_t size = shape_[2] * shape_[3];
    Matrices found;
    for (const std::size_t head : present(at)) {
      const std::span<const double> own = std::span(numbers).subspan(head * size, size);
      if (!std::ranges::all_of(own, [](double x) { return std::isfinite(x); })) {
        fail("variable " + name + " has a number that is not finite in head " +
             std::to_string(head) + " of place " + std::to_string(at) + " along layer");
      }
      found.push_back(matrices_of(own, 1, shape_[2], shape_[3])[0]);
    }
    return found;
  }

  HeadLayer read_layer(std::size_t at, int number, bool subspaces_alone) const {
    HeadLayer layer;
    layer.number = number;
    const std::vector<std::size_t> heads = present(at);
    if (heads.empty()) fail("has no head of full rank in layer " + std::to_string(number));
    if (heads.size() < shape_[1]) layer.heads.assign(heads.begin(), heads.end());
    layer.subspaces = matrices("subspaces", at);
    if (subspaces_alone) return layer;
    if (root_.has_variable("w_q") != root_.has_variable("w_k")) fail("has one of w_q and w_k only");
    if (root_.has_variable("w_q")) {
      layer.w_q = matrices("w_q", at);
      layer.w_k = matrices("w_k", at);
    }
    return layer;
  }

  const std::string path_;
  const std::vector<std::string> axes_ = {"layer", "head", "d", "k"};
  std::uint64_t bytes_;
  NetcdfInput input_;
  NetcdfGroup root_;
  Shape shape_;
  std::vector<std::int64_t> ranks_;  ///< [layer][head], or empty: all are k
};

/// What to do where heads are not those of the file's list of sums: a program that saves them again
/// keeps the list as it was, and not the sum behind the bytes.
std::string advice_on(const NetcdfDamage& damage, const std::string& path) {
  const std::string_view text = damage.what();
  if (!text.ends_with(" has another sum") && !text.ends_with(" is missing")) return "";
  if (trailer_of(read_file(path, std::numeric_limits<std::uint64_t>::max())) != Trailer::none) {
    return "";
  }
  return " - if another program changed it on purpose, leave out its attribute `sums`";
}

HeadFile read_any(const std::string& path, std::optional<int> layer, bool subspaces_alone) {
  // The first bytes tell; read_file() has the messages for what cannot be opened at all.
  std::error_code error;
  const std::string first = first_bytes(path, 4);
  if (first != "\x89HDF" && !first.starts_with("CDF")) {
    if (!path.ends_with(".npy") && !first.starts_with("\x93NUM")) {
      const std::string advice = " - headlab import-heads makes heads.nc from a model";
      if (std::filesystem::is_directory(path, error)) {
        reject({path}, "", "is a directory, needs a file of heads" + advice);
      }
      if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error)) {
        reject({path}, "", "is not a regular file" + advice);
      }
      read_file(path, max_npy_bytes);  // says why not
      reject({path}, "", "is neither NPY nor NetCDF: it begins with other bytes" + advice);
    }
    return read_npy(path, layer);
  }
  try {
    return NetcdfReader(path).read(layer, subspaces_alone);
  } catch (const NetcdfDamage& damage) {
    reject({path}, "", one_line(damage.what()) + advice_on(damage, path));
  } catch (const NetcdfError& problem) {
    reject({path}, "", one_line(problem.what()));
  }
}

/// Writes one variable over all layers. Heads that are absent from a layer get `size` numbers NaN.
template <class Items, class Append>
void write_variable(const NetcdfGroup& root, const HeadFile& file, const char* name,
                    const std::vector<std::string>& dimensions, const char* long_name,
                    Items HeadLayer::*member, std::size_t size, const Append& append_item) {
  std::vector<double> numbers;
  for (const HeadLayer& layer : file.layers) {
    const auto& items = layer.*member;
    if (items.empty()) continue;
    std::size_t i = 0;
    for (int head = 0; head < file.heads(); ++head) {
      if (layer.heads.empty() || (i < items.size() && layer.heads[i] == head)) {
        append_item(numbers, items[i++]);
      } else {
        numbers.insert(numbers.end(), size, std::numeric_limits<double>::quiet_NaN());
      }
    }
  }
  if (!numbers.empty()) root.write(name, dimensions, {.long_name = long_name}, numbers);
}

void write_matrices(const NetcdfGroup& root, const HeadFile& file, const char* name,
                    Matrices HeadLayer::*member, const char* long_name) {
  write_variable(
      root, file, name, {"layer", "head", "d", "k"}, long_name, member,
      static_cast<std::size_t>(file.d()) * static_cast<std::size_t>(file.k()),
      [](std::vector<double>& numbers, const Eigen::MatrixXd& w) { append(numbers, w); });
}

/// Rank of the keys of each head: k unless the head is absent.
std::vector<std::int64_t> ranks_of(const HeadFile& file) {
  std::vector<std::int64_t> ranks;
  for (const HeadLayer& layer : file.layers) {
    const std::size_t first = ranks.size();
    ranks.insert(ranks.end(), static_cast<std::size_t>(file.heads()), file.k());
    for (const DeficientHead& one : file.deficient) {
      if (one.layer == layer.number) ranks[first + static_cast<std::size_t>(one.head)] = one.rank;
    }
  }
  return ranks;
}

void write_netcdf(const std::string& path, const HeadFile& file) {
  NetcdfImage image;
  const NetcdfGroup root = image.root();
  const Provenance program = provenance();
  root.put_attribute("Conventions", "CF-1.8");
  root.put_attribute("title", "Subspaces of attention heads");
  root.put_attribute("source", "headlab " + program.version);
  root.put_attribute("format_version", format_version);
  root.put_attribute("headlab_version", program.version);
  root.put_attribute("git", program.git);
  root.put_attribute("checkpoint", file.origin);
  root.put_attribute("architecture", file.architecture);
  root.put_attribute("positions", file.rotary ? "rotary" : "absolute");
  root.put_attribute("kv_heads", std::int64_t{file.kv_heads});
  root.put_attribute("left_out", file.left_out);
  if (file.constant_coordinate) root.put_attribute("constant_coordinate", std::int64_t{1});
  root.define_dimension("layer", file.layers.size());
  root.define_dimension("head", static_cast<std::size_t>(file.heads()));
  root.define_dimension("d", static_cast<std::size_t>(file.d()));
  root.define_dimension("k", static_cast<std::size_t>(file.k()));
  std::vector<std::int64_t> numbers;
  for (const HeadLayer& layer : file.layers) numbers.push_back(layer.number);
  root.write("layer", {"layer"}, {.long_name = "number of the layer in its model"}, numbers);
  if (file.temperature) {
    root.write("temperature", {}, {.long_name = "temperature t of the softmax"},
               std::vector<double>{*file.temperature});
  }
  write_matrices(root, file, "subspaces", &HeadLayer::subspaces,
                 "orthonormal basis of the column space of w_k");
  write_matrices(root, file, "w_q", &HeadLayer::w_q, "projection of queries, gains folded in");
  write_matrices(root, file, "w_k", &HeadLayer::w_k, "projection of keys, gains folded in");
  write_matrices(root, file, "query_subspaces", &HeadLayer::query_subspaces,
                 "left singular vectors of w_q w_k^T: orthonormal basis of its column space");
  write_variable(root, file, "singular_values", {"layer", "head", "k"},
                 "singular values of w_q w_k^T, largest first", &HeadLayer::singular_values,
                 static_cast<std::size_t>(file.k()),
                 [](std::vector<double>& all, const Eigen::VectorXd& s) { append(all, s); });
  write_variable(root, file, "condition_number", {"layer", "head"},
                 "largest over smallest singular value of w_k", &HeadLayer::condition_numbers, 1,
                 [](std::vector<double>& all, double one) { all.push_back(one); });
  root.write("rank", {"layer", "head"},
             {.long_name = "rank of w_k; a head of rank below k has no numbers"}, ranks_of(file));
  image.save(path);
}

}  // namespace

HeadFile read_head_file(const std::string& path, std::optional<int> layer) {
  return read_any(path, layer, false);
}

HeadLayer read_head_layer(const std::string& path, std::optional<int> layer, bool all_matrices) {
  HeadFile file = read_any(path, layer, !all_matrices);
  if (file.layers.size() > 1) {
    reject({path}, "",
           "holds " + std::to_string(file.layers.size()) +
               " layers - choose one with layer = " + std::to_string(file.layers.front().number));
  }
  return std::move(file.layers.front());
}

void check_head_path(const std::string& path, std::size_t layers) {
  if (path.ends_with(".nc")) return;
  if (!path.ends_with(".npy")) {
    throw InvalidInput("--out: " + one_line(path) + ": must end in .nc or .npy");
  }
  if (layers > 1) {
    throw InvalidInput("--out: " + one_line(path) + ": NPY holds one layer, not " +
                       std::to_string(layers) + " - choose one with --layer, or write .nc");
  }
}

void write_head_file(const std::string& path, const HeadFile& file) {
  check_head_path(path, file.layers.size());
  if (path.ends_with(".nc")) return write_netcdf(path, file);
  std::vector<double> numbers;
  for (const Eigen::MatrixXd& w : file.layers.at(0).subspaces) append(numbers, w);
  const auto length = [](int n) { return static_cast<std::uint64_t>(n); };
  write_atomically(
      path,
      npy_bytes({file.layers.at(0).subspaces.size(), length(file.d()), length(file.k())}, numbers));
}

}  // namespace headlab
