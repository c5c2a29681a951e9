// Annotations: the text of a config file. Each annotation, written out again, is the same.
#include "runtime/access/config.h"
#include "tests/fuzz/fuzz.h"

using namespace tidepool;

namespace {

std::string Written(const Annotation& annotation) {
  std::string out = "kernel ";
  const bool plain = annotation.pattern.find(' ') == std::string::npos &&
                     annotation.pattern.find('\t') == std::string::npos &&
                     !annotation.pattern.starts_with('#');
  out += plain ? annotation.pattern : '"' + annotation.pattern + '"';
  for (const ParameterClaim& claim : annotation.parameters) out += " " + claim.Text();
  if (annotation.replayable) out += " replayable";
  if (annotation.pin) out += "\tpin # so";
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto config = ParseConfig(AsText(data, size), "file");
  if (!config.ok()) {
    const std::string_view text(config.status().message().data(), config.status().message().size());
    Require(text.starts_with("file:") && text.find("; accepted: ") != std::string_view::npos &&
            text.find('\n') == std::string_view::npos);
    return 0;
  }
  for (const Annotation& annotation : *config) {
    const auto again = ParseAnnotation(Written(annotation), annotation.where);
    Require(again.ok() && Written(*again) == Written(annotation));
    annotation.Matches("_ZN2ns3AddIfEEvPT_i");
  }
  return 0;
}
