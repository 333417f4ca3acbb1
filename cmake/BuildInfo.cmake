# Version, commit, compiler and libraries for src/core/build_info.cpp, in a generated header that this one file includes.
# A new commit reconfigures; the header changes, and one file is compiled, only when its text does.
set(RIESZFLOW_COMMIT "unknown")
find_package(Git QUIET)
if(GIT_FOUND)
  execute_process(COMMAND ${GIT_EXECUTABLE} describe --always --dirty WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
                  OUTPUT_VARIABLE described OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed)
    set(RIESZFLOW_COMMIT ${described})
    execute_process(COMMAND ${GIT_EXECUTABLE} rev-parse --git-path logs/HEAD WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
                    OUTPUT_VARIABLE head_log OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    get_filename_component(head_log "${head_log}" ABSOLUTE BASE_DIR ${PROJECT_SOURCE_DIR})
    if(EXISTS ${head_log})
      set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${head_log})
    endif()
  endif()
endif()

# toml++ and FFTW ship no CMake package that says their version.
function(rieszflow_header_version variable header)
  set(numbers "")
  foreach(macro ${ARGN})
    file(STRINGS ${header} line REGEX "#define +${macro} +[0-9]+")
    string(REGEX MATCH "[0-9]+$" number "${line}")
    list(APPEND numbers "${number}")
  endforeach()
  list(JOIN numbers "." version)
  set(${variable} ${version} PARENT_SCOPE)
endfunction()
rieszflow_header_version(toml_version ${tomlplusplus_INCLUDE}/toml++/impl/version.h
                         TOML_LIB_MAJOR TOML_LIB_MINOR TOML_LIB_PATCH)
set(RIESZFLOW_LIBRARIES "HDF5 ${HDF5_VERSION}, VTK ${VTK_VERSION}, Eigen ${Eigen3_VERSION}, Boost ${Boost_VERSION}, \
fmt ${fmt_VERSION}, toml++ ${toml_version}")
if(MPI_CXX_FOUND)
  string(APPEND RIESZFLOW_LIBRARIES ", MPI ${MPI_CXX_VERSION}")
endif()
configure_file(${PROJECT_SOURCE_DIR}/cmake/build_info_values.hpp.in
               ${PROJECT_BINARY_DIR}/generated/core/build_info_values.hpp @ONLY)
