#include "ptx/fatbin.h"

#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace tidepool::ptx {
namespace {

constexpr uint32_t kMagic = 0xBA55ED50u;
constexpr uint32_t kWrapperMagic = 0x466243B1u;
constexpr uint64_t kHeaderBytes = 16;
constexpr uint64_t kEntryBytes = 64;
constexpr uint64_t kLz4 = 0x2000, kZstd = 0x8000, kArchSpecific = 0x100000, kFamily = 0x200000,
                   kDebug = 0x2;
// What one text may grow to: the largest seen is a few MiB.
constexpr uint64_t kMaxText = uint64_t{1} << 30;

template <typename T>
T Read(std::span<const uint8_t> bytes, uint64_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

absl::Status Bad(uint64_t offset, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("fat binary, offset ", offset, ": ", what));
}

absl::StatusOr<std::string> Decompress(std::span<const uint8_t> payload, uint64_t flags,
                                       uint64_t size, uint64_t offset) {
  if (size > kMaxText) return Bad(offset, "the uncompressed size is out of reason");
  std::string text(size, '\0');
  if (flags & kZstd) {
    const size_t got = ZSTD_decompress(text.data(), text.size(), payload.data(), payload.size());
    if (ZSTD_isError(got) || got != size) return Bad(offset, "the zstd frame is damaged");
  } else {
    const int got =
        LZ4_decompress_safe(reinterpret_cast<const char*>(payload.data()), text.data(),
                            static_cast<int>(payload.size()), static_cast<int>(text.size()));
    if (got < 0 || static_cast<uint64_t>(got) != size)
      return Bad(offset, "the LZ4 block is damaged");
  }
  return text;
}

// The string table of bytes that look like PTX text: printable, with a .version somewhere early.
bool LooksLikePtx(const char* text) {
  for (int i = 0; i < 4096 && text[i] != '\0'; ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c < 0x20 && c != '\n' && c != '\r' && c != '\t') return false;
    if (std::strncmp(text + i, ".version", 8) == 0) return true;
  }
  return false;
}

struct Wrapper {
  uint32_t magic;
  uint32_t version;
  const void* data;
  const void* filename_or_fatbins;
};

absl::Status Append(const void* fatbin, std::vector<FatbinEntry>* entries) {
  const uint64_t size = FatbinSize(fatbin);
  if (size == 0) return Bad(0, "no fat binary where the wrapper says");
  absl::StatusOr<std::vector<FatbinEntry>> read =
      ReadFatbin({static_cast<const uint8_t*>(fatbin), size});
  if (!read.ok()) return read.status();
  for (FatbinEntry& entry : *read) entries->push_back(std::move(entry));
  return absl::OkStatus();
}

}  // namespace

uint64_t FatbinSize(const void* data) {
  const std::span<const uint8_t> bytes(static_cast<const uint8_t*>(data), kHeaderBytes);
  if (Read<uint32_t>(bytes, 0) != kMagic) return 0;
  return Read<uint16_t>(bytes, 6) + Read<uint64_t>(bytes, 8);
}

