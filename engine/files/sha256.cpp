// SPDX-License-Identifier: Apache-2.0
#include "engine/files/sha256.h"

// OpenSSL 3 advises against what is used here.
#define OPENSSL_SUPPRESS_DEPRECATED

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <openssl/sha.h>
#include <unistd.h>
#include <vector>

#include "engine/files/error.h"

namespace headlab {

// The functions of SHA-256 itself. Those of EVP, which choose a digest when the program runs, link
// every cipher into a static library: 3 MB more of a wheel.
struct Sha256::Context {
  SHA256_CTX sum;
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  SHA256_Init(&context_->sum);
}

Sha256::Sha256(const Sha256& other) : context_(std::make_unique<Context>(*other.context_)) {}

Sha256::~Sha256() = default;

void Sha256::add(std::span<const std::byte> bytes) {
  SHA256_Update(&context_->sum, bytes.data(), bytes.size());
}

void Sha256::add(const std::string& text) {
  add(std::as_bytes(std::span(text.c_str(), text.size() + 1)));
}

std::string sha256_of_texts(const std::vector<std::string>& texts) {
  Sha256 sum;
  for (const std::string& text : texts) sum.add(text);
  return sum.digest();
}

std::string Sha256::digest() {
  unsigned char sum[SHA256_DIGEST_LENGTH] = {};
  SHA256_Final(sum, &context_->sum);
  std::string text;
  for (const unsigned char byte : sum) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
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
