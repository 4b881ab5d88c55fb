// SPDX-License-Identifier: Apache-2.0
/// \file How much memory there is, and what is said where it does not do.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace headlab {

/// Memory that this process may still take [bytes]: the least of MemAvailable and of what the
/// limits of its control groups (v2 and v1, its own and those above) leave, where caches of files
/// count as free; up to a tenth of a second ago. HEADLAB_MEMORY_LIMIT, a number of bytes, overrides
/// it; throws InvalidInput where that is not a number. 2^64 - 1 where the system does not tell.
/// `root` stands for / in tests.
std::uint64_t available_bytes(const std::filesystem::path& root = "/");

/// Bytes of the address space that this process takes, 0 where the system does not tell.
std::uint64_t address_space_taken();

/// "512 bytes", "3.1 GiB": three digits at most before the point, one after it from KiB on.
std::string format_bytes(std::uint64_t bytes);

/// "8.0 GiB available", or that nobody says how much.
std::string available_text();

/// Throws InvalidInput unless `bytes` are available:
///     WHERE: KNOB: needs 12.3 GiB of memory WHAT, 3.1 GiB available - lower KNOB ALTERNATIVE
/// with `what` as "for 2 workers", `knob` the key that decides, `where` the place it was written
/// and `alternative` as "or use --threads 1"; the last two may be empty.
void require_memory(std::uint64_t bytes, const std::string& what, const std::string& knob,
                    const std::string& alternative = "", const std::string& where = "");

/// Throws InvalidInput, a line that begins with `file`, unless there is room for its numbers.
void require_file_memory(const std::string& file, std::uint64_t numbers,
                         std::uint64_t number_bytes);

}  // namespace headlab
