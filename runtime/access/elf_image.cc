#include "runtime/access/elf_image.h"

#include <elf.h>

#include <cstring>
#include <string_view>

namespace tidepool {
namespace {

template <typename T>
bool ReadAt(std::span<const uint8_t> bytes, uint64_t offset, T* out) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return false;
  std::memcpy(out, bytes.data() + offset, sizeof(T));
  return true;
}

absl::Status AppendSection(std::span<const uint8_t> section,
                           std::vector<ptx::FatbinEntry>* entries) {
  for (uint64_t at = 0; at + 16 <= section.size();) {
    const uint64_t size = ptx::FatbinSize(section.data() + at);
    if (size == 0) {
      at += 8;  // padding
      continue;
    }
    if (size > section.size() - at) {
      return absl::InvalidArgumentError("a fat binary runs past its section");
    }
    absl::StatusOr<std::vector<ptx::FatbinEntry>> read = ptx::ReadFatbin(section.subspan(at, size));
    if (!read.ok()) return read.status();
    for (ptx::FatbinEntry& entry : *read) entries->push_back(std::move(entry));
    at += (size + 7) / 8 * 8;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<ptx::FatbinEntry>> ReadElfFatbins(std::span<const uint8_t> bytes) {
  Elf64_Ehdr header;
  if (!ReadAt(bytes, 0, &header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB) {
    return absl::InvalidArgumentError("not a 64-bit ELF file");
  }
  Elf64_Shdr names;
  if (header.e_shentsize != sizeof(Elf64_Shdr) ||
      !ReadAt(bytes, header.e_shoff + uint64_t{header.e_shstrndx} * sizeof(Elf64_Shdr), &names) ||
      names.sh_offset > bytes.size() || names.sh_size > bytes.size() - names.sh_offset) {
    return absl::InvalidArgumentError("the file's section table is damaged");
  }
  const std::string_view table(reinterpret_cast<const char*>(bytes.data() + names.sh_offset),
                               names.sh_size);
  std::vector<ptx::FatbinEntry> entries;
  for (uint64_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    if (!ReadAt(bytes, header.e_shoff + i * sizeof(Elf64_Shdr), &section)) {
      return absl::InvalidArgumentError("the file's section table is damaged");
    }
    if (section.sh_name >= table.size()) continue;
    std::string_view name = table.substr(section.sh_name);
    name = name.substr(0, name.find('\0'));
    if (name != ".nv_fatbin" && name != "__nv_relfatbin") continue;
    if (section.sh_offset > bytes.size() || section.sh_size > bytes.size() - section.sh_offset) {
      return absl::InvalidArgumentError("a section runs past the end of the file");
    }
    absl::Status status =
        AppendSection(bytes.subspan(section.sh_offset, section.sh_size), &entries);
    if (!status.ok()) return status;
  }
  return entries;
}

}  // namespace tidepool
