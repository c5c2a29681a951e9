#include "ptx/modifiers.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace tidepool::ptx {
namespace {

using Table = absl::flat_hash_map<absl::string_view, Modifier>;

Table MakeTable() {
  Table table;
  for (int i = 0; i <= static_cast<int>(Type::kS16x2); ++i) {
    const auto type = static_cast<Type>(i);
    const std::string_view name = Name(type);
    if (!name.empty()) table[absl::string_view(name.data(), name.size())].type = type;
  }
  for (const char* name :
       {"e4m3",    "e5m2",       "e4m3x2",  "e5m2x2",    "e4m3x4",    "e5m2x4",  "e2m1",   "e2m1x2",
        "e2m1x4",  "e2m3",       "e2m3x2",  "e2m3x4",    "e3m2",      "e3m2x2",  "e3m2x4", "ue8m0",
        "ue8m0x2", "ue4m3",      "ue4m3x2", "b1",        "b4",        "u4",      "s4",     "u2",
        "s2",      "b4x16",      "b6x16",   "b4x16_p64", "b6x16_p32", "b6p2x16", "b1024",  "texref",
        "surfref", "samplerref", "s8x2",    "u8x2"}) {
    table[name].type = Type::kOther;
  }
  for (const auto& [name, space] : {std::pair<const char*, Space>{"reg", Space::kReg},
                                    {"param", Space::kParam},
                                    {"param::entry", Space::kParam},
                                    {"param::func", Space::kParam},
                                    {"const", Space::kConst},
                                    {"global", Space::kGlobal},
                                    {"local", Space::kLocal},
                                    {"shared", Space::kShared},
                                    {"shared::cta", Space::kShared},
                                    {"shared::cluster", Space::kShared},
                                    {"tex", Space::kTex}}) {
    table[name].space = space;
  }
  table["v2"].vector = 2;
  table["v4"].vector = 4;
  table["v8"].vector = 8;
  return table;
}

}  // namespace

Modifier FindModifier(std::string_view word) {
  static const Table* const table = new Table(MakeTable());
  const auto found = table->find(absl::string_view(word.data(), word.size()));
  return found == table->end() ? Modifier{} : found->second;
}

}  // namespace tidepool::ptx
