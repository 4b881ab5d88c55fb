// SPDX-License-Identifier: Apache-2.0
#include "engine/files/netcdf/calls.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>

#include <netcdf.h>
#include <netcdf_mem.h>

#include "engine/files/available_memory.h"
#include "engine/files/document.h"

namespace headlab {
namespace {

/// An HDF5 file without content whose root group tracks the order in which things are made, as
/// h5py.File(path, "w", libver=("v108", "v108"), track_order=True) writes it. The image that
/// nc_create_mem() makes does not track it, and the library refuses to append to such a file.
constexpr unsigned char empty_file[] = {
    0x89, 0x48, 0x44, 0x46, 0x0d, 0x0a, 0x1a, 0x0a, 0x02, 0x08, 0x08, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xef, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x30, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x94,
    0x33, 0x45, 0x0f, 0x4f, 0x48, 0x44, 0x52, 0x02, 0x0c, 0xb4, 0x02, 0x22, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x03, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff,
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0xff, 0xff, 0xff, 0xff, 0xff, 0x0a, 0x02, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x7e};
constexpr std::size_t empty_file_size = 239;  ///< with zeros between these bytes and the last
constexpr unsigned char empty_file_end[] = {0x63, 0x28, 0xac, 0x1c};

constexpr const char* image_text = "a file in memory";

}  // namespace

NetcdfError::NetcdfError(const std::string& problem) : std::runtime_error(one_line(problem)) {}

void check_netcdf(int status, const std::string& about) {
  if (status == NC_ENOMEM) throw std::bad_alloc();
  if (status != NC_NOERR) throw NetcdfError(about + ": " + nc_strerror(status));
}

std::size_t checked_netcdf_size(const std::vector<std::size_t>& lengths, const std::string& name) {
  constexpr std::size_t item = 8, small = std::size_t{1} << 20;
  std::size_t size = 1;
  bool overflow = false;
  for (const std::size_t length : lengths) {
    overflow = __builtin_mul_overflow(size, length, &size) || overflow;
  }
  if (std::ranges::find(lengths, std::size_t{0}) != lengths.end()) return 0;
  if (overflow || size > std::numeric_limits<std::size_t>::max() / item) {
    throw NetcdfError(name + ": is too large");
  }
  if (size * item > small && size * item > available_bytes()) {
    throw NetcdfError(name + ": needs " + format_bytes(size * item) + " of memory, " +
                      format_bytes(available_bytes()) + " available");
  }
  return size;
}

std::vector<std::size_t> netcdf_lengths(int group, int variable, const std::string& name) {
  int rank = 0;
  check_netcdf(nc_inq_varndims(group, variable, &rank), name);
  std::vector<int> ids(static_cast<std::size_t>(rank));
  check_netcdf(nc_inq_vardimid(group, variable, ids.data()), name);
  std::vector<std::size_t> lengths;
  for (const int id : ids) check_netcdf(nc_inq_dimlen(group, id, &lengths.emplace_back()), name);
  return lengths;
}

std::string netcdf_text(const char* text) {
  return text == nullptr ? "" : text;
}

int new_netcdf_image() {
  auto* const bytes = static_cast<unsigned char*>(std::calloc(empty_file_size, 1));
  if (bytes == nullptr) throw std::bad_alloc();
  std::memcpy(bytes, empty_file, sizeof empty_file);
  std::memcpy(bytes + empty_file_size - sizeof empty_file_end, empty_file_end,
              sizeof empty_file_end);
  NC_memio image = {.size = empty_file_size, .memory = bytes, .flags = 0};
  int number = -1;
  // The name is never used as one: the image has no file.
  const int status = nc_open_memio("image", NC_NETCDF4 | NC_WRITE, &image, &number);
  check_netcdf(status, image_text);
  return number;
}

NetcdfBytes close_netcdf_image(int number) {
  NC_memio image = {};
  check_netcdf(nc_close_memio(number, &image), image_text);
  return {std::shared_ptr<void>(image.memory, &std::free), image.size};
}

}  // namespace headlab
