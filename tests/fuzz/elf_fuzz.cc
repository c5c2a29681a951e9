// The reader of the fat binaries in an executable.
#include "runtime/access/elf_image.h"
#include "tests/fuzz/fuzz.h"

using namespace tidepool;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto entries = ReadElfFatbins({data, size});
  if (!entries.ok()) {
    Require(!entries.status().message().empty());
    return 0;
  }
  for (const ptx::FatbinEntry& entry : *entries) {
    if (entry.kind == ptx::FatbinEntry::Kind::kElf) {
      Require(entry.elf.data() >= data && entry.elf.data() + entry.elf.size() <= data + size);
    }
  }
  return 0;
}