absl::StatusOr<std::vector<FatbinEntry>> ReadFatbin(std::span<const uint8_t> bytes) {
  if (bytes.size() < kHeaderBytes) return Bad(0, "shorter than a header");
  if (Read<uint32_t>(bytes, 0) != kMagic) return Bad(0, "wrong magic number");
  const uint64_t header = Read<uint16_t>(bytes, 6);
  const uint64_t size = Read<uint64_t>(bytes, 8);
  if (header < kHeaderBytes || header > bytes.size() || size > bytes.size() - header) {
    return Bad(0, "the header promises more than there is");
  }
  std::vector<FatbinEntry> entries;
  const uint64_t end = header + size;
  for (uint64_t at = header; at < end;) {
    if (end - at < kEntryBytes) {
      // Padding behind the last entry.
      if (std::all_of(bytes.begin() + static_cast<ptrdiff_t>(at),
                      bytes.begin() + static_cast<ptrdiff_t>(end),
                      [](uint8_t b) { return b == 0; })) {
        break;
      }
      return Bad(at, "a truncated entry header");
    }
    const auto kind = Read<uint16_t>(bytes, at);
    const uint64_t entry_header = Read<uint32_t>(bytes, at + 4);
    const uint64_t padded = Read<uint64_t>(bytes, at + 8);
    const uint64_t compressed = Read<uint32_t>(bytes, at + 16);
    const uint64_t flags = Read<uint64_t>(bytes, at + 40);
    const uint64_t uncompressed = Read<uint64_t>(bytes, at + 56);
    if (entry_header < kEntryBytes || entry_header > end - at || padded > end - at - entry_header) {
      return Bad(at, "the entry is larger than what is left");
    }
    FatbinEntry entry;
    entry.arch = Read<uint32_t>(bytes, at + 28);
    entry.arch_specific = (flags & kArchSpecific) != 0;
    entry.family_specific = (flags & kFamily) != 0;
    entry.debug = (flags & kDebug) != 0;
    const std::span<const uint8_t> payload = bytes.subspan(at + entry_header, padded);
    if (kind == 1) {
      entry.kind = FatbinEntry::Kind::kPtx;
      if (flags & (kLz4 | kZstd)) {
        if (compressed > padded) return Bad(at, "the compressed size is larger than the payload");
        absl::StatusOr<std::string> text =
            Decompress(payload.subspan(0, compressed), flags, uncompressed, at);
        if (!text.ok()) return text.status();
        entry.ptx = *std::move(text);
      } else {
        entry.ptx.assign(payload.begin(), payload.end());
      }
      const size_t nul = entry.ptx.find('\0');
      if (nul != std::string::npos) entry.ptx.resize(nul);
    } else if (kind == 2) {
      entry.kind = FatbinEntry::Kind::kElf;
      entry.elf = payload;
    }
    entries.push_back(std::move(entry));
    at += entry_header + padded;
  }
  return entries;
}

absl::StatusOr<Image> ReadImage(const void* data) {
  if (data == nullptr) return absl::InvalidArgumentError("no image");
  Image image;
  uint32_t magic = 0;
  std::memcpy(&magic, data, sizeof(magic));
  if (magic == kWrapperMagic) {
    Wrapper wrapper;
    std::memcpy(&wrapper, data, sizeof(wrapper));
    image.kind = Image::Kind::kFatbin;
    if (absl::Status status = Append(wrapper.data, &image.entries); !status.ok()) return status;
    if (wrapper.version == 2 && wrapper.filename_or_fatbins != nullptr) {
      // Prelinked fat binaries of separately compiled units, ended by a null.
      const auto* parts = static_cast<const void* const*>(wrapper.filename_or_fatbins);
      for (; *parts != nullptr; ++parts) {
        if (absl::Status status = Append(*parts, &image.entries); !status.ok()) return status;
      }
    }
    return image;
  }
  if (magic == kMagic) {
    image.kind = Image::Kind::kFatbin;
    if (absl::Status status = Append(data, &image.entries); !status.ok()) return status;
    return image;
  }
  if (std::memcmp(data,
                  "\x7f"
                  "ELF",
                  4) == 0) {
    image.kind = Image::Kind::kCubin;
    return image;
  }
  if (LooksLikePtx(static_cast<const char*>(data))) {
    image.kind = Image::Kind::kPtxText;
    FatbinEntry entry;
    entry.kind = FatbinEntry::Kind::kPtx;
    entry.ptx = static_cast<const char*>(data);
    image.entries.push_back(std::move(entry));
    return image;
  }
  return image;
}

Selection SelectForDevice(const std::vector<FatbinEntry>& entries, uint32_t sm) {
  Selection selection;
  const FatbinEntry* best_ptx = nullptr;
  for (const FatbinEntry& entry : entries) {
    if (entry.kind == FatbinEntry::Kind::kElf && entry.arch / 10 == sm / 10 && entry.arch <= sm &&
        (!entry.arch_specific || entry.arch == sm)) {
      if (selection.code == nullptr || entry.arch > selection.code->arch) selection.code = &entry;
    }
    if (entry.kind == FatbinEntry::Kind::kPtx && entry.arch <= sm &&
        (!entry.arch_specific || entry.arch == sm)) {
      if (best_ptx == nullptr || entry.arch > best_ptx->arch) best_ptx = &entry;
    }
  }
  if (selection.code == nullptr) {
    selection.code = selection.ptx = best_ptx;
    return selection;
  }
  for (const FatbinEntry& entry : entries) {
    if (entry.kind == FatbinEntry::Kind::kPtx && entry.arch == selection.code->arch &&
        entry.arch_specific == selection.code->arch_specific) {
      selection.ptx = &entry;
    }
  }
  return selection;
}

}  // namespace tidepool::ptx
