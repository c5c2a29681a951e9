#include "runtime/access/config.h"

#include <algorithm>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "runtime/access/kernel_name.h"

namespace tidepool {
namespace {

constexpr char kAccepted[] =
    "kernel NAME, then N=ACCESS or +OFFSET=ACCESS (ACCESS: read, write, update or ignore), "
    "replayable, pin";
constexpr size_t kMaxFile = size_t{16} << 20;
// What a launch can take: 32764 bytes of parameters.
constexpr uint32_t kMaxNumber = 32764;

// `found` as it can stand in one line of a message.
std::string Shown(std::string_view found) {
  std::string out;
  for (const char c : found.substr(0, 80)) {
    const auto byte = static_cast<unsigned char>(c);
    out += byte < 0x20 || byte == 0x7f ? '?' : c;
  }
  return out + (found.size() > 80 ? "..." : "");
}

absl::Status Bad(std::string_view where, std::string_view what, std::string_view accepted) {
  return absl::InvalidArgumentError(
      absl::StrCat(absl::string_view(where.data(), where.size()), ": ",
                   absl::string_view(what.data(), what.size()),
                   "; accepted: ", absl::string_view(accepted.data(), accepted.size())));
}
absl::Status Found(std::string_view where, std::string_view found, std::string_view accepted) {
  return Bad(where, found.empty() ? "found the end of the line" : "found \"" + Shown(found) + "\"",
             accepted);
}

bool IsBlank(char c) { return c == ' ' || c == '\t'; }

// Takes blanks, and a comment if there is one, off the front.
void SkipBlanks(std::string_view* line) {
  while (!line->empty() && IsBlank(line->front())) line->remove_prefix(1);
  if (line->starts_with("#")) *line = {};
}

std::string_view TakeWord(std::string_view* line) {
  const auto end = std::find_if(line->begin(), line->end(), IsBlank);
  const std::string_view word = line->substr(0, static_cast<size_t>(end - line->begin()));
  line->remove_prefix(word.size());
  SkipBlanks(line);
  return word;
}

// "2=read", "+16=write".
absl::StatusOr<ParameterClaim> ParseClaim(std::string_view word, std::string_view where) {
  ParameterClaim out;
  std::string_view digits = word.substr(0, word.find('='));
  if (digits.starts_with('+')) {
    out.by_offset = true;
    digits.remove_prefix(1);
  }
  for (const char c : digits) {
    if (c < '0' || c > '9' || out.number > kMaxNumber) break;
    out.number = out.number * 10 + static_cast<uint32_t>(c - '0');
  }
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos ||
      out.number > kMaxNumber) {
    return Found(where, word,
                 absl::StrCat("N=ACCESS or +OFFSET=ACCESS with a number up to ", kMaxNumber,
                              ", replayable, pin"));
  }
  const std::string_view name = word.substr(word.find('=') + 1);
  for (Claim claim : {Claim::kRead, Claim::kWrite, Claim::kUpdate, Claim::kIgnore}) {
    if (name == ClaimName(claim)) {
      out.claim = claim;
      return out;
    }
  }
  return Found(where, word, "read, write, update or ignore after the =");
}

absl::StatusOr<std::string> ParseName(std::string_view* line, std::string_view where) {
  if (!line->starts_with('"')) {
    const std::string_view word = TakeWord(line);
    if (word.empty() || word.find('"') != std::string_view::npos) {
      return Found(where, word, "the kernel's name, in \"\" if there are blanks in it");
    }
    return std::string(word);
  }
  const std::string_view rest = line->substr(1);
  const size_t end = rest.find('"');
  if (end == std::string_view::npos || end == 0) {
    return Found(where, *line, "a name between two \"");
  }
  std::string name(rest.substr(0, end));
  *line = rest.substr(end + 1);
  if (!line->empty() && !IsBlank(line->front())) {
    return Found(where, *line, "a blank after the name");
  }
  SkipBlanks(line);
  return name;
}

}  // namespace

const char* ClaimName(Claim claim) {
  switch (claim) {
    case Claim::kRead:
      return "read";
    case Claim::kWrite:
      return "write";
    case Claim::kUpdate:
      return "update";
    case Claim::kIgnore:
      return "ignore";
  }
  return "?";
}

std::string ParameterClaim::Text() const {
  return absl::StrCat(by_offset ? "+" : "", number, "=", ClaimName(claim));
}

bool GlobMatches(std::string_view pattern, std::string_view text) {
  // On a mismatch, the last * takes one character more: earlier ones need no second try.
  size_t p = 0, t = 0, star = std::string_view::npos, from = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++from;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool Annotation::Matches(const std::string& name) const {
  return !name.empty() && (GlobMatches(pattern, name) || GlobMatches(pattern, Demangled(name)) ||
                           GlobMatches(pattern, ShortKernelName(name)));
}

absl::StatusOr<Annotation> ParseAnnotation(std::string_view line, std::string_view where) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  for (const char c : line) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && byte != '\t') || byte == 0x7f) {
      return Bad(where, absl::StrCat("found the control character ", int{byte}),
                 "one line of text");
    }
  }
  Annotation out;
  out.where = std::string(where);
  SkipBlanks(&line);
  if (const std::string_view word = TakeWord(&line); word != "kernel") {
    return Found(where, word, kAccepted);
  }
  absl::StatusOr<std::string> name = ParseName(&line, where);
  if (!name.ok()) return name.status();
  out.pattern = *std::move(name);
  if (line.empty()) return Found(where, line, kAccepted);
  while (!line.empty()) {
    const std::string_view word = TakeWord(&line);
    if (word == "replayable" || word == "pin") {
      bool& flag = word == "pin" ? out.pin : out.replayable;
      if (flag) return Found(where, word, "each word once");
      flag = true;
      continue;
    }
    if (word.find('=') == std::string_view::npos) return Found(where, word, kAccepted);
    absl::StatusOr<ParameterClaim> claim = ParseClaim(word, where);
    if (!claim.ok()) return claim.status();
    for (const ParameterClaim& other : out.parameters) {
      if (other.by_offset == claim->by_offset && other.number == claim->number) {
        return Found(where, word, "each parameter once");
      }
    }
    out.parameters.push_back(*claim);
  }
  return out;
}

absl::StatusOr<std::vector<Annotation>> ParseConfig(std::string_view text, std::string_view file) {
  std::vector<Annotation> out;
  for (size_t number = 1; !text.empty(); ++number) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    std::string_view content = line;
    if (content.ends_with('\r')) content.remove_suffix(1);
    SkipBlanks(&content);
    if (content.empty()) continue;
    absl::StatusOr<Annotation> annotation = ParseAnnotation(
        line, absl::StrCat(absl::string_view(file.data(), file.size()), ":", number));
    if (!annotation.ok()) return annotation.status();
    out.push_back(*std::move(annotation));
  }
  return out;
}

absl::StatusOr<std::vector<Annotation>> ReadConfig(const std::string& path) {
  const auto bad = [&](const char* what) {
    return absl::NotFoundError(
        absl::StrCat(path, ":0: ", what, "; accepted: a text file of annotations up to 16 MiB"));
  };
  std::ifstream file(path, std::ios::binary);
  if (!file) return bad("cannot be read");
  std::string text;
  char piece[4096];
  while (file.read(piece, sizeof(piece)), file.gcount() > 0) {
    text.append(piece, static_cast<size_t>(file.gcount()));
    if (text.size() > kMaxFile) return bad("is too long");
  }
  if (!file.eof()) return bad("cannot be read");  // a folder
  return ParseConfig(text, path);
}

}  // namespace tidepool
