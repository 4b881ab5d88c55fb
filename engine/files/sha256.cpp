// SPDX-License-Identifier: Apache-2.0
#include "engine/files/sha256.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>
#include <vector>

#include "engine/files/error.h"

namespace headlab {
namespace {

/// The library fails where memory does, or where a policy forbids SHA-256.
void require(int status) {
  if (status != 1) throw RunFailed("SHA-256 cannot be computed: OpenSSL refuses");
}

}  // namespace

struct Sha256::Context {
  EVP_MD_CTX* evp = EVP_MD_CTX_new();
  ~Context() { EVP_MD_CTX_free(evp); }
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  require(EVP_DigestInit_ex(context_->evp, EVP_sha256(), nullptr));
}

Sha256::Sha256(const Sha256& other) : context_(std::make_unique<Context>()) {
  require(EVP_MD_CTX_copy_ex(context_->evp, other.context_->evp));
}

Sha256::~Sha256() = default;

void Sha256::add(std::span<const std::byte> bytes) {
  require(EVP_DigestUpdate(context_->evp, bytes.data(), bytes.size()));
}

std::string Sha256::digest() {
  unsigned char sum[EVP_MAX_MD_SIZE] = {};
  unsigned length = 0;
  require(EVP_DigestFinal_ex(context_->evp, sum, &length));
  std::string text;
  for (unsigned i = 0; i < length; ++i) {
    text += "0123456789abcdef"[sum[i] >> 4];
    text += "0123456789abcdef"[sum[i] & 15];
  }
  return text;
}

std::string sha256_of_file(const std::string& path) {
  struct Descriptor {
    int number;
    ~Descriptor() {
      if (number >= 0) ::close(number);
    }
  };
  const auto fail = [&] {
    throw RunFailed(path + ": cannot be read (" + std::strerror(errno) + ")");
  };
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.number < 0) fail();
  ::posix_fadvise(file.number, 0, 0, POSIX_FADV_SEQUENTIAL);
  std::vector<std::byte> buffer(std::size_t{1} << 20);
  Sha256 sum;
  while (true) {
    const ssize_t count = ::read(file.number, buffer.data(), buffer.size());
    if (count == 0) return sum.digest();
    if (count > 0) {
      sum.add({buffer.data(), static_cast<std::size_t>(count)});
    } else if (errno != EINTR) {
      fail();
    }
  }
}

}  // namespace headlab
