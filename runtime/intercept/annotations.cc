#include "runtime/intercept/annotations.h"

#include <atomic>
#include <list>
#include <mutex>
#include <set>

#include "absl/strings/str_cat.h"
#include "runtime/access/kernel_name.h"
#include "runtime/intercept/state.h"
#include "runtime/residency/engine_impl.h"

namespace tidepool {

struct Annotations::Impl {
  struct Entry {
    Annotation annotation;
    bool used = false;
  };
  mutable std::mutex mutex;
  std::list<Entry> entries;
  std::atomic<uint64_t> generation{0};
  std::set<std::string> used, refused;

  void Refuse(const std::string& name, const std::string& why) {
    const std::string line = absl::StrCat(ShortKernelName(name), ": ", why);
    if (refused.insert(line).second) Complain(absl::StrCat("annotation of ", line));
  }
};

Annotations& Annotations::Get() {
  static Annotations* annotations = new Annotations;
  return *annotations;
}

Annotations::Annotations() : impl_(new Impl) {
  for (const Annotation& annotation : GetEnvironment().annotations) Add(annotation);
}

void Annotations::Add(Annotation annotation) {
  std::lock_guard<std::mutex> lock(impl_->mutex);
  impl_->entries.push_back({std::move(annotation), false});
  impl_->generation.fetch_add(1);
}

uint64_t Annotations::generation() const { return impl_->generation.load(); }

Annotated Annotations::Apply(const std::string& name, std::span<const ParamSlot> params,
                             KernelAccess* access) {
  std::lock_guard<std::mutex> lock(impl_->mutex);
  std::vector<const Annotation*> matching;
  for (Impl::Entry& entry : impl_->entries) {
    if (!entry.annotation.Matches(name)) continue;
    entry.used = true;
    matching.push_back(&entry.annotation);
  }
  if (matching.empty()) return {};
  Annotated annotated = Annotate(matching, params, access);
  if (!annotated.refused.empty()) {
    impl_->Refuse(name, annotated.refused);
  } else {
    impl_->used.insert(absl::StrCat(ShortKernelName(name), " (annotation, ", annotated.where, ")"));
  }
  return annotated;
}

void Annotations::RefuseReplay(const std::string& name, const Annotated& annotated,
                               const std::string& why) {
  std::lock_guard<std::mutex> lock(impl_->mutex);
  impl_->Refuse(name, absl::StrCat(annotated.where, ": replayable is refused: it ", why));
}

std::vector<std::string> Annotations::Used() const {
  std::lock_guard<std::mutex> lock(impl_->mutex);
  return {impl_->used.begin(), impl_->used.end()};
}

std::vector<std::string> Annotations::Unused() const {
  std::lock_guard<std::mutex> lock(impl_->mutex);
  std::set<std::string> out;
  for (const Impl::Entry& entry : impl_->entries) {
    if (entry.used) continue;
    out.insert(absl::StrCat(entry.annotation.where, ": ", entry.annotation.pattern));
  }
  return {out.begin(), out.end()};
}

std::vector<std::string> Annotations::Refused() const {
  std::lock_guard<std::mutex> lock(impl_->mutex);
  return {impl_->refused.begin(), impl_->refused.end()};
}

}  // namespace tidepool
