// Reads CUDA fat binaries: the container that nvcc embeds and that cuModuleLoadData,
// cuLibraryLoadData and __cudaRegisterFatBinary take. Layout: facts on fat binaries, CUDA 13.0.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tidepool::ptx {

struct FatbinEntry {
  enum class Kind : uint8_t { kPtx, kElf, kOther };
  Kind kind = Kind::kOther;
  uint32_t arch = 0;             // 75, 80, 90, ...
  bool arch_specific = false;    // sm_90a
  bool family_specific = false;  // sm_100f
  bool debug = false;
  std::string ptx;               // kPtx: the text, decompressed, without trailing NULs
  std::span<const uint8_t> elf;  // kElf: the payload as stored (possibly compressed)
};

// Reads every entry of the fat binary at `bytes` (magic 0xBA55ED50; several fat binaries may follow
// each other at 8-byte alignment only if the first one's header says so: only the first is read).
// PTX is decompressed (stored, LZ4 block, zstd frame). Never reads outside `bytes`. Errors:
// InvalidArgument with the offset and what was wrong there.
absl::StatusOr<std::vector<FatbinEntry>> ReadFatbin(std::span<const uint8_t> bytes);

// Bytes of the fat binary whose header is at `data`, header included, or 0 if `data` is not one.
// Reads 16 bytes.
uint64_t FatbinSize(const void* data);

// What a driver call was handed as a module image, whose length the caller does not know.
struct Image {
  enum class Kind : uint8_t { kPtxText, kFatbin, kCubin, kUnknown };
  Kind kind = Kind::kUnknown;
  std::vector<FatbinEntry> entries;  // kPtxText gives one entry
};
// `image` is PTX text (NUL-terminated), a fat binary, a fat-binary wrapper (magic 0x466243B1;
// version 2 wrappers contribute their prelinked fat binaries), or an ELF cubin.
absl::StatusOr<Image> ReadImage(const void* image);

// The entry whose code a device of compute capability `sm` (90 = 9.0) runs, by the driver's rule:
// the highest cubin of the same major version and not above `sm`; if there is none, the highest PTX
// not above `sm`. `ptx`: the PTX entry that describes that code (the same architecture as the
// cubin, or the PTX that is compiled at load), or null where the image carries none.
struct Selection {
  const FatbinEntry* code = nullptr;
  const FatbinEntry* ptx = nullptr;
};
Selection SelectForDevice(const std::vector<FatbinEntry>& entries, uint32_t sm);

}  // namespace tidepool::ptx
