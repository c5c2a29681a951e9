# Headers that most files include, compiled once for a set of targets with the same flags: most of the time
# that a small file takes is theirs. Each file still includes what it uses. Left out with a compiler
# launcher (a cache does better without) and with CMAKE_DISABLE_PRECOMPILE_HEADERS.
set(TIDEPOOL_PCH ON)
if(CMAKE_CXX_COMPILER_LAUNCHER OR CMAKE_DISABLE_PRECOMPILE_HEADERS)
  set(TIDEPOOL_PCH OFF)
endif()
set(pch_std <algorithm> <atomic> <cstdint> <cstring> <functional> <map> <memory> <mutex> <set> <string>
  <string_view> <utility> <vector>)
set(pch_absl <absl/container/flat_hash_map.h> <absl/status/statusor.h> <absl/strings/str_cat.h>)

# A library or program of nothing, whose precompiled header the others share.
function(tidepool_pch name kind)
  cmake_parse_arguments(ARG "" "" "HEADERS;LIBS" ${ARGN})
  file(WRITE ${CMAKE_BINARY_DIR}/${name}.cc.in "int main() { return 0; }\n")
  configure_file(${CMAKE_BINARY_DIR}/${name}.cc.in ${CMAKE_BINARY_DIR}/${name}.cc COPYONLY)
  if(kind STREQUAL "program")  # other flags than a library's: -fPIE
    add_executable(${name} EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/${name}.cc)
  else()
    add_library(${name} STATIC EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/${name}.cc)
  endif()
  target_link_libraries(${name} PRIVATE tidepool_options ${ARG_LIBS})
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
endfunction()
if(TIDEPOOL_PCH)
  tidepool_pch(tidepool_pch_product library HEADERS ${pch_std} ${pch_absl}
    LIBS absl::flat_hash_map absl::statusor absl::strings)
  tidepool_pch(tidepool_pch_tests program HEADERS ${pch_std} ${pch_absl} <gtest/gtest.h>
    LIBS absl::flat_hash_map absl::statusor absl::strings GTest::gtest)
endif()

# tidepool_use_pch(product|tests TARGET...)
function(tidepool_use_pch kind)
  if(TIDEPOOL_PCH)
    foreach(target ${ARGN})
      target_precompile_headers(${target} REUSE_FROM tidepool_pch_${kind})
    endforeach()
  endif()
endfunction()
