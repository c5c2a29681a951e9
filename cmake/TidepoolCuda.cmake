# Finds the CUDA Toolkit's headers and nvcc: CUDA_HOME if set, the build tree's own copy (laid there by
# tools/setup where the machine has no toolkit), or /usr/local/cuda.
set(TIDEPOOL_CUDA_HOME "" CACHE PATH "CUDA Toolkit to build with")
if(NOT TIDEPOOL_CUDA_HOME)
  set(candidates "$ENV{CUDA_HOME}" "/usr/local/cuda" "${CMAKE_SOURCE_DIR}/build/cuda")
  if(DEFINED ENV{TIDEPOOL_NO_SYSTEM_CUDA})
    set(candidates "${CMAKE_SOURCE_DIR}/build/cuda")
  endif()
  foreach(dir ${candidates})
    if(dir AND EXISTS "${dir}/include/cuda.h" AND EXISTS "${dir}/bin/nvcc")
      set(TIDEPOOL_CUDA_HOME "${dir}")
      break()
    endif()
  endforeach()
endif()
if(NOT EXISTS "${TIDEPOOL_CUDA_HOME}/include/cuda.h")
  message(FATAL_ERROR "No CUDA Toolkit found: set CUDA_HOME, or run tools/setup, which brings one from PyPI")
endif()
set(TIDEPOOL_NVCC "${TIDEPOOL_CUDA_HOME}/bin/nvcc")

add_library(cuda_headers INTERFACE)
target_include_directories(cuda_headers SYSTEM INTERFACE "${TIDEPOOL_CUDA_HOME}/include")
foreach(lib lib64 lib)
  if(EXISTS "${TIDEPOOL_CUDA_HOME}/${lib}")
    set(TIDEPOOL_CUDA_LIBDIR "${TIDEPOOL_CUDA_HOME}/${lib}")
    break()
  endif()
endforeach()

# tidepool_cuda_program(NAME SOURCES... [FLAGS ...]): an executable built by nvcc as a user would build
# it; it goes to bin/. PTX is kept beside machine code by nvcc's default.
function(tidepool_cuda_program name)
  cmake_parse_arguments(ARG "" "OUTDIR" "SOURCES;FLAGS;DEPENDS" ${ARGN})
  if(NOT ARG_OUTDIR)
    set(ARG_OUTDIR ${CMAKE_BINARY_DIR}/bin)
  endif()
  set(sources)
  foreach(source ${ARG_SOURCES} ${ARG_UNPARSED_ARGUMENTS})
    get_filename_component(source ${source} ABSOLUTE BASE_DIR ${CMAKE_CURRENT_SOURCE_DIR})
    list(APPEND sources ${source})
  endforeach()
  if(NOT "${ARG_FLAGS}" MATCHES "-cudart")
    list(APPEND ARG_FLAGS -cudart shared)
  endif()
  file(MAKE_DIRECTORY ${ARG_OUTDIR})
  add_custom_command(OUTPUT ${ARG_OUTDIR}/${name}
    COMMAND ${TIDEPOOL_NVCC} -std=c++17 -O2 -L${TIDEPOOL_CUDA_LIBDIR} ${ARG_FLAGS}
            -o ${ARG_OUTDIR}/${name} ${sources}
    DEPENDS ${sources} ${ARG_DEPENDS} VERBATIM
    COMMENT "nvcc ${name}")
  add_custom_target(${name} ALL DEPENDS ${ARG_OUTDIR}/${name})
endfunction()
