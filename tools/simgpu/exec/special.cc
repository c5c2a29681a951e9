#include "tools/simgpu/exec/special.h"

#include <unordered_map>

#include "tools/simgpu/exec/handlers.h"
#include "tools/simgpu/exec/lanes.h"

namespace simgpu {
namespace {

constexpr uint32_t kMultiprocessors = 132;

uint64_t LaneValue(const Warp& w, Special which, int i) {
  const uint32_t bit = 1u << i;
  switch (which) {
    case Special::kTidX:
      return w.tid[0][i];
    case Special::kTidY:
      return w.tid[1][i];
    case Special::kTidZ:
      return w.tid[2][i];
    case Special::kLaneId:
      return static_cast<uint64_t>(i);
    case Special::kLanemaskEq:
      return bit;
    case Special::kLanemaskLt:
      return bit - 1;
    case Special::kLanemaskLe:
      return bit | (bit - 1);
    case Special::kLanemaskGt:
      return ~(bit | (bit - 1)) & kAllLanes;
    case Special::kLanemaskGe:
      return ~(bit - 1) & kAllLanes;
    default:
      return 0;
  }
}

uint64_t UniformValue(const Warp& w, Special which) {
  const Block& block = *w.block;
  const LaunchConfig& config = *block.launch->config;
  switch (which) {
    case Special::kNtidX:
      return config.block.x;
    case Special::kNtidY:
      return config.block.y;
    case Special::kNtidZ:
      return config.block.z;
    case Special::kCtaidX:
      return block.id[0];
    case Special::kCtaidY:
      return block.id[1];
    case Special::kCtaidZ:
      return block.id[2];
    case Special::kNctaidX:
      return config.grid.x;
    case Special::kNctaidY:
      return config.grid.y;
    case Special::kNctaidZ:
      return config.grid.z;
    case Special::kWarpId:
      return w.id;
    case Special::kNwarpId:
      return (config.block.count() + kLanes - 1) / kLanes;
    case Special::kSmId:
      return block.index % kMultiprocessors;
    case Special::kNsmId:
      return kMultiprocessors;
    case Special::kGridId:
      return config.grid_id;
    // Virtual time: it goes on with what the block executes.
    case Special::kClock:
      return config.clock_base_ns + block.clock;
    case Special::kClockHi:
      return (config.clock_base_ns + block.clock) >> 32;
    case Special::kGlobalTimer:
      return config.clock_base_ns + block.clock / 2;
    case Special::kGlobalTimerHi:
      return (config.clock_base_ns + block.clock / 2) >> 32;
    case Special::kDynamicSharedBytes:
      return config.dynamic_shared_bytes;
    case Special::kTotalSharedBytes:
      return block.shared_bytes;
    case Special::kEnvregGridLow:
      return static_cast<uint32_t>(reinterpret_cast<uint64_t>(block.launch->grid_workspace));
    case Special::kEnvregGridHigh:
      return reinterpret_cast<uint64_t>(block.launch->grid_workspace) >> 32;
    case Special::kOne:
      return 1;
    default:
      return 0;
  }
}

// aux: a Special.
template <typename T>
void ReadSpecial(Warp& w, const Instr& in) {
  const auto which = static_cast<Special>(in.aux);
  T* d = Lane<T>(w, in.d);
  if (which < Special::kNtidX) {
    ForLanes(w.mask, [&](int i) { d[i] = static_cast<T>(LaneValue(w, which, i)); });
    return;
  }
  const T value = static_cast<T>(UniformValue(w, which));
  ForLanes(w.mask, [&](int i) { d[i] = value; });
}

}  // namespace

Special FindSpecial(const std::string& name) {
  using Map = std::unordered_map<std::string, Special>;
  static const Map* const names = [] {
    auto* map = new Map{
        {"%laneid", Special::kLaneId},
        {"%lanemask_eq", Special::kLanemaskEq},
        {"%lanemask_lt", Special::kLanemaskLt},
        {"%lanemask_le", Special::kLanemaskLe},
        {"%lanemask_gt", Special::kLanemaskGt},
        {"%lanemask_ge", Special::kLanemaskGe},
        {"%warpid", Special::kWarpId},
        {"%nwarpid", Special::kNwarpId},
        {"%smid", Special::kSmId},
        {"%nsmid", Special::kNsmId},
        {"%gridid", Special::kGridId},
        {"%clock", Special::kClock},
        {"%clock64", Special::kClock},
        {"%clock_hi", Special::kClockHi},
        {"%globaltimer", Special::kGlobalTimer},
        {"%globaltimer_lo", Special::kGlobalTimer},
        {"%globaltimer_hi", Special::kGlobalTimerHi},
        {"%dynamic_smem_size", Special::kDynamicSharedBytes},
        {"%total_smem_size", Special::kTotalSharedBytes},
        {"%aggr_smem_size", Special::kTotalSharedBytes},
        {"%envreg1", Special::kEnvregGridHigh},
        {"%envreg2", Special::kEnvregGridLow},
        // A launch without clusters is one of clusters of a block each.
        {"%cluster_ctarank", Special::kZero},
        {"%cluster_nctarank", Special::kOne},
        {"%current_graph_exec", Special::kZero},
    };
    const Special tid[] = {Special::kTidX, Special::kTidY, Special::kTidZ};
    const Special ntid[] = {Special::kNtidX, Special::kNtidY, Special::kNtidZ};
    const Special ctaid[] = {Special::kCtaidX, Special::kCtaidY, Special::kCtaidZ};
    const Special nctaid[] = {Special::kNctaidX, Special::kNctaidY, Special::kNctaidZ};
    for (int k = 0; k < 3; ++k) {
      const std::string axis = std::string(".") + "xyz"[k];
      (*map)["%tid" + axis] = tid[k];
      (*map)["%ntid" + axis] = ntid[k];
      (*map)["%ctaid" + axis] = ctaid[k];
      (*map)["%nctaid" + axis] = nctaid[k];
      (*map)["%clusterid" + axis] = ctaid[k];
      (*map)["%nclusterid" + axis] = nctaid[k];
      (*map)["%cluster_ctaid" + axis] = Special::kZero;
      (*map)["%cluster_nctaid" + axis] = Special::kOne;
    }
    for (int k = 0; k < 32; ++k) {
      map->try_emplace("%envreg" + std::to_string(k), Special::kZero);
    }
    return map;
  }();
  const auto found = names->find(name);
  return found == names->end() ? Special::kNone : found->second;
}

void RegisterSpecial(const HandlerSink& sink) {
  sink.Put("special", "32", ReadSpecial<uint32_t>);
  sink.Put("special", "64", ReadSpecial<uint64_t>);
}

}  // namespace simgpu
