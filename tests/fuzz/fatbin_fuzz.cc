// The reader of fat binaries.
#include "ptx/fatbin.h"
#include "tests/fuzz/fuzz.h"

using namespace tidepool;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto entries = ptx::ReadFatbin({data, size});
  if (!entries.ok()) {
    Require(!entries.status().message().empty());
    return 0;
  }
  for (const ptx::FatbinEntry& entry : *entries) {
    if (entry.kind == ptx::FatbinEntry::Kind::kElf) {
      Require(entry.elf.data() >= data && entry.elf.data() + entry.elf.size() <= data + size);
    }
  }
  for (const uint32_t sm : {75u, 90u, 121u}) {
    const ptx::Selection selection = ptx::SelectForDevice(*entries, sm);
    Require(selection.code == nullptr || selection.code->arch <= sm);
    Require(selection.ptx == nullptr || selection.ptx->kind == ptx::FatbinEntry::Kind::kPtx);
  }
  return 0;
}
