#include "runtime/intercept/real.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstring>
#include <mutex>

namespace tidepool {
namespace {

struct Search {
  const char* name;
  void* found;
  const void* self;  // an address in this library: its own symbols do not count
};

// Looks the name up in one object's dynamic symbol table. libc's dlsym cannot be asked: the dynamic
// linker would resolve that very name to our own definition.
int Visit(dl_phdr_info* info, size_t, void* data) {
  auto* search = static_cast<Search*>(data);
  const ElfW(Dyn)* dynamic = nullptr;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    const auto start = static_cast<uintptr_t>(info->dlpi_addr + header.p_vaddr);
    if (header.p_type == PT_LOAD) {
      const auto self = reinterpret_cast<uintptr_t>(search->self);
      if (self - start < header.p_memsz) return 0;
    }
    if (header.p_type == PT_DYNAMIC) dynamic = reinterpret_cast<const ElfW(Dyn)*>(start);
  }
  // Only libc defines it, on every glibc since 2.34; libdl before.
  if (dynamic == nullptr || info->dlpi_name == nullptr ||
      (std::strstr(info->dlpi_name, "libc.so") == nullptr &&
       std::strstr(info->dlpi_name, "libdl.so") == nullptr)) {
    return 0;
  }
  const ElfW(Sym)* symbols = nullptr;
  const char* strings = nullptr;
  const uint32_t* hash = nullptr;
  for (const ElfW(Dyn)* entry = dynamic; entry->d_tag != DT_NULL; ++entry) {
    // glibc has relocated these in place; other linkers leave offsets.
    ElfW(Addr) at = entry->d_un.d_ptr;
    if (at < info->dlpi_addr) at += info->dlpi_addr;
    if (entry->d_tag == DT_SYMTAB) symbols = reinterpret_cast<const ElfW(Sym)*>(at);
    if (entry->d_tag == DT_STRTAB) strings = reinterpret_cast<const char*>(at);
    if (entry->d_tag == DT_GNU_HASH) hash = reinterpret_cast<const uint32_t*>(at);
  }
  if (symbols == nullptr || strings == nullptr || hash == nullptr) return 0;
  uint32_t wanted = 5381;
  for (const char* c = search->name; *c != '\0'; ++c) {
    wanted = wanted * 33 + static_cast<unsigned char>(*c);
  }
  const uint32_t buckets = hash[0], first = hash[1], bloom = hash[2];
  const auto* bucket = reinterpret_cast<const uint32_t*>(reinterpret_cast<const char*>(hash + 4) +
                                                         bloom * sizeof(ElfW(Addr)));
  const uint32_t* chain = bucket + buckets;
  for (uint32_t i = bucket[wanted % buckets]; i >= first; ++i) {
    const uint32_t value = chain[i - first];
    if ((value | 1) == (wanted | 1) &&
        std::strcmp(strings + symbols[i].st_name, search->name) == 0 &&
        symbols[i].st_shndx != SHN_UNDEF) {
      search->found = reinterpret_cast<void*>(info->dlpi_addr + symbols[i].st_value);
      return 1;
    }
    if (value & 1) break;
  }
  return 0;
}

}  // namespace

void* LibcSymbol(const char* name) {
  static const char here = 0;
  Search search{name, nullptr, &here};
  dl_iterate_phdr(Visit, &search);
  return search.found;
}

void* RealDlsym(void* handle, const char* name) {
  using Function = void* (*)(void*, const char*);
  static const auto real = reinterpret_cast<Function>(LibcSymbol("dlsym"));
  return real != nullptr ? real(handle, name) : nullptr;
}

void* RealDlvsym(void* handle, const char* name, const char* version) {
  using Function = void* (*)(void*, const char*, const char*);
  static const auto real = reinterpret_cast<Function>(LibcSymbol("dlvsym"));
  return real != nullptr ? real(handle, name, version) : nullptr;
}

void* DriverLibrary() {
  // dlopen is not overridden, so this is the real one.
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  return library;
}

void* RealSymbol(const char* symbol) {
  void* library = DriverLibrary();
  return library != nullptr ? RealDlsym(library, symbol) : nullptr;
}

}  // namespace tidepool
